"""A forest plot: estimates, intervals and verdicts of many claims, one a line."""

from __future__ import annotations

import textwrap

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from shrink_utils.study.figures import PALETTE

__all__ = ["forest"]

# A symbol and a colour, so that either is enough.
VERDICT_STYLE = {
    "replicated": ("o", PALETTE[3]),
    "inconclusive": ("s", PALETTE[0]),
    "not replicated": ("X", PALETTE[2]),
}
WIDTH = 72  # characters of a label's line
PAPER_STYLE = {"marker": "|", "color": PALETTE[1], "markersize": 12, "markeredgewidth": 2}


def forest(claims: pd.DataFrame, *, xlabel: str) -> Figure:
    """Draw every claim as its estimate on its 95 % interval, beside the paper's number.

    Parameters
    ----------
    claims : DataFrame
        Of `claim.evaluate`, drawn from top to bottom.
    xlabel : str
        What the differences are of.

    Returns
    -------
    Figure

    Raises
    ------
    ValueError
        No claims.
    """
    if claims.empty:
        raise ValueError("claims: empty, there is nothing to draw")
    labels = _labels(claims)
    lines = sum(label.count("\n") + 1.5 for label in labels)
    fig, ax = plt.subplots(figsize=(10, 0.2 * lines + 1.4))
    for y, row in enumerate(claims[::-1].itertuples()):
        marker, color = VERDICT_STYLE[row.verdict]
        ax.plot([row.low, row.high], [y, y], color=color, lw=1.5, gid="95 % interval")
        ax.plot(row.estimate, y, marker, color=color)
        if not pd.isna(row.published):
            ax.plot(row.published, y, **PAPER_STYLE)
    for verdict, (marker, color) in VERDICT_STYLE.items():
        ax.plot([], [], marker, color=color, label=verdict)
    if claims.published.notna().any():
        ax.plot([], [], linestyle="none", label="the paper, or its mean", **PAPER_STYLE)
    ax.axvline(0, color="0.6", lw=1)
    ax.set(yticks=range(len(claims)), yticklabels=labels[::-1])
    ax.set_xlabel(xlabel, loc="right")  # it may be wider than the axis
    ax.set_ylim(-0.7, len(claims) - 0.3)
    ax.tick_params(axis="y", labelsize="small", length=0)
    fig.legend(loc="outside lower center", ncols=4, fontsize="small")
    return fig


def _labels(claims: pd.DataFrame) -> list[str]:
    named = [
        " · ".join(filter(None, (row.statement, row.task, row.arm))) for row in claims.itertuples()
    ]
    return [textwrap.fill(label, WIDTH) for label in named]
