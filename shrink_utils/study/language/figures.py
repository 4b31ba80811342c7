"""Figures of topology on language (chapter 12); tables are those of the experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import binom

from shrink_utils.study.figures import ARM_STYLE, PALETTE, bars_only, heatmap, mean_line
from shrink_utils.study.statistics import paired_interval

FEATURES = {
    "length": "length alone",
    "vector": "mean vector, last layer",
    "degree": "degrees and entropies",
    "shuffled": "barcodes, rows shuffled",
    "barcode": "barcodes",
    "both": "barcodes, degrees, entropies",
}
BASELINES = ("length", "vector", "degree")
TASK_NAMES = {"word_order": "word order", "coherence": "coherence", "cola": "CoLA"}
SHUFFLED = dict(color="0.5", marker="x", linestyle=":")  # the null of every section
KIND_STYLE = {
    "text": dict(color=PALETTE[0], marker="o", linestyle="-", label="editorials"),
    "sampled": dict(color=PALETTE[1], marker="s", linestyle="--", label="words by frequency"),
    "shuffled": dict(**SHUFFLED, label="words shuffled"),
}
DIMENSIONS = {"ph": "PH dimension", "twonn": "TwoNN dimension", "rank": "effective rank"}
DIVERGENCES = {"rtd": "RTD-Lite", "rtd_matched": "RTD-Lite, matched", "cka": "1 − CKA"}
CLOUD_STYLE = {
    "encoder": dict(color=PALETTE[0], marker="o", linestyle="-", label="encoder"),
    "random": dict(color=PALETTE[1], marker="s", linestyle="--", label="random weights"),
    "shuffled": dict(**SHUFFLED, label="sentences shuffled"),
}


def attention_graph(
    attention: np.ndarray, tokens: Sequence[str], edges: np.ndarray, lengths: np.ndarray
) -> Figure:
    """A head's weights (t, t), its spanning tree as arcs over the tokens, and the tree's bars."""
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.8), width_ratios=[3, 4, 2])
    names = [f"{i} {token}" for i, token in enumerate(tokens)]  # a token may stand twice
    label = {"label": "attention (share of a row)", "shrink": 0.7}
    grid = pd.DataFrame(attention, index=names, columns=names)
    every = {"xticklabels": 1, "yticklabels": 1}
    heatmap(left, grid, annot=False, cbar=True, cbar_kws=label, **every)
    left.tick_params(labelsize="x-small")
    left.set(title="Who looks at whom", xlabel="to", ylabel="from")
    _arcs(middle, tokens, edges, lengths)
    right.hlines(range(len(lengths)), 0, lengths, color=PALETTE[6], lw=3)
    right.set(title="Its bars", xlabel="length, 1 − weight", xlim=(0, 1))
    right.invert_yaxis()
    bars_only(right)
    return fig


def _arcs(ax: Axes, tokens: Sequence[str], edges: np.ndarray, lengths: np.ndarray) -> None:
    turn = np.linspace(0, np.pi, 40)
    for (i, j), length in zip(edges, lengths, strict=True):
        radius, width = abs(i - j) / 2, 0.5 + 3 * (1 - length)
        x, y = (i + j) / 2 + radius * np.cos(turn), radius * np.sin(turn)
        ax.plot(x, y, color=PALETTE[6], lw=width)
    n = len(tokens)
    ax.set(xlim=(-0.5, n - 0.5), ylim=(0, n / 2), yticks=[])
    ax.set(title="Its spanning tree (wide: strong)")
    ax.set_xticks(range(n), tokens, rotation=90, fontsize="small")
    ax.spines["left"].set_visible(False)


def attention_accuracy(table: pd.DataFrame) -> Figure:
    """Share of texts whose class is found from each set of features, 95 % over texts."""
    tasks = list(dict.fromkeys(table.task))
    figsize = (3.8 * len(tasks) + 2, 3.3)
    shared = dict(sharex=True, sharey=True, squeeze=False)
    fig, axes = plt.subplots(1, len(tasks), figsize=figsize, **shared)
    hits = table[table.measure == "hit"]
    for ax, task in zip(axes[0], tasks, strict=True):
        for place, name in enumerate(FEATURES):
            values = hits[(hits.task == task) & (hits.features == name)].value
            mean, low, high, _ = paired_interval(values)
            color = "0.5" if name == "shuffled" else PALETTE[1 if name in BASELINES else 0]
            marker = "x" if name == "shuffled" else "s" if name in BASELINES else "o"
            ax.plot([low, high], [place, place], color=color, lw=2)
            ax.plot(mean, place, marker, color=color)
        ax.axvline(0.5, color="0.8", lw=3, zorder=0)
        ax.set(title=TASK_NAMES[task], xlabel="accuracy (share of texts)")
    axes[0, 0].set_yticks(range(len(FEATURES)), FEATURES.values())
    return fig


def attention_heads(table: pd.DataFrame) -> Figure:
    """AUC of each head's mean bar; heads further from ½ than chance reaches are outlined."""
    tasks = list(dict.fromkeys(table.task))
    figsize = (5 * len(tasks) + 1, 3.4)
    fig, axes = plt.subplots(1, len(tasks), figsize=figsize, sharey=True, squeeze=False)
    for ax, task in zip(axes[0], tasks, strict=True):
        rows = table[(table.task == task) & (table.measure == "auc")]
        chance = table[(table.task == task) & (table.measure == "chance")].value.iloc[0]
        grid = rows.pivot(index="layer", columns="head", values="value")
        grid.index, grid.columns = grid.index.astype(int), grid.columns.astype(int)
        heatmap(ax, grid, cmap="PuOr", vmin=0.4, vmax=0.6, annot=False)
        for layer, head in np.argwhere((grid - 0.5).abs().to_numpy() > chance):
            ax.add_patch(plt.Rectangle((head, layer), 1, 1, fill=False, ec="black", lw=2))
        title = f"{TASK_NAMES[task]}: chance reaches ½ ± {chance:.2f}"
        ax.set(title=title, xlabel="head", ylabel="layer" if ax is axes[0, 0] else "")
    fig.colorbar(axes[0, 0].collections[0], ax=axes, label="AUC of the mean bar")
    return fig


def dimension_by_layer(table: pd.DataFrame) -> Figure:
    """Three dimensions of a text's cloud, by kind: the median text with its 95 % interval."""
    fig, axes = plt.subplots(1, 3, figsize=(11.5, 3.8))
    whole = table[table.pieces == table.pieces.max()]
    for ax, (measure, name) in zip(axes, DIMENSIONS.items(), strict=True):
        for kind, style in KIND_STYLE.items():
            rows = whole[(whole.measure == measure) & (whole.kind == kind)]
            bounds = np.array([_median(values) for _, values in rows.groupby("layer").value])
            layers = sorted(rows.layer.unique())
            ax.plot(layers, bounds[:, 1], **style)
            ax.fill_between(layers, *bounds[:, [0, 2]].T, color=style["color"], alpha=0.15, lw=0)
        ax.set(title=name, xlabel="layer", xticks=sorted(whole.layer.unique()))
    axes[0].set_ylabel("dimension of a text")
    fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig


def _median(values: pd.Series) -> tuple[float, float, float]:
    """Lower bound, median and upper bound (order statistics; a fit can be infinite)."""
    ordered = np.sort(values)
    n = len(ordered)
    r = max(1, int(binom.ppf(0.025, n, 0.5)))
    return ordered[r - 1], float(np.median(ordered)), ordered[n - r]


def shares_of_null(table: pd.DataFrame) -> pd.DataFrame:
    """Divergences over those of shuffled rows, the mean of the two layers' nulls."""
    null = table[table.pair == "null"].set_index(["measure", "layer"]).value
    of_one, of_other = (
        null.reindex(pd.MultiIndex.from_frame(table[["measure", name]])).to_numpy()
        for name in ("layer", "other")
    )
    return table.assign(value=table.value / ((of_one + of_other) / 2))


def divergence_layers(table: pd.DataFrame) -> Figure:
    """Pairs of layers by each divergence, as shares of its value for shuffled rows."""
    fig, axes = plt.subplots(1, 3, figsize=(13, 3.8))
    rows = shares_of_null(table[table.pair.isin(["itself", "null"])])
    for ax, (measure, name) in zip(axes, DIVERGENCES.items(), strict=True):
        of_pairs = rows[(rows.measure == measure) & (rows.pair == "itself")]
        grid = of_pairs.pivot(index="layer", columns="other", values="value")
        heatmap(ax, grid, linewidths=0.5)
        ax.set(title=name, xlabel="layer", ylabel="layer" if ax is axes[0] else "")
    fig.colorbar(axes[0].collections[0], ax=axes, label="divergence / that of shuffled rows")
    return fig


def divergence_finetuned(table: pd.DataFrame, arms: Sequence[str]) -> Figure:
    """Each layer before and after fine-tuning: mean over seeds, with the least and greatest."""
    fig, axes = plt.subplots(1, 3, figsize=(12, 3.4), sharex=True, sharey=True)
    rows = shares_of_null(table[table.pair.isin(["finetuned", "null"])])
    rows = rows[rows.pair == "finetuned"]
    for ax, (measure, name) in zip(axes, DIVERGENCES.items(), strict=True):
        for arm in arms:
            of_arm = rows[(rows.arm == arm) & (rows.measure == measure)]
            wide = of_arm.pivot(index="layer", columns="seed", values="value")
            mean_line(ax, wide, extremes=True, label=arm, **ARM_STYLE[arm])
        ax.set(title=name, xlabel="layer", xticks=sorted(rows.layer.unique()))
        ax.set_ylim(bottom=0)
    axes[0].set_ylabel("divergence /\nthat of shuffled rows")
    axes[-1].legend(title="arm", loc="upper left", bbox_to_anchor=(1, 1))
    return fig


def components_by_layer(table: pd.DataFrame) -> Figure:
    """Components of the edges that stay to the end, by the layer from which they do."""
    fig, ax = plt.subplots(figsize=(8, 3.4))
    rows = table[table.measure == "components"]
    for cloud, style in CLOUD_STYLE.items():
        of_cloud = rows[rows.cloud == cloud]
        ax.plot(of_cloud.layer, of_cloud.value, **style)
    ax.set(xlabel="layer", ylabel="components", xticks=sorted(rows.layer.unique()))
    ax.set_ylim(bottom=0)
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return fig


def surviving_edges(table: pd.DataFrame) -> Figure:
    """Share of layer 0's edges that every layer so far has had; pale: if steps forgot at random."""
    fig, ax = plt.subplots(figsize=(8, 3.4))
    for cloud, style in CLOUD_STYLE.items():
        rows = table[table.cloud == cloud]
        lived, forgotten = (rows[rows.measure == name] for name in ("lived", "forgotten"))
        ax.plot(lived.layer, lived.value, **style)
        if cloud == "shuffled":  # it has none, and both lines are one
            continue
        pale: Mapping[str, object] = style | {"label": f"{style['label']}, without memory"}
        ax.plot(forgotten.layer, forgotten.value, **pale, alpha=0.4, markerfacecolor="white")
    ax.set(xlabel="layer", ylabel="share of layer 0's edges", ylim=(0, 1.02))
    ax.set_xticks(sorted(lived.layer.unique().astype(int)))
    ax.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return fig
