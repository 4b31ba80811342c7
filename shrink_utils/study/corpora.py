"""Figures of the texts (chapter 00): how they are rated, and how long they are."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from shrink_utils.study.figures import CLASS_GREYS


def ratings_by_corpus(ratings: Mapping[str, np.ndarray]) -> Figure:
    """Histograms of mean ratings from −4 to 4, one panel per corpus; near 0 they are left out."""
    bins = np.arange(-4, 4.01, 0.25)
    fig, axes = plt.subplots(1, 4, figsize=(11, 2.6), sharex=True)
    for ax, (name, values) in zip(axes, ratings.items(), strict=True):
        left_out = abs(values) < 0.5
        for chosen, edges, color, hatch in (
            (values <= -0.5, bins + 1e-9, CLASS_GREYS[0], ""),  # -0.5 with the negative
            (left_out, bins, "white", "////"),
            (values >= 0.5, bins, CLASS_GREYS[1], ".."),
        ):
            edge = "0.5" if color == "white" else "white"
            style = dict(color=color, hatch=hatch, edgecolor=edge, linewidth=0.3)
            ax.hist(values[chosen], edges, **style)
        ax.set_title(f"{name}: {np.mean(left_out):.0%} left out")
        ax.set(xlabel="mean rating (−4 to 4)", xticks=[-4, -2, 0, 2, 4])
    axes[0].set_ylabel("number of texts")
    axes[2].text(-4.1, 450, "negative", color=CLASS_GREYS[0])
    axes[2].text(0.6, 700, "left out", color="#666666")
    axes[2].text(1.4, 260, "positive", color="#666666")
    return fig


def token_lengths(lengths: Mapping[str, np.ndarray], limits: Mapping[str, int]) -> Figure:
    """Histograms of tokens per text, one panel per task, with the length at which it is cut."""
    n_rows = -(-len(lengths) // 3)
    fig, axes = plt.subplots(n_rows, 3, figsize=(11, 2.5 * n_rows), sharex=True, squeeze=False)
    for ax, (name, values) in zip(axes.flat, lengths.items(), strict=False):
        ax.hist(np.minimum(values, 100), np.arange(0, 101, 4), color="#999999", edgecolor="white")
        ax.set_title(f"{name}: median {np.median(values):.0f}")
        if name in limits:
            ax.axvline(limits[name], ymax=0.75, color="black", linestyle="--")
            cut = f"cut at {limits[name]}:\n{np.mean(values > limits[name]):.0%} are longer"
            ax.set_ylim(top=1.4 * ax.get_ylim()[1])
            corner = dict(ha="right", va="top", transform=ax.transAxes)
            ax.text(0.98, 0.98, cut, **corner)
    plt.setp(axes[-1], xlabel="tokens per text (100: or more)")
    plt.setp(axes[:, 0], ylabel="number of training rows")
    for ax in axes.flat[len(lengths) :]:
        ax.set_axis_off()
    return fig
