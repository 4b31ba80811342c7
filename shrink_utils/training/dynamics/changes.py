"""The record of an allocation: what each block contributed to each step, by each rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

__all__ = ["LossChanges"]


@dataclass(frozen=True)
class LossChanges:
    """The allocation of one step or of many.

    Attributes
    ----------
    blocks : DataFrame
        Of `Blocks.table`.
    values : dict of array, shape (steps, blocks)
        By rule; negative where the block lowered the loss.
    losses : array, shape (steps, 2)
        Before and after each step.
    pieces : array, shape (steps,)
        That the adaptive rule split each step into; 1 without it.
    gradients : int
        Evaluations of the loss and its gradient that this took.
    seconds : float
        Wall-clock that they took.
    """

    blocks: pd.DataFrame
    values: dict[str, np.ndarray]
    losses: np.ndarray
    pieces: np.ndarray
    gradients: int
    seconds: float

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
        """One row a step (from 1) and block, with the columns of `blocks` and ``value``."""
        steps, count = self.values[rule].shape
        table = pd.concat([self.blocks] * steps, ignore_index=True)
        table.insert(0, "step", np.repeat(np.arange(1, steps + 1), count))
        return table.assign(value=self.values[rule].reshape(-1))
