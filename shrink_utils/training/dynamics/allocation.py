"""Loss change allocation (LCA): how much of a change of the loss each parameter brought about.

L(θ + Δ) − L(θ) = ∫₀¹ Δ · ∇L(θ + sΔ) ds, a sum over parameters of what each contributed (Lan et al.
2019). A rule replaces the integral by nodes s_k and weights w_k.

References
----------
Lan, Liu, Zhou & Yosinski 2019, *LCA: Loss Change Allocation for Neural Network Training*
(NeurIPS); Vázquez et al. 2022, *A Closer Look at Parameter Contributions When Training Neural
Language and Translation Models* (COLING).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from transformers import TrainerCallback

from shrink_utils.training.dynamics.blocks import Blocks, trainable
from shrink_utils.training.dynamics.gradients import Loss, Point, loss_and_gradients

NODES = {
    "euler": {0.0: 1.0},
    "trapezoid": {0.0: 1 / 2, 1.0: 1 / 2},
    "simpson": {0.0: 1 / 6, 0.5: 4 / 6, 1.0: 1 / 6},
}
RULES = tuple(NODES)


@dataclass(frozen=True)
class LossChanges:
    """What each block contributed to each step, by each rule."""

    blocks: pd.DataFrame  # of `Blocks.table`
    values: dict[str, np.ndarray]  # by rule (steps, blocks); negative where the loss was lowered
    losses: np.ndarray  # (steps, 2), before and after each step

    def closure(self, rule: str) -> float:
        """|ΣA − ΔL| / |ΔL| over all steps; NaN when the loss did not change."""
        change = float((self.losses[:, 1] - self.losses[:, 0]).sum())
        if change == 0:
            return float("nan")
        return abs(float(self.values[rule].sum()) - change) / abs(change)

    def table(self, rule: str) -> pd.DataFrame:
        """One row per step (from 1) and block, with the columns of `blocks` and ``value``."""
        steps, count = self.values[rule].shape
        table = pd.concat([self.blocks] * steps, ignore_index=True)
        table.insert(0, "step", np.repeat(np.arange(1, steps + 1), count))
        return table.assign(value=self.values[rule].reshape(-1))


class AllocationRecorder(TrainerCallback):
    """Allocate the loss of a fixed set at every optimizer step of transformers' Trainer.

    Whatever the Trainer minimizes (a regularizer may be in it), what is allocated is `loss`. In a
    loop of your own, call `begin` once, and `start` before and `finish` after each step of any
    optimizer.

    Parameters
    ----------
    loss : callable
        Deterministic, such as a `FixedSetLoss`.
    rules : sequence of {"euler", "trapezoid", "simpson"}
        The gradient at the end of a step is that at the start of the next one: Euler's rule and the
        trapezoid cost one gradient per step, Simpson's two.

    Raises
    ------
    ValueError
        No rule, or an unknown one.

    Notes
    -----
    The model's weights, gradients, modes and the state of the random numbers are left alone:
    training with a recorder gives the same weights, to the bit, as training without one. Under the
    Trainer's mixed precision the model's own forward is in it too, and the closure error says what
    that costs.
    """

    def __init__(self, loss: Loss, *, rules: Sequence[str] = ("trapezoid",)) -> None:
        if not rules or not set(rules) <= set(RULES):
            raise ValueError(f"rules: {list(rules)}, expected one or more of {', '.join(RULES)}")
        self._loss, self._rules = loss, tuple(rules)

    def begin(self, model: nn.Module) -> None:
        """Begin a new record."""
        self._model, self._blocks = model, Blocks(model)
        self._weights: Mapping[str, Tensor] = {}  # where the last step ended, and what was there
        self._point: Point | None = None
        self._rows: dict[str, list[Tensor]] = {rule: [] for rule in self._rules}
        self._losses: list[tuple[float, float]] = []

    def start(self) -> None:
        """Note where a step begins: nothing is evaluated when that is where the last one ended."""
        now = trainable(self._model)
        if self._point is None or not all(torch.equal(self._weights[n], now[n]) for n in now):
            self._weights = _copied(now)
            self._point = loss_and_gradients(self._model, self._loss)

    def finish(self) -> None:
        """Allocate what the step changed."""
        self._allocate(_copied(trainable(self._model)))

    def changes(self) -> LossChanges:
        """What has been allocated since the record began."""
        return LossChanges(
            blocks=self._blocks.table,
            values={rule: torch.stack(rows).numpy() for rule, rows in self._rows.items()},
            losses=np.array(self._losses),
        )

    def on_train_begin(self, args, state, control, model=None, **kwargs) -> None:
        """Begin a new record."""
        self.begin(model)

    def on_pre_optimizer_step(self, args, state, control, **kwargs) -> None:
        """Note where the step begins."""
        self.start()

    def on_optimizer_step(self, args, state, control, **kwargs) -> None:
        """Allocate the step, before the Trainer clears the gradients."""
        self.finish()

    def _allocate(self, after: Mapping[str, Tensor]) -> None:
        """Allocate the line from the last weights; the next step may begin where it ends."""
        before = self._weights
        points = {0.0: self._point}
        for s in {1.0} | {s for rule in self._rules for s in NODES[rule] if s > 0}:
            at = after if s == 1 else {n: torch.lerp(x, after[n], s) for n, x in before.items()}
            points[s] = loss_and_gradients(self._model, self._loss, at=at)
        dots = self._blocks.dots(before, after, *(point.gradients for point in points.values()))
        at = dict(zip(points, dots, strict=True))  # by node, Δ · ∇L over each block, (blocks,)
        for rule in self._rules:
            self._rows[rule].append(sum(w * at[s] for s, w in NODES[rule].items()))
        self._losses.append((points[0.0].loss, points[1.0].loss))
        self._weights, self._point = after, points[1.0]


def _copied(parameters: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    return {name: p.detach().clone() for name, p in parameters.items()}


def loss_change(
    model: nn.Module,
    loss: Loss,
    before: Mapping[str, Tensor],
    after: Mapping[str, Tensor],
    *,
    rules: Sequence[str] = ("trapezoid",),
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
    rules : sequence of {"euler", "trapezoid", "simpson"}
        Any number of them share their gradients.

    Raises
    ------
    ValueError
        An unknown rule, weights that are not the model's, or a loss that is not finite.
    """
    recorder = AllocationRecorder(loss, rules=rules)
    recorder.begin(model)
    recorder._weights, recorder._point = before, loss_and_gradients(model, loss, at=before)
    recorder._allocate(after)
    return recorder.changes()
