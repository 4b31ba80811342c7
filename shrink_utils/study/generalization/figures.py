"""Figures of models that generalize and models that follow a heuristic."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shrink_utils.study.figures import legend_below, looks_of
from shrink_utils.study.generalization.experiment import (
    CROSSINGS,
    RELATIONS,
    pairs_of,
    relation_intervals,
)

GROUP_STYLE = looks_of(RELATIONS)
CROSSING_STYLE = dict(zip(CROSSINGS, GROUP_STYLE.values(), strict=False))
RELATION_NAMES = ["two heuristic models", "two generalizing models", "one of each"]
SETS = {"overlap": "pairs of overlapping words", "dev": "dev pairs"}
PLACES = {("dev", "", ""): "dev"} | {
    ("overlap", heuristic, label): f"{heuristic.replace('_', ' ')}\n{spoken}"
    for label, spoken in (("entailment", "entailed"), ("not_entailment", "not entailed"))
    for heuristic in ("lexical_overlap", "subsequence", "constituent")
}


def accuracy_by_heuristic(accuracies: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Accuracy of every model on dev pairs and by heuristic, and the published means."""
    fig, ax = plt.subplots(figsize=(11, 4.2))
    for x, (data, heuristic, label) in enumerate(PLACES):
        place = f"heuristic == {heuristic!r} and label == {label!r}"
        cell = accuracies.query(f"data == {data!r} and {place}")
        for side, (group, rows) in zip((-1, 1), cell.groupby("group", sort=False), strict=False):
            style = {**GROUP_STYLE[group], "linestyle": ""}
            at = x + 0.16 * side + np.linspace(-0.08, 0.08, len(rows))
            ax.plot(at, rows.value, label=f"{group} models" if x == 0 else None, **style)
            paper = published.query(f"{place} and group == {group!r}")
            if len(paper):
                name = f"published mean, {group} (BERT-base on HANS)"
                mean = float(paper["mean"].iloc[0])
                ax.plot(x + 0.38 * side, mean, ms=9, mfc="none", **style, label=name)
    ax.axhline(0.5, color="0.6", lw=1, zorder=0)
    ax.set(ylabel="accuracy", xticks=range(len(PLACES)), ylim=(-0.03, 1.03))
    ax.set_xticklabels(PLACES.values(), fontsize="small")
    legend_below(fig, ax, 2)
    return fig


def group_similarities(generalization: pd.DataFrame) -> Figure:
    """CKA by layer of two models of one group and of two, on both sets of pairs."""
    fig, axes = plt.subplots(1, 2, figsize=(10.5, 3.8), sharey=True)
    for ax, (data, spoken) in zip(axes, SETS.items(), strict=True):
        _lines_by_layer(ax, pairs_of(generalization, "cka", data), "relation", GROUP_STYLE)
        ax.set(title=spoken, ylim=(-0.05, 1.08))
    axes[0].set_ylabel("debiased CKA of two models")
    handles, _ = axes[0].get_legend_handles_labels()
    fig.legend(handles, RELATION_NAMES, loc="outside lower center", ncols=3, fontsize="small")
    return fig


def group_crossings(generalization: pd.DataFrame, accuracies: pd.DataFrame) -> Figure:
    """Identity stitches by layer: their penalty on dev pairs, and whose answers they give."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6))
    _lines_by_layer(left, pairs_of(generalization, "penalty", "dev"), "relation", GROUP_STYLE)
    left.axhline(0, color="0.6", lw=1, zorder=0)
    left.set(title="stitched by identity, dev pairs", ylabel="penalty (nats per pair)")
    handles, _ = left.get_legend_handles_labels()
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "fontsize": "small"}
    left.legend(handles, RELATION_NAMES, **below)
    rows = pairs_of(generalization, "stitched", "overlap")
    _lines_by_layer(right, rows, "crossing", CROSSING_STYLE)
    refuted = accuracies.query("data == 'overlap' and label == 'not_entailment'")
    for group, value in refuted.groupby("group").value.mean().items():
        right.axhline(value, color=GROUP_STYLE[group]["color"], lw=1, ls=":", zorder=0)
        place = {"xy": (1.01, value), "xycoords": ("axes fraction", "data"), "va": "center"}
        right.annotate(f"{group},\nunstitched", **place, fontsize="x-small")
    right.set(title="overlapping words, not entailed", ylabel="accuracy")
    right.set(yticks=np.linspace(0, 1, 6))
    right.legend(**below)
    return fig


def _lines_by_layer(ax: Axes, rows: pd.DataFrame, by: str, styles: dict[str, dict]) -> None:
    """One line per relation or crossing, with the jackknife's interval."""
    found = relation_intervals(rows, by=by)
    for i, (name, style) in enumerate(styles.items()):
        line = found[found[by] == name]
        bars = [line.estimate - line.low, line.high - line.estimate]
        at = line.layer + 0.05 * (i - 1)
        ax.errorbar(at, line.estimate, bars, label=name, capsize=3, **style)
    ax.set(xlabel="layer", xticks=sorted(found.layer.unique()))
