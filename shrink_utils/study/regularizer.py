"""The regularizer and its selection rule (chapter 05): figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from shrink_utils.study.figures import (
    ARM_STYLE,
    CLASS_GREYS,
    CLASS_MARKERS,
    PALETTE,
    curves,
    legend_below,
    mean_line,
)
from shrink_utils.topology import h0_barcode


def neutral_line(bars: Sequence[float], neutral: Sequence[float]) -> Figure:
    """Bars, longest first, and the neutral length of positions 1, 2, …; the cut between them."""
    fig, ax = plt.subplots(figsize=(8, 3.6))
    positions = np.arange(len(bars))
    cut = 1 + int(np.argmax(np.asarray(bars[1:]) < neutral))
    kept = dict(color=PALETTE[6], width=0.7, label="kept")
    noise = dict(color="white", edgecolor="0.5", hatch="///", width=0.7, label="noise")
    ax.bar(positions[:cut], bars[:cut], **kept)
    ax.bar(positions[cut:], bars[cut:], **noise)
    ax.plot(positions[1:], neutral, "s--", color="black", label="neutral length")
    ax.axvline(cut - 0.5, color="0.5", lw=1)
    ax.set(xlabel="position i (0: the longest)", ylabel="length", xticks=positions)
    ax.set_title("The rule cuts at the first bar below its neutral length")
    legend_below(fig, ax, 3)
    return fig


def descent_arrows(points: Tensor, results: Mapping[str, tuple[Tensor, Sequence[int]]]) -> Figure:
    """The spanning tree of a plane cloud and the direction in which each arm moves its points.

    `results` holds, by arm, the gradient at the points and the numbers of the selected bars.
    """
    tree = h0_barcode(points)
    fig, axes = plt.subplots(1, len(results), figsize=(12, 4.2), sharex=True, sharey=True)
    for ax, (arm, (gradient, chosen)) in zip(axes, results.items(), strict=True):
        for bar, edge in enumerate(tree.edges.tolist()):
            width, style = (1.8, "-") if bar in chosen else (1, ":")
            ax.plot(*points[edge].T, color="0.6", lw=width, ls=style, zorder=0)
        ax.plot(*points.T, "o", color=PALETTE[0], markersize=4)
        moved = gradient.norm(dim=1) > 0
        arrows = -gradient[moved]
        scale = arrows.norm(dim=1).max().item() / 1.5  # the longest is drawn 1.5 long
        units = dict(angles="xy", scale_units="xy", scale=scale)
        ax.quiver(*points[moved].T, *arrows.T, color=PALETTE[6], width=0.006, **units)
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.set_title(f"{arm}: {len(chosen)} of {len(tree.lengths)} bars")
        ax.spines[:].set_visible(False)
    axes[0].margins(0.12)
    return fig


def layer_curves(history: pd.DataFrame, spectra: Mapping[str, Tensor]) -> Figure:
    """Missing entropy and change of the first score by step; mean spectra at the end.

    `history` has a row per arm, seed and step; `spectra` holds k scores per arm, "none" among them.
    """
    fig, axes = plt.subplots(1, 3, figsize=(12.5, 3.8))
    label = "missing entropy ln m − E (nats)"
    curves(axes[0], history, "missing", arms=list(spectra), label=label)
    _minus_none(axes[1], history, "score", arms=list(spectra))
    axes[1].set(xlabel="training step", ylabel="first score minus that\nof none, same seed")
    for arm, spectrum in spectra.items():
        axes[2].plot(range(1, 17), spectrum, label=arm, markersize=4, **ARM_STYLE[arm])
    axes[2].axhline(1 / 16, color="0.6", ls=":", lw=1)
    small = dict(ha="right", va="bottom", fontsize="small", color="0.35")
    axes[2].text(16, 1 / 16, "isotropic", **small)
    axes[2].set(xlabel="k", ylabel="k-th score at the end, centred", yscale="log")
    axes[2].set_xticks([1, 4, 8, 12, 16])
    axes[2].legend(loc="lower left", fontsize="small")
    return fig


def _minus_none(ax: Axes, history: pd.DataFrame, column: str, *, arms: Sequence[str]) -> None:
    """Each arm minus `none` of the same seed: mean, in a band from the least to the greatest."""
    wide = history.pivot(index=["arm", "step"], columns="seed", values=column)
    for arm in arms:
        change = wide.loc[arm] - wide.loc["none"]
        every = dict(markevery=max(1, len(change) // 6), markersize=5)
        mean_line(ax, change, extremes=True, label=arm, **every, **ARM_STYLE[arm])


def edges_along_direction(edges: pd.DataFrame) -> Figure:
    """Bar length against the edge's squared cosine with the first direction; a panel per cloud.

    Columns "task", "cloud", "class", "length" (over the class's mean) and "cos2", a bar per row.
    """
    tasks, clouds = edges.task.unique(), edges.cloud.unique()
    fig, axes = plt.subplots(
        len(tasks), len(clouds), figsize=(12, 3.1 * len(tasks)), sharex=True, sharey=True
    )
    for row, task in zip(np.atleast_2d(axes), tasks, strict=True):
        for ax, cloud in zip(row, clouds, strict=True):
            bars = edges[(edges.task == task) & (edges.cloud == cloud)]
            for k, (label, of_class) in enumerate(bars.groupby("class")):
                look = dict(color=CLASS_GREYS[k % 2], markersize=3, alpha=0.5, mew=0)
                marker, name = CLASS_MARKERS[k % 2], f"class {label}"
                ax.plot(of_class.length, of_class.cos2, marker, label=name, **look)
            fifths = bars.groupby(pd.qcut(bars.length, 5, duplicates="drop"), observed=True)
            means = fifths[["length", "cos2"]].mean()
            look = dict(color=PALETTE[6], lw=3, label="mean of each fifth of the bars")
            ax.plot(means.length, means.cos2, "-", **look)
            ax.set_title(f"{task}\n{cloud}", fontsize="small")
        row[0].set_ylabel("cos² of edge and direction 1")
    plt.setp(np.atleast_2d(axes)[-1], xlabel="bar length / mean of the class")
    legend_below(fig, np.atleast_2d(axes)[0, 0], 3)
    return fig


def gaps_between_classes(clouds: Mapping[str, Tensor], labels: Tensor) -> Figure:
    """Two classes in the plane, with the smallest distance between them."""
    fig, axes = plt.subplots(1, len(clouds), figsize=(12, 2.4), sharex=True, sharey=True)
    for ax, (name, x) in zip(axes, clouds.items(), strict=True):
        draw_classes(ax, x, labels)
        gap = torch.cdist(x[labels == 0], x[labels == 1]).min().item()
        ax.set_title(f"{name}: gap {gap:.2f}")
        ax.set(aspect="equal", xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color="0.8")
    return fig


def draw_classes(ax: Axes, x: Tensor, labels: Tensor, **look: object) -> None:
    """Points (n, 2) of two classes: two markers and two greys."""
    for label in (0, 1):
        style = dict(color=CLASS_GREYS[label], markersize=4, **look)
        ax.plot(*x[labels == label].T, CLASS_MARKERS[label], **style)
