"""A loss on a fixed set and its gradient, measured without leaving a trace in the model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from shrink_utils.models import evaluating
from shrink_utils.training.dynamics.blocks import trainable

# Takes the model and gives the loss in parts, scalars whose sum is the loss. Each part is
# differentiated before the next is computed, so that a large set needs the memory of one part.
Loss = Callable[[nn.Module], Iterable[Tensor]]
IGNORED = -100  # transformers' label of what is not predicted


class FixedSetLoss:
    """Mean loss over a fixed set, for `loss_change` and its recorder.

    Parameters
    ----------
    batches : sequence of dict
        Inputs of a transformers model with their ``labels``, masks drawn beforehand. Each batch
        counts by the number of its predictions.

    Raises
    ------
    ValueError
        No batches, or one without labels; and, when the loss is taken, nothing to predict in any.

    Notes
    -----
    It is the *task's* loss as the model computes it: a regularizer that a trainer adds is not in
    it, so that allocations of runs with and without one are of the same function.
    """

    def __init__(self, batches: Sequence[Mapping[str, Tensor]]) -> None:
        if not batches or not all("labels" in batch for batch in batches):
            raise ValueError(f"batches: {len(batches)}, expected one or more, each with labels")
        self.batches = [dict(batch) for batch in batches]

    def __call__(self, model: nn.Module) -> Iterator[Tensor]:
        """The loss in parts, one per batch that has something to predict."""
        device = next(model.parameters()).device
        # A causal LM predicts every token but the first.
        first = int(type(model).__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
        predicted = [int((batch["labels"][..., first:] != IGNORED).sum()) for batch in self.batches]
        if not any(predicted):
            raise ValueError(f"batches: no token to predict in any of {len(self.batches)}")
        for batch, count in zip(self.batches, predicted, strict=True):
            if count:  # the mean over no predictions is undefined
                loss = model(**{key: x.to(device) for key, x in batch.items()}).loss
                yield count / sum(predicted) * loss


class Point(NamedTuple):
    """The loss somewhere, and its gradient by parameter."""

    loss: float
    gradients: dict[str, Tensor]


def loss_and_gradients(
    model: nn.Module, loss: Loss, *, at: Mapping[str, Tensor] | None = None
) -> Point:
    """Evaluate the loss and its gradient, without dropout.

    Afterwards the model is as before: weights, gradients, the mode of every module, and the state
    of the random numbers.

    Parameters
    ----------
    model : nn.Module
        The gradient is zero for a parameter that the loss does not depend on.
    loss : callable
        Gives the loss in parts. It must be deterministic, or the allocation means nothing.
    at : mapping of str to Tensor, optional
        Values of the trainable parameters, by name; by default those that the model has.

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
    gpus = {p.device.index for p in model.parameters() if p.device.type == "cuda"}
    with (
        torch.random.fork_rng(devices=sorted(gpus)),
        torch.enable_grad(),
        evaluating(model),
        _placed(parameters, at),
    ):
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
def _placed(parameters: dict[str, nn.Parameter], at: Mapping[str, Tensor] | None) -> Iterator[None]:
    """Let the parameters have other values; their own storage is set aside, never written."""
    own = {name: p.data for name, p in parameters.items()}
    at = own if at is None else at
    if {n: x.shape for n, x in at.items()} != {n: x.shape for n, x in own.items()}:
        raise ValueError("at: names or shapes are not those of the model's trainable parameters")
    try:
        for name, p in parameters.items():
            p.data = at[name].to(own[name])
        yield
    finally:
        for name, p in parameters.items():
            p.data = own[name]
