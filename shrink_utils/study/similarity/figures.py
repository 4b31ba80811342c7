"""Figures of the similarity of layers (chapter 03); `table` is that of `measure_similarity`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shrink_utils.study.figures import ARM_STYLE, heatmap, log_ticks, look, mean_line
from shrink_utils.study.similarity.experiment import TRACKED

NAMES = {
    "cka": "CKA",
    "cka_debiased": "CKA, debiased",
    "svcca": "SVCCA",
    "pwcca": "PWCCA",
    "rsa": "RSA",
}
BESIDE = dict(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))  # legend, off the data


def layer_grid(table: pd.DataFrame, pair: str, measure: str, **keys: object) -> pd.DataFrame:
    """One measure of one pair, layers of the pretrained encoder downward; `keys` name a run."""
    rows = table[(table.pair == pair) & (table.measure == measure)]
    for key, value in keys.items():
        rows = rows[rows[key] == value]
    return rows.pivot(index="layer", columns="other", values="value")


def invariances(values: pd.DataFrame) -> Figure:
    """Similarity of a cloud with its versions (rows), by several measures (columns)."""
    fig, ax = plt.subplots(figsize=(8.5, 4.4))
    label = {"label": "similarity of x with its version"}
    heatmap(ax, values, cbar=True, linewidths=0.5, cbar_kws=label)
    ax.set(title="Every measure is blind to something (1.00)", ylabel="version y of the cloud x")
    _slant(ax)
    return fig


def nulls_by_rows(means: pd.DataFrame) -> Figure:
    """Mean similarity of independent clouds: a row per number of rows, a column per measure."""
    fig, ax = plt.subplots(figsize=(7, 3.6))
    sizes = means.index
    for i, measure in enumerate(NAMES):
        ax.plot(sizes, means[measure], label=NAMES[measure], **look(i))
    ax.axhline(0, color="0.6", lw=3, zorder=0)
    log_ticks(ax, sizes)
    ax.set(xlabel="number of rows n (d = 32 on both sides)", ylim=(-0.05, 1))
    ax.set_ylabel("similarity of independent clouds")
    ax.set_title("Only RSA and debiased CKA are near 0")
    ax.legend(loc="upper right")
    return fig


def layer_grids(
    table: pd.DataFrame,
    pair: str,
    *,
    other: str,
    measures: Sequence[str] = tuple(NAMES),
    null: bool = False,
    **keys: object,
) -> Figure:
    """All pairs of layers by each measure; a last panel, `null`, holds those of shuffled rows."""
    panels = len(measures) + null
    columns, rows = min(panels, 3), -(-panels // 3)
    figsize = (3.6 * columns + 0.7, 3.2 * rows)
    fig, axes = plt.subplots(rows, columns, figsize=figsize, squeeze=False)
    for ax, measure in zip(axes.flat, measures, strict=False):
        _layers(ax, layer_grid(table, pair, measure, **keys), NAMES[measure])
        ax.set_xlabel(f"layer, {other}")
    plt.setp(axes[:, 0], ylabel="layer, pretrained")
    fig.colorbar(axes[0, 0].collections[0], ax=axes, shrink=0.5, label="similarity")
    if null:
        _null(axes.flat[len(measures)], table)
    for ax in axes.flat[panels:]:
        ax.set_axis_off()
    return fig


def parts_by_layer(rsa: Mapping[str, Sequence[float]], cka: Sequence[float]) -> Figure:
    """RSA of the trained layers with several others, and debiased CKA with a random encoder."""
    fig, ax = plt.subplots(figsize=(7.5, 3.8))
    layers = range(len(cka))
    for i, (name, values) in enumerate(rsa.items()):
        ax.plot(layers, values, label=f"RSA, {name}", **look(i))
    label = "debiased CKA of words, random encoder"
    ax.plot(layers, cka, label=label, color="0.5", marker="x")
    ax.set(xlabel="layer of the trained encoder", ylabel="similarity", ylim=(-0.1, 1))
    ax.set_xticks(layers)
    ax.legend(**BESIDE)
    return fig


def moved_by_layer(table: pd.DataFrame, arms: Sequence[str]) -> Figure:
    """Equal layers before and after fine-tuning: mean over seeds, band from least to greatest.

    Beside them the bounds of one run over sentences.
    """
    fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    equal = table[(table.pair == "finetuned") & (table.layer == table.other)]
    for ax, measure in zip(axes, TRACKED, strict=True):
        for arm in arms:
            rows = equal[(equal.measure == measure) & (equal.arm == arm)]
            wide = rows.pivot(index="layer", columns="seed", values="value")
            mean_line(ax, wide, extremes=True, label=arm, **ARM_STYLE[arm])
        rows = table[table.measure == measure]
        low, high = (rows[rows.pair == side] for side in ("low", "high"))
        label = "none, first seed: 95 %\nover sentences"
        ax.vlines(low.layer + 0.08, low.value, high.value, color="0.4", lw=2, label=label)
        ax.set(title=NAMES[measure], xlabel="layer", xticks=sorted(table.layer.unique()))
    axes[0].set_ylabel("similarity of a layer before and after")
    axes[1].legend(**BESIDE)
    return fig


def _layers(ax: Axes, values: pd.DataFrame, title: str) -> None:
    """Annotated where cells are few; the same colours mean the same everywhere."""
    heatmap(ax, values, annot=len(values) <= 8, annot_kws={"size": 8})
    ax.set(title=title)


def _null(ax: Axes, table: pd.DataFrame) -> None:
    """What each measure reports for shuffled rows."""
    null = table[table.pair == "null"].groupby("measure").value.mean()[list(NAMES)]
    null = null.round(2) + 0.0  # no −0.00
    ax.barh(range(len(NAMES)), null, color="0.6")
    for i, (measure, name) in enumerate(NAMES.items()):
        said = f"{name}: {null[measure]:.2f}".replace("-", "−")
        ax.text(max(null[measure], 0) + 0.03, i, said, va="center")
    ax.set(title="rows shuffled: the null", xlabel="similarity", xlim=(0, 1), yticks=[])
    ax.invert_yaxis()


def _slant(ax: Axes) -> None:
    ax.set_xticklabels(ax.get_xticklabels(), rotation=30, ha="right")
