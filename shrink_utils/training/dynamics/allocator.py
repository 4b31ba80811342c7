"""Loss change allocation along a training run, step by step, whatever the optimizer."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from shrink_utils.training.dynamics.blocks import Blocks
from shrink_utils.training.dynamics.changes import LossChanges
from shrink_utils.training.dynamics.gradients import Loss, Point, loss_and_gradients, trainable
from shrink_utils.training.dynamics.quadrature import Segment, check_rules, integrate

__all__ = ["BATCH", "Allocator"]

BATCH = "batch"  # beside the rules: Euler's with the optimizer's own gradient


class Allocator:
    """Follows an optimizer: `start` before and `finish` after each of its steps.

    The gradient at the end of a step is that at the start of the next one: Euler's rule and the
    trapezoid cost one gradient a step, Simpson's two.

    Parameters
    ----------
    model, loss, rules, token_ids, tolerance, max_pieces
        As in `loss_change`.
    batch_gradient : bool
        Record also, as rule "batch", Δ times the gradient that the optimizer was given: of the
        mini-batch, with dropout, clipping and regularizer. Its sum is no change of any fixed loss.

    Notes
    -----
    The model's weights, gradients, modes and the state of the random numbers are left alone:
    training with an allocator gives the same weights, to the bit, as training without one.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        *,
        rules: Sequence[str] = ("trapezoid",),
        token_ids: Tensor | None = None,
        tolerance: float = 1e-3,
        max_pieces: int = 32,
        batch_gradient: bool = False,
    ) -> None:
        check_rules(rules)
        self._model, self._loss, self._rules = model, loss, tuple(rules)
        self._blocks = Blocks(model, token_ids=token_ids)
        self._options = {"tolerance": tolerance, "max_pieces": max_pieces}
        self._batch_gradient = batch_gradient
        self._weights: dict[str, Tensor] = {}
        self._point: Point | None = None
        self._rows: dict[str, list[Tensor]] = {rule: [] for rule in self._rules}
        if batch_gradient:
            self._rows[BATCH] = []
        self._losses: list[tuple[float, float]] = []
        self._pieces: list[int] = []
        self._gradients, self._seconds = 0, 0.0

    def start(self) -> None:
        """Note where a step begins: nothing is evaluated when that is where the last one ended."""
        began = time.perf_counter()
        now = trainable(self._model)
        if self._point is None or not all(torch.equal(self._weights[n], now[n]) for n in now):
            self._weights = _copied(now)
            self._point = loss_and_gradients(self._model, self._loss)
            self._gradients += 1
        self._seconds += time.perf_counter() - began

    def finish(self) -> None:
        """Allocate what the step changed.

        Raises
        ------
        RuntimeError
            `start` has not been called.
        """
        if self._point is None:
            raise RuntimeError("finish was called without start: where did the step begin?")
        began = time.perf_counter()
        after = _copied(trainable(self._model))
        line = Segment(self._model, self._loss, self._blocks, self._weights, after, self._point)
        found = [integrate(line, rule, **self._options) for rule in self._rules]
        for rule, (values, _) in zip(self._rules, found, strict=True):
            self._rows[rule].append(values)
        if self._batch_gradient:
            given = _given(trainable(self._model))
            self._rows[BATCH] += self._blocks.dots(self._weights, after, given)
        self._losses.append((self._point.loss, line.end.loss))
        self._pieces.append(max(pieces for _, pieces in found))
        self._weights, self._point = after, line.end
        self._gradients += line.gradients
        self._seconds += time.perf_counter() - began

    def changes(self) -> LossChanges:
        """What has been allocated so far.

        Raises
        ------
        ValueError
            No step has been finished.
        """
        if not self._losses:
            raise ValueError("no step has been finished: there is no change to allocate")
        return LossChanges(
            blocks=self._blocks.table,
            values={rule: torch.stack(rows).numpy() for rule, rows in self._rows.items()},
            losses=np.array(self._losses),
            pieces=np.array(self._pieces),
            gradients=self._gradients,
            seconds=self._seconds,
        )


def _copied(parameters: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in parameters.items()}


def _given(parameters: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    return {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in parameters.items()}
