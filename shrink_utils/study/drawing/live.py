"""Watch a run while it trains: curves that grow in the notebook."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pandas as pd
from IPython.display import display
from matplotlib.figure import Figure

__all__ = ["LiveCurves", "run_curves"]

PANELS = {
    "loss (nats)": ["task_loss"],
    "entropy (nats, both classes)": ["entropy_all", "entropy"],
    "first anisotropy score": ["raw_1", "centred_1"],
    "gradient norm": ["grad_norm"],
}
NAMES = {
    "task_loss": "task",
    "entropy_all": "every bar",
    "entropy": "selected bars",
    "raw_1": "raw",
    "centred_1": "centred",
    "grad_norm": "before clipping",
}


def run_curves(history: pd.DataFrame, *, title: str) -> Figure:
    """Four panels over the training steps of one run: loss, entropy, anisotropy, gradient norm.

    Parameters
    ----------
    history : DataFrame
        One row a step, as `StepRecorder` writes it.
    title : str
    """
    fig, axes = plt.subplots(1, 4, figsize=(13, 2.9), sharex=True)
    for ax, (label, columns) in zip(axes, PANELS.items(), strict=True):
        for column, style, color in zip(columns, ("-", "--"), ("C0", "C1"), strict=False):
            ax.plot(history.step, history[column], style, color=color, label=NAMES[column])
        ax.set(xlabel="training step")
        ax.set_title(label, fontsize="small")
        ax.set_ylim(bottom=0)
        if len(columns) > 1:
            ax.legend(fontsize="small")
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig


class LiveCurves:
    """Callable for `run_or_load`'s `on_row`: redraws the curves as the steps come.

    Parameters
    ----------
    title : str
    every : int
        Steps between two drawings.
    """

    def __init__(self, title: str, *, every: int = 3) -> None:
        self.title = title
        self.every = every
        self._rows: list[dict] = []
        self._handle = None

    def __call__(self, row: dict) -> None:
        """Take one step's row."""
        self._rows.append(row)
        if len(self._rows) % self.every:
            return
        fig = run_curves(pd.DataFrame(self._rows), title=self.title)
        plt.close(fig)
        if self._handle is None:
            self._handle = display(fig, display_id=True)
        else:
            self._handle.update(fig)
