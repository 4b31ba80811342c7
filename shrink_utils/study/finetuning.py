"""Figures of chapter 06: selected bars by step, and validation clouds before and after."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from sklearn.decomposition import PCA
from torch import Tensor

from shrink_utils.study.figures import legend_below
from shrink_utils.study.runs import Run


def prominent_bars(runs: Mapping[str, Run]) -> Figure:
    """Prominent bars and all bars of each class at every step, one panel per arm."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 3), sharey=True)
    for ax, (arm, run) in zip(axes, runs.items(), strict=True):
        history = run.history
        for label, marker, line in ((0, "o", "-"), (1, "s", "--")):
            prominent = {"marker": marker, "markersize": 3, "color": f"C{label + 1}"}
            name = f"prominent bars, class {label}"
            ax.plot(history.step, history[f"n_features_{label}"], line, label=name, **prominent)
            name = f"all bars, class {label}"
            ax.plot(history.step, history[f"n_bars_{label}"], line, color="0.7", lw=1, label=name)
        ax.set(title=f"arm {arm}", xlabel="training step", ylim=(0, None))
    axes[0].set_ylabel("bars of a batch")
    legend_below(fig, axes[0], 4)
    return fig


def principal_planes(clouds: Mapping[str, Tensor], labels: Tensor) -> Figure:
    """Each cloud (n, d) in its first two principal directions, classes by marker."""
    fig, axes = plt.subplots(1, len(clouds), figsize=(4 * len(clouds), 3.8))
    for ax, (title, vectors) in zip(axes, clouds.items(), strict=True):
        pca = PCA(n_components=2, svd_solver="full").fit(vectors.numpy())
        flat = pca.transform(vectors.numpy())  # (n, 2)
        for label, marker in ((0, "o"), (1, "^")):
            look = {"marker": marker, "color": f"C{label + 1}", "s": 14, "alpha": 0.6, "lw": 0}
            ax.scatter(*flat[labels.numpy() == label].T, label=f"class {label}", **look)
        first, second = pca.explained_variance_ratio_
        ax.set(title=title, aspect="equal", adjustable="datalim")
        ax.set(xlabel=f"direction 1 ({first:.0%} of variance)")
        ax.set(ylabel=f"direction 2 ({second:.0%})")
    axes[0].legend(fontsize="small")
    return fig
