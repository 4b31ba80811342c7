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
    learning rate and gradient norm.

    Parameters
    ----------
    on_row : callable, optional
        Called with every new row (a dict): progress bars, live plots.
    """

    def __init__(self, on_row: Callable[[dict], None] | None = None) -> None:
        self.rows: list[dict] = []
        self._on_row = on_row
        self._observed: dict = {}
        self._every_bar = BarcodeRegularizer("all")

    @torch.no_grad()
    def observe(
        self, task_loss: Tensor, embeddings: Tensor, labels: Tensor | None, bars: RegularizerOutput
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
            Of the arm's own selection (of ``prominent`` for the arm without a regularizer).
        """
        x = embeddings.detach()
        self._observed = {
            "rows": len(x),
            "task_loss": task_loss.item(),
            "regularizer": bars.loss.item(),
            "entropy": float(bars.entropy.sum()),
            "entropy_all": float(self._every_bar(x, labels).entropy.sum()),
            **_scores("raw", x, center=False),
            **_scores("centred", x, center=True),
            **_per_class("n_features", bars.classes, bars.n_features),
            **_per_class("n_bars", bars.classes, bars.n_bars),
        }

    def on_log(self, args, state, control, logs=None, **kwargs) -> None:
        """Join the Trainer's numbers to the batch's; only training steps carry a gradient norm."""
        if logs is None or "grad_norm" not in logs:
            return
        row = {
            "step": state.global_step,
            "epoch": logs["epoch"],
            "learning_rate": logs["learning_rate"],
            "grad_norm": float(logs["grad_norm"]),
            **self._observed,
        }
        self.rows.append(row)
        if self._on_row is not None:
            self._on_row(row)

    def history(self) -> pd.DataFrame:
        """One row a step; a class absent from a batch leaves its columns empty."""
        return pd.DataFrame(self.rows)


def _scores(name: str, x: Tensor, *, center: bool) -> dict[str, float]:
    """First anisotropy scores; empty for a batch without spread (one row, equal rows)."""
    try:
        scores = anisotropy(x, k=min(N_SCORES, *x.shape), center=center)
    except ValueError:
        return {}
    return {f"{name}_{k}": float(score) for k, score in enumerate(scores, 1)}


def _per_class(name: str, classes: Tensor, counts: Tensor) -> dict[str, float]:
    return {f"{name}_{c}": float(n) for c, n in zip(classes.tolist(), counts.tolist(), strict=True)}
