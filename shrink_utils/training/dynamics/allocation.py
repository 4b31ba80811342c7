"""Loss change allocation (LCA): how much of a change of the loss each parameter brought about.

L(θ + Δ) − L(θ) = ∫₀¹ Δ · ∇L(θ + sΔ) ds, a sum over parameters of what each contributed (Lan et al.
2019). A rule replaces the integral by nodes s_k and weights w_k.

References
----------
Lan, Liu, Zhou & Yosinski 2019, *LCA: Loss Change Allocation for Neural Network Training*
(NeurIPS); Vázquez et al. 2022, *A Closer Look at Parameter Contributions When Training Neural
Language and Translation Models* (COLING).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from transformers import TrainerCallback

from shrink_utils.training.dynamics.blocks import Blocks
from shrink_utils.training.dynamics.gradients import Loss, Point, loss_and_gradients, trainable

NODES = {
    "euler": {0.0: 1.0},
    "trapezoid": {0.0: 1 / 2, 1.0: 1 / 2},
    "simpson": {0.0: 1 / 6, 0.5: 4 / 6, 1.0: 1 / 6},
}
RULES = (*NODES, "adaptive")
BATCH = "batch"  # beside the rules: Euler's with the optimizer's own gradient


@dataclass(frozen=True)
class LossChanges:
    """What each block contributed to each step, by each rule."""

    blocks: pd.DataFrame  # of `Blocks.table`
    values: dict[str, np.ndarray]  # by rule (steps, blocks); negative where the loss was lowered
    losses: np.ndarray  # (steps, 2), before and after each step
    pieces: np.ndarray  # (steps,), that the adaptive rule split each step into; 1 without it
    gradients: int  # evaluations of the loss and its gradient that this took

    @property
    def change(self) -> float:
        """ΔL, over all steps."""
        return float((self.losses[:, 1] - self.losses[:, 0]).sum())

    def closure(self, rule: str) -> float:
        """|ΣA − ΔL| / |ΔL| over all steps; NaN when the loss did not change."""
        if self.change == 0:
            return float("nan")
        return abs(float(self.values[rule].sum()) - self.change) / abs(self.change)

    def table(self, rule: str) -> pd.DataFrame:
        """One row per step (from 1) and block, with the columns of `blocks` and ``value``."""
        steps, count = self.values[rule].shape
        table = pd.concat([self.blocks] * steps, ignore_index=True)
        table.insert(0, "step", np.repeat(np.arange(1, steps + 1), count))
        return table.assign(value=self.values[rule].reshape(-1))


class Segment:
    """The line from the weights before a step to those after it; nothing on it is computed twice.

    `start` holds the loss and gradient at `before`; the other arguments are as in `loss_change`.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        blocks: Blocks,
        before: Mapping[str, Tensor],
        after: Mapping[str, Tensor],
        start: Point,
    ) -> None:
        self._model, self._loss, self._blocks = model, loss, blocks
        self._before, self._after = before, after
        self.end = loss_and_gradients(model, loss, at=after)
        self.gradients = 1  # evaluated here; the one at the start was given
        # By the share of the way: the loss, and Δ · ∇L over each block, (blocks,).
        self._samples = dict(zip((0.0, 1.0), self._sampled(start, self.end), strict=True))

    def at(self, s: float) -> tuple[float, Tensor]:
        """Loss, and Δ · ∇L over each block (blocks,), at the share `s` of the way."""
        if s not in self._samples:
            weights = {n: torch.lerp(x, self._after[n], s) for n, x in self._before.items()}
            point = loss_and_gradients(self._model, self._loss, at=weights)
            (self._samples[s],) = self._sampled(point)
            self.gradients += 1
        return self._samples[s]

    def _sampled(self, *points: Point) -> list[tuple[float, Tensor]]:
        gradients = [point.gradients for point in points]
        dots = self._blocks.dots(self._before, self._after, *gradients)
        return [(point.loss, of) for point, of in zip(points, dots, strict=True)]


def integrate(
    segment: Segment, rule: str, *, tolerance: float, max_pieces: int
) -> tuple[Tensor, int]:
    """What each block contributed to the change of the loss.

    Parameters
    ----------
    segment : Segment
    rule : {"euler", "trapezoid", "simpson", "adaptive"}
        "adaptive" takes Simpson's rule and halves the piece of the line with the largest error
        until the errors of all pieces together are within `tolerance`.
    tolerance : float
        Of "adaptive", in units of the loss.
    max_pieces : int
        Of "adaptive": where halving ends in any case.

    Returns
    -------
    values : Tensor, shape (blocks,)
    pieces : int
        How many the line was split into.
    """
    if rule != "adaptive":
        return _piece(segment, NODES[rule], 0.0, 1.0), 1
    pieces = {(0.0, 1.0): _simpson(segment, 0.0, 1.0)}
    while len(pieces) < max_pieces and sum(e for _, e in pieces.values()) > tolerance:
        a, b = worst = max(pieces, key=lambda ends: pieces[ends][1])
        del pieces[worst]
        middle = (a + b) / 2
        for ends in ((a, middle), (middle, b)):
            pieces[ends] = _simpson(segment, *ends)
    return torch.stack([values for values, _ in pieces.values()]).sum(dim=0), len(pieces)


def _piece(segment: Segment, nodes: dict[float, float], a: float, b: float) -> Tensor:
    length = b - a
    return length * sum(w * segment.at(a + s * length)[1] for s, w in nodes.items())


def _simpson(segment: Segment, a: float, b: float) -> tuple[Tensor, float]:
    """Contributions of a piece, and by how much their sum misses the change of the loss."""
    values = _piece(segment, NODES["simpson"], a, b)
    return values, abs(float(values.sum()) - (segment.at(b)[0] - segment.at(a)[0]))


class Allocator:
    """Follows any optimizer: `start` before and `finish` after each of its steps.

    The gradient at the end of a step is that at the start of the next one: Euler's rule and the
    trapezoid cost one gradient per step, Simpson's two.

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
        if not rules or not set(rules) <= set(RULES):
            raise ValueError(f"rules: {list(rules)}, expected one or more of {', '.join(RULES)}")
        self._model, self._loss, self._rules = model, loss, tuple(rules)
        self._blocks = Blocks(model, token_ids=token_ids)
        self._options = {"tolerance": tolerance, "max_pieces": max_pieces}
        self._batch_gradient = batch_gradient
        self._weights: Mapping[str, Tensor] = {}
        self._point: Point | None = None
        names = (*self._rules, BATCH) if batch_gradient else self._rules
        self._rows: dict[str, list[Tensor]] = {name: [] for name in names}
        self._losses: list[tuple[float, float]] = []
        self._pieces: list[int] = []
        self._gradients = 0

    def start(self) -> None:
        """Note where a step begins: nothing is evaluated when that is where the last one ended."""
        now = trainable(self._model)
        if self._point is None or not all(torch.equal(self._weights[n], now[n]) for n in now):
            self._begin(_copied(now), loss_and_gradients(self._model, self._loss))

    def finish(self) -> None:
        """Allocate what the step changed."""
        now = trainable(self._model)
        after = _copied(now)
        if self._batch_gradient:
            given = {n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in now.items()}
            self._rows[BATCH] += self._blocks.dots(self._weights, after, given)
        self._end(after)

    def changes(self) -> LossChanges:
        """What has been allocated so far."""
        return LossChanges(
            blocks=self._blocks.table,
            values={rule: torch.stack(rows).numpy() for rule, rows in self._rows.items()},
            losses=np.array(self._losses),
            pieces=np.array(self._pieces),
            gradients=self._gradients,
        )

    def _begin(self, weights: Mapping[str, Tensor], point: Point) -> None:
        self._weights, self._point = weights, point
        self._gradients += 1

    def _end(self, after: Mapping[str, Tensor]) -> None:
        """Allocate the way from where it began; the next step may begin where it ends."""
        line = Segment(self._model, self._loss, self._blocks, self._weights, after, self._point)
        found = [integrate(line, rule, **self._options) for rule in self._rules]
        for rule, (values, _) in zip(self._rules, found, strict=True):
            self._rows[rule].append(values)
        self._losses.append((self._point.loss, line.end.loss))
        self._pieces.append(max(pieces for _, pieces in found))
        self._weights, self._point = after, line.end
        self._gradients += line.gradients


def _copied(parameters: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in parameters.items()}


def loss_change(
    model: nn.Module,
    loss: Loss,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    *,
    rules: Sequence[str] = ("trapezoid",),
    token_ids: Tensor | None = None,
    tolerance: float = 1e-3,
    max_pieces: int = 32,
) -> LossChanges:
    """Allocate the change of a loss between two settings of a model's weights, as one step.

    Parameters
    ----------
    model : nn.Module
        Its own weights are not looked at, and nothing in it changes.
    loss : callable
        Takes the model and gives the loss in parts (scalars whose sum is the loss), such as
        ``lambda model: [model(**batch).loss]`` or a `FixedSetLoss`. Dropout is off while it runs.
    before, after : mapping of str to Tensor
        The trainable weights by name, as in ``model.named_parameters()``.
    rules : sequence of {"euler", "trapezoid", "simpson", "adaptive"}
        Any number of them share their gradients.
    token_ids : Tensor, optional
        Word-pieces that occur in the set; see `Blocks`.
    tolerance, max_pieces
        Of the adaptive rule; see `integrate`.

    Raises
    ------
    ValueError
        An unknown rule, weights that are not the model's, or a loss that is not finite.
    """
    options = {"tolerance": tolerance, "max_pieces": max_pieces}
    allocator = Allocator(model, loss, rules=rules, token_ids=token_ids, **options)
    allocator._begin(before, loss_and_gradients(model, loss, at=before))
    allocator._end(after)
    return allocator.changes()


class AllocationRecorder(TrainerCallback):
    """Allocate the loss of a fixed set at every optimizer step of transformers' Trainer.

    Whatever the Trainer minimizes (a regularizer may be in it), what is allocated is `loss`.

    Parameters
    ----------
    loss : callable
        Deterministic, such as a `FixedSetLoss`.
    on_step : callable, optional
        Called without arguments after every recorded step: progress bars.
    **options
        Of `Allocator`.

    Notes
    -----
    Under the Trainer's mixed precision the model's own forward is in it too, and the closure error
    says what that costs.
    """

    def __init__(
        self, loss: Loss, *, on_step: Callable[[], None] | None = None, **options: object
    ) -> None:
        self._loss, self._on_step, self._options = loss, on_step, options

    def on_train_begin(self, args, state, control, model=None, **kwargs) -> None:
        """Begin a new record."""
        self._allocator = Allocator(model, self._loss, **self._options)

    def on_pre_optimizer_step(self, args, state, control, **kwargs) -> None:
        """Note where the step begins."""
        self._allocator.start()

    def on_optimizer_step(self, args, state, control, **kwargs) -> None:
        """Allocate the step, before the Trainer clears the gradients."""
        self._allocator.finish()
        if self._on_step is not None:
            self._on_step()

    def changes(self) -> LossChanges:
        """The record of the training that began last."""
        return self._allocator.changes()
