"""Figures of chapter 06: two runs by step, their selected bars, their validation clouds."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import torch
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from torch import Tensor

from shrink_utils.study.figures import (
    ARM_STYLE,
    CLASS_GREYS,
    CLASS_MARKERS,
    PALETTE,
    legend_below,
)
from shrink_utils.study.play import draw_classes
from shrink_utils.study.runs import Run

PANELS = {
    "task_loss": "task loss (nats)",
    "raw_1": "first raw score",
    "centred_1": "first centred score",
    "grad_norm": "gradient norm",
}


def compare_runs(runs: Mapping[str, Run]) -> Figure:
    """Four quantities by training step, one line per arm."""
    fig, axes = plt.subplots(1, len(PANELS), figsize=(13, 3.5), sharex=True)
    for ax, (column, label) in zip(axes, PANELS.items(), strict=True):
        for arm, run in runs.items():
            history, look = run.history, ARM_STYLE[arm]
            ax.plot(history.step, history[column], label=arm, markersize=3, **look)
        ax.set(xlabel="training step", ylabel=label)
        ax.set_ylim(bottom=0)
    legend_below(fig, axes[0], len(runs))
    return fig


def prominent_bars(runs: Mapping[str, Run]) -> Figure:
    """Prominent bars and all bars of each class at every step, one panel per arm."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    for ax, (arm, run) in zip(axes, runs.items(), strict=True):
        history = run.history
        for label, line in ((0, "-"), (1, "--")):
            look = {"marker": CLASS_MARKERS[label], "markersize": 3, "color": CLASS_GREYS[label]}
            name = f"prominent bars, class {label}"
            ax.plot(history.step, history[f"n_features_{label}"], line, label=name, **look)
            name = f"all bars, class {label}"
            ax.plot(
                history.step, history[f"n_bars_{label}"], line, color=PALETTE[6], lw=1, label=name
            )
        ax.set(title=f"arm {arm}", xlabel="training step", ylim=(0, None))
    axes[0].set_ylabel("bars per batch")
    legend_below(fig, axes[0], 4)
    return fig


def principal_planes(clouds: Mapping[str, Tensor], labels: Tensor) -> Figure:
    """Each cloud (n, d) in its first two principal directions, all on one scale."""
    figsize = (4 * len(clouds), 2.6)
    fig, axes = plt.subplots(1, len(clouds), figsize=figsize, sharex=True, sharey=True)
    fig.get_layout_engine().set(h_pad=0.1)  # titles of square panels, else cut off
    for ax, (title, vectors) in zip(axes, clouds.items(), strict=True):
        pca = PCA(n_components=2, svd_solver="full").fit(vectors.numpy())
        flat = torch.from_numpy(pca.transform(vectors.numpy()))  # (n, 2)
        draw_classes(ax, flat, labels, alpha=0.7, markeredgewidth=0)
        first, second = pca.explained_variance_ratio_
        ax.set(title=title, aspect="equal", xlabel=f"direction 1 ({first:.0%} of variance)")
        ax.set_ylabel(f"direction 2 ({second:.0%})")
    axes[0].legend(["class 0", "class 1"], fontsize="small")
    return fig
