"""A model's loss on a fixed set and its gradient, measured without leaving a trace in the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from shrink_utils.models import evaluating

__all__ = ["Loss", "Point", "loss_and_gradients", "trainable"]

# Takes the model and gives the loss in parts, scalars whose sum is the loss. Each part is
# differentiated before the next is computed, so that a large set needs the memory of one part.
Loss = Callable[[nn.Module], Iterable[Tensor]]


class Point(NamedTuple):
    """The loss somewhere, and its gradient by parameter."""

    loss: float
    gradients: dict[str, Tensor]


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Parameters that an optimizer may move, by name; tied ones once, under their first name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def loss_and_gradients(
    model: nn.Module, loss: Loss, *, at: Mapping[str, Tensor] | None = None
) -> Point:
    """Evaluate the loss and its gradient, without dropout.

    The model is as before afterwards: weights, gradients, the mode of every module, and the state
    of the random numbers.

    Parameters
    ----------
    model : nn.Module
    loss : callable
        Gives the loss in parts. It must be deterministic, or the allocation means nothing.
    at : mapping of str to Tensor, optional
        Values of the trainable parameters, by name; by default those that the model has.

    Returns
    -------
    Point
        The gradient is zero for a parameter that the loss does not depend on.

    Raises
    ------
    ValueError
        No parameter is trainable, names or shapes in `at` that are not the model's, or a loss
        that is not finite or gives no part.
    """
    parameters = trainable(model)
    if not parameters:
        raise ValueError("model: none of its parameters is trainable, nothing can be allocated")
    gradients: dict[str, Tensor] = {}
    total, parts = 0.0, 0
    with _undisturbed(model), _placed(parameters, at):
        for part in loss(model):
            found = torch.autograd.grad(part, [*parameters.values()], allow_unused=True)
            for name, more in zip(parameters, found, strict=True):
                if more is not None:
                    gradients[name] = gradients[name] + more if name in gradients else more
            total, parts = total + float(part.detach()), parts + 1
    if parts == 0 or not torch.isfinite(torch.tensor(total)):
        raise ValueError(f"loss: {total} in {parts} parts, expected a finite number in one or more")
    for name in parameters.keys() - gradients.keys():
        gradients[name] = torch.zeros_like(parameters[name])
    return Point(total, gradients)


@contextmanager
def _undisturbed(model: nn.Module) -> Iterator[None]:
    """Evaluation mode, and what is random inside leaves no trace outside."""
    gpus = {p.device.index for p in model.parameters() if p.device.type == "cuda"}
    with torch.random.fork_rng(devices=sorted(gpus)), torch.enable_grad(), evaluating(model):
        yield


@contextmanager
def _placed(parameters: dict[str, nn.Parameter], at: Mapping[str, Tensor] | None) -> Iterator[None]:
    """Let the parameters have other values; their own storage is set aside, never written."""
    if at is None:
        yield
        return
    own = {name: p.data for name, p in parameters.items()}
    if {n: x.shape for n, x in at.items()} != {n: x.shape for n, x in own.items()}:
        raise ValueError("at: names or shapes are not those of the model's trainable parameters")
    try:
        for name, p in parameters.items():
            p.data = at[name].to(own[name])
        yield
    finally:
        for name, p in parameters.items():
            p.data = own[name]
