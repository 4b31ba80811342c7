"""Figures of the sections *At full length*: hypotheses, long runs, isotropy against clusters."""

import math
import textwrap

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shrink_utils.study.ablation import CELL, arm_points
from shrink_utils.study.claims.hypotheses import BY_ID, SMOOTH
from shrink_utils.study.claims.report import VERDICT_STYLE
from shrink_utils.study.figures import ARM_STYLE, PALETTE, curves, legend_below, legend_beside
from shrink_utils.study.full_length import FullLength

DECIDED_STYLE = {
    "supported": VERDICT_STYLE["agrees"],
    "equivalent": ("D", PALETTE[2]),
    "open": VERDICT_STYLE["inconclusive"],
    "contradicted": VERDICT_STYLE["disagrees"],
    "not tested": VERDICT_STYLE["described"],
}
UNITS = {  # of the hypotheses' quantities
    "score": "centred score",
    "level": "centred score",
    "accuracy": "accuracy",
    "matched": "accuracy",
    "onset": "onset (steps)",
}


def hypotheses_figure(decided: pd.DataFrame) -> Figure:
    """The hypotheses' simultaneous intervals against their margins, one panel per unit."""
    units = decided.id.map(lambda name: UNITS[BY_ID[name].quantity])
    panels = list(decided.groupby(units, sort=False))
    heights = [len(rows) + 0.8 for _, rows in panels]
    fig, axes = plt.subplots(
        len(panels), 1, figsize=(10, 0.42 * sum(heights) + 1.8), height_ratios=heights
    )
    for ax, (unit, rows) in zip(axes, panels, strict=True):
        _draw_hypotheses(ax, rows)
        ax.set_xlabel(f"difference of the {unit}", loc="right", fontsize="small")
    for verdict, (marker, color) in DECIDED_STYLE.items():
        if verdict in set(decided.verdict):
            axes[0].plot([], [], marker, color=color, label=verdict)
    legend_below(fig, axes[0], len(DECIDED_STYLE) + 1)
    return fig


def _draw_hypotheses(ax: Axes, rows: pd.DataFrame) -> None:
    margin = BY_ID[rows.id.iloc[0]].margin
    if math.isfinite(margin):
        ax.axvspan(-margin, margin, color="0.9", lw=0, label="within the margin")
    ax.axvline(0, color="0.6", lw=1)
    for y, row in enumerate(rows[::-1].itertuples()):
        marker, color = DECIDED_STYLE[row.verdict]
        ax.plot([row.low, row.high], [y, y], color=color, lw=1.5, gid="simultaneous interval")
        ax.plot(row.estimate, y, marker, color=color)
    labels = [textwrap.fill(f"{row.id} · {row.statement}", 56) for row in rows.itertuples()]
    ax.set(yticks=range(len(rows)), yticklabels=labels[::-1], ylim=(-0.6, len(rows) - 0.4))
    ax.tick_params(axis="y", labelsize="small", length=0)


def long_runs_figure(full: FullLength) -> Figure:
    """The centred score of long runs by step, and their levels against their onsets."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.9))
    arms = [arm for arm in ARM_STYLE if arm in set(full.long_runs.arm)]
    curves(
        left, full.long_steps, "centred_1", arms=arms, label="first centred score", smooth=SMOOTH
    )
    cells = full.long_steps[CELL].drop_duplicates().agg(" · ".join, axis=1)
    left.set(ylim=(0, None), title=", ".join(cells))
    arm_points(right, full.long_runs, "onset", "level")
    right.set(
        xlabel="onset (training step)", ylabel="level: first centred score,\nlast 30 % of steps"
    )
    legend_below(fig, left, len(arms))
    return fig


def clusters_figure(clouds: pd.DataFrame) -> Figure:
    """Silhouette of the classes against IsoScore, a panel per model and task."""
    cells = list(clouds.groupby(CELL, sort=False))
    fig, axes = plt.subplots(1, len(cells), figsize=(4.2 * len(cells), 3.7), squeeze=False)
    for ax, ((model, task), rows) in zip(axes[0], cells, strict=True):
        arm_points(ax, rows, "isoscore", "silhouette")
        ax.set(title=f"{model} · {task}", xlabel="IsoScore", ylabel="silhouette of the classes")
    legend_beside(fig, axes[0], labelspacing=1.0)
    return fig
