"""What is written down at every training step, as a transformers callback."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import torch
from torch import Tensor
from transformers import TrainerCallback

from shrink_utils.geometry import anisotropy
from shrink_utils.topology import BarcodeRegularizer, RegularizerOutput

__all__ = ["StepRecorder"]

N_SCORES = 3  # anisotropy scores kept, as in STL's Table 3


class StepRecorder(TrainerCallback):
    """Collect one row a training step.

    The trainer calls `observe` with what only the forward pass knows; the Trainer's own log adds
    learning rate and gradient norm. Where a step's rows are taken in parts (`RunConfig`'s
    accumulation), its row holds how many rows they have together, and of all else their mean.

    Parameters
    ----------
    on_row : callable, optional
        Called with every new row (a dict): progress bars, live plots.
    """

    def __init__(self, on_row: Callable[[dict], None] | None = None) -> None:
        self.rows: list[dict] = []
        self._on_row = on_row
        self._parts: list[dict] = []  # of the step that is being made
        self._every_bar = BarcodeRegularizer("all")

    @torch.no_grad()
    def observe(
        self,
        task_loss: Tensor,
        embeddings: Tensor,
        labels: Tensor | None,
        bars: RegularizerOutput,
        *,
        regularizer: Tensor,
    ) -> None:
        """Note the state of a batch.

        Parameters
        ----------
        task_loss : Tensor
            Scalar, without the regularizer.
        embeddings : Tensor, shape (b, d)
            The vectors that the regularizer sees.
        labels : Tensor of shape (b,) or None
            The classes that the barcodes are taken within.
        bars : RegularizerOutput
            Of the arm's own selection (of ``prominent`` for an arm that selects no bars).
        regularizer : Tensor
            Scalar, what is added to the task loss.
        """
        x = embeddings.detach()
        every = self._every_bar(x, labels)
        observed = {
            "rows": len(x),
            "task_loss": task_loss.item(),
            "regularizer": regularizer.item(),
            "entropy": float(bars.entropy.sum()),
            "entropy_all": float(every.entropy.sum()),
            **_scores("raw", x, center=False),
            **_scores("centred", x, center=True),
            **_per_class("n_features", bars.classes, bars.n_features),
            **_per_class("n_bars", every.classes, every.n_bars),  # whatever the arm selects from
        }
        self._parts.append(observed)

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        """Join the Trainer's numbers to the batch's; only training steps carry a gradient norm."""
        if logs is None or "grad_norm" not in logs:
            return
        row = {
            "step": state.global_step,
            "epoch": logs["epoch"],
            "learning_rate": logs["learning_rate"],
            "grad_norm": float(logs["grad_norm"]),
            **_of_step(self._parts),
        }
        self._parts = []
        self.rows.append(row)
        if self._on_row is not None:
            self._on_row(row)

    def history(self) -> pd.DataFrame:
        """One row a step; a class absent from a batch leaves its columns empty."""
        return pd.DataFrame(self.rows)


def _of_step(parts: list[dict]) -> dict:
    """Rows together, of all else the mean over the parts that have it (a class may be absent)."""
    step = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        values = [part[name] for part in parts if name in part]
        step[name] = sum(values) if name == "rows" else sum(values) / len(values)
    return step


def _scores(name: str, x: Tensor, *, center: bool) -> dict[str, float]:
    """First anisotropy scores; empty for a batch without spread (one row, equal rows)."""
    try:
        scores = anisotropy(x, k=min(N_SCORES, *x.shape), center=center)
    except ValueError:
        return {}
    return {f"{name}_{k}": float(score) for k, score in enumerate(scores, 1)}


def _per_class(name: str, classes: Tensor, counts: Tensor) -> dict[str, float]:
    return {f"{name}_{c}": float(n) for c, n in zip(classes.tolist(), counts.tolist(), strict=True)}
