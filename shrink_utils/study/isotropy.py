"""How isotropic layers are (chapter 01): figures, and a slider over the layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from shrink_utils.study.explorer import Explorer, slider
from shrink_utils.study.figures import (
    MARKERS,
    PALETTE,
    REFERENCE_STYLE,
    bars_only,
    log_ticks,
    look,
)

CLOUD_STYLE = {
    "encoder": dict(color=PALETTE[0], marker=MARKERS[0], linestyle="-", markersize=5, zorder=3),
    **REFERENCE_STYLE,
}


# Every `table` has columns ``space``, ``layer``, ``cloud`` and the measures.


def avgsim_by_layer(table: pd.DataFrame, by_sentence: pd.DataFrame) -> Figure:
    """AvgSim of both spaces; that of word-pieces over pairs from different sentences.

    `by_sentence` holds the latter, by layer, in its columns ``value`` and ``stderr``.
    """
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, sharey=True)
    cls, word_pieces = table.space.unique()
    _lines(axes[0], table, "AvgSim", cls, error="AvgSim s.e.")
    style = dict(capsize=3, label="encoder, different sentences", **CLOUD_STYLE["encoder"])
    axes[1].errorbar(by_sentence.index, by_sentence.value, 2 * by_sentence.stderr, **style)
    _lines(axes[1], table, "AvgSim", word_pieces, clouds=tuple(REFERENCE_STYLE))
    axes[0].set(ylabel="AvgSim (cosine)", ylim=(-0.05, 1.05))
    axes[0].legend(loc="center left")
    axes[1].legend(loc="upper right")
    return fig


def rogue_dimension_shares(shares: Mapping[int, Tensor], layer: int) -> Figure:
    """Share of AvgSim by number of dimensions, and the ten largest shares of one layer."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), width_ratios=[3, 2])
    d = len(shares[layer])
    counts = np.arange(1, d + 1)
    for i, (name, share) in enumerate(shares.items()):
        together = share.sort(descending=True).values.cumsum(0)
        left.plot(counts, together, label=f"layer {name}", **{**look(i), "marker": None})
    left.plot(counts, counts / d, color="0.6", lw=3, zorder=0, label="even")
    left.set(xscale="log", xlabel="number of dimensions, largest first")
    left.set(ylabel="share of AvgSim (1: all of it)")
    left.set_title("Word-pieces: a few dimensions hold most of AvgSim")
    left.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    top = shares[layer].argsort(descending=True)[:10]
    right.barh([f"dim {i}" for i in top.tolist()], shares[layer][top], color="0.6")
    right.invert_yaxis()
    right.set(xlabel="share of AvgSim", title=f"Ten largest of {d}, layer {layer}")
    return fig


def two_measures_by_layer(
    table: pd.DataFrame,
    measures: Sequence[str],
    *,
    label: str,
    edges: Mapping[str, float] | None = None,
) -> Figure:
    """Two measures of both spaces, "name, raw" above "name, …".

    `edges` is what an isotropic cloud of each space has; the axes then begin at 0.
    """
    fig, axes = plt.subplots(2, 2, figsize=(9, 6), sharex=True, sharey="row")
    for row, measure in zip(axes, measures, strict=True):
        for ax, space in zip(row, table.space.unique(), strict=True):
            _lines(ax, table, measure, space)
            ax.set(xlabel="", title=f"{space}, {measure.split(', ')[1]}")
            if edges is not None:
                grey = dict(color="0.88", lw=6, zorder=0)
                ax.axhline(edges[space], label="Marchenko–Pastur edge", **grey)
        if edges is not None:
            row[0].set_ylim(0, None)  # both panels of the row: they share the axis
        row[0].set_ylabel(label)
    plt.setp(axes[1], xlabel="layer")
    return fig


def isoscore_small_samples(trials: pd.DataFrame) -> Figure:
    """IsoScore of isotropic samples by their size: plug-in and bias-corrected, ± one s.d."""
    fig, ax = plt.subplots(figsize=(7, 3.4))
    sizes = trials.n.unique()
    for i, kind in enumerate(["plug-in", "bias-corrected"]):
        mean, sd = trials.groupby("n")[kind].mean(), trials.groupby("n")[kind].std()
        style = {**look(i), "color": ("0.6", PALETTE[0])[i]}
        ax.errorbar(sizes, mean, yerr=sd, capsize=3, label=kind, **style)
    ax.axhline(1, color="0.8", lw=4, zorder=0)
    ax.annotate("the truth", (256, 1), xytext=(8, 6), textcoords="offset points", color="0.4")
    log_ticks(ax, sizes)
    ax.set(xlabel="sample size n (d = 64)", ylabel="IsoScore", ylim=(0, 1.7))
    ax.set_title("The plug-in score needs many more points than dimensions")
    ax.legend(loc="lower right")
    return fig


def intrinsic_dimension_by_layer(table: pd.DataFrame) -> Figure:
    """TwoNN dimension of both spaces, on a logarithmic axis."""
    fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, sharey=True)
    for ax, space in zip(axes, table.space.unique(), strict=True):
        _lines(ax, table, "intrinsic dimension", space)
        ax.set_yscale("log")
        ax.set_yticks([3, 10, 30, 100], ["3", "10", "30", "100"], minor=False)
        ax.minorticks_off()
    axes[0].set_ylabel("intrinsic dimension (TwoNN)")
    axes[1].legend(loc="center right", bbox_to_anchor=(1, 0.55))
    return fig


def _lines(
    ax: Axes,
    table: pd.DataFrame,
    measure: str,
    space: str,
    *,
    clouds: Sequence[str] = tuple(CLOUD_STYLE),
    error: str | None = None,
    **overrides: object,
) -> None:
    """One measure by layer: a line per cloud, with ± 2 standard errors where there are any."""
    for cloud in clouds:
        part = table[(table.space == space) & (table.cloud == cloud)]
        bars = None if error is None else 2 * part[error]
        style = {**CLOUD_STYLE[cloud], **overrides}
        ax.errorbar(part.layer, part[measure], yerr=bars, capsize=3, label=cloud, **style)
    ax.set(xlabel="layer", title=space, xticks=sorted(table.layer.unique()))


def draw_layer(
    table: pd.DataFrame, cosines: Mapping[int, np.ndarray], layer: int, *, measures: Sequence[str]
) -> Figure:
    """Measures of one layer beside its references, and the cosines of its pairs of vectors.

    Parameters
    ----------
    table : DataFrame
        As above, of measures in about [0, 1].
    cosines : mapping of int to ndarray
        By layer, those of random pairs of vectors.
    measures : sequence of str
        Columns to show, from top to bottom.

    Raises
    ------
    ValueError
        The table holds no such layer.
    """
    spaces = list(dict.fromkeys(table.space))
    fig, axes = plt.subplots(1, len(spaces) + 1, figsize=(4.2 * (len(spaces) + 1), 3.4))
    for ax, space in zip(axes, spaces, strict=False):
        _measures(ax, _rows(table, space, layer), measures)
        ax.set_title(f"layer {layer}: {space}")
        ax.set_yticks(range(len(measures)), measures if ax is axes[0] else [])
    fig.legend(*axes[-2].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    _cosines(axes[-1], cosines[layer])
    axes[-1].set_title(f"layer {layer}: cosines of pairs")
    return fig


def layer_stages(
    table: pd.DataFrame,
    cosines: Mapping[int, np.ndarray],
    layers: Sequence[int],
    *,
    measures: Sequence[str],
) -> Figure:
    """The same for several layers, of the last space, for readers without a kernel."""
    figsize = (3.1 * len(layers), 5)
    fig, axes = plt.subplots(2, len(layers), figsize=figsize, sharex="row", squeeze=False)
    space = table.space.iloc[-1]
    for (upper, lower), layer in zip(axes.T, layers, strict=True):
        _measures(upper, _rows(table, space, layer), measures)
        upper.set_title(f"layer {layer}")
        upper.set_yticks(range(len(measures)), measures if upper is axes[0, 0] else [])
        _cosines(lower, cosines[layer])
    fig.legend(*axes[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return fig


def describe_layer(
    table: pd.DataFrame, cosines: Mapping[int, np.ndarray], layer: int, *, measures: Sequence[str]
) -> str:
    """The encoder's numbers of one layer, in a sentence per space."""
    said = []
    for space in dict.fromkeys(table.space):
        rows = _rows(table, space, layer)
        row = rows[rows.cloud == "encoder"]
        values = (f"{name} {row[name].iloc[0]:.2f}" for name in measures if len(row))
        said.append(f"Layer {layer}, {space}: {', '.join(values) or 'one point, no shape'}.")
    return " ".join([*said, f"Mean cosine of pairs: {np.mean(cosines[layer]):.2f}."])


def layer_explorer(
    table: pd.DataFrame, cosines: Mapping[int, np.ndarray], *, measures: Sequence[str]
) -> Explorer:
    """Move through the layers; the parameters are those of `draw_layer`."""
    return Explorer(
        {"layer": slider(sorted(cosines), name="layer")},
        lambda layer: draw_layer(table, cosines, layer, measures=measures),
        lambda layer: describe_layer(table, cosines, layer, measures=measures),
    )


def _rows(table: pd.DataFrame, space: str, layer: int) -> pd.DataFrame:
    if layer not in set(table.layer):
        raise ValueError(
            f"layer: {layer} is not in the table, which has {sorted(set(table.layer))}"
        )
    return table[(table.space == space) & (table.layer == layer)]


def _measures(ax: Axes, rows: pd.DataFrame, measures: Sequence[str]) -> None:
    for cloud, style in CLOUD_STYLE.items():
        values = rows.loc[rows.cloud == cloud, list(measures)]
        if len(values):
            points = {**style, "linestyle": "none"}
            ax.plot(values.iloc[0], range(len(measures)), label=cloud, **points)
    ax.set(xlim=(-0.05, 1.1), ylim=(len(measures) - 0.5, -0.5))
    ax.grid(axis="y", color="0.9")
    if not len(rows):
        ax.text(0.5, 0.5, "one point:\nno shape", transform=ax.transAxes, ha="center", va="center")


def _cosines(ax: Axes, cosines: np.ndarray) -> None:
    ax.hist(cosines, bins=np.linspace(-1, 1, 81), density=True, histtype="stepfilled", color="0.7")
    ax.axvline(np.mean(cosines), color="black", ls="--")
    ax.set(xlabel="cosine (dashed: mean)", xlim=(-0.5, 1.02))
    bars_only(ax)
