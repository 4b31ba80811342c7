"""A slider over the layers of an encoder: how isotropic they are, and how similar their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shrink_utils.study import figures
from shrink_utils.study.explorer import Explorer, slider

LOOKS = {
    "encoder": (figures.PALETTE[0], "o"),
    "matched Gaussian": (figures.PALETTE[2], "s"),
    "isotropic Gaussian": (figures.PALETTE[1], "^"),
}


def draw_layer(
    table: pd.DataFrame, cosines: Mapping[int, np.ndarray], layer: int, *, measures: Sequence[str]
) -> Figure:
    """Measures of one layer beside its references, and the cosines of its pairs of vectors.

    Parameters
    ----------
    table : DataFrame
        Columns ``space``, ``layer``, ``cloud`` and the measures, each a number in about [0, 1].
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
    fig, axes = plt.subplots(
        2, len(layers), figsize=(3.1 * len(layers), 5), sharex="row", squeeze=False
    )
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
    for cloud, (color, marker) in LOOKS.items():
        values = rows.loc[rows.cloud == cloud, list(measures)]
        if len(values):
            ax.plot(values.iloc[0], range(len(measures)), marker, color=color, label=cloud)
    ax.set(xlim=(-0.05, 1.1), ylim=(len(measures) - 0.5, -0.5))
    ax.grid(axis="y", color="0.9")
    if not len(rows):
        ax.text(0.5, 0.5, "one point:\nno shape", transform=ax.transAxes, ha="center", va="center")


def _cosines(ax: Axes, cosines: np.ndarray) -> None:
    ax.hist(cosines, bins=np.linspace(-1, 1, 81), density=True, histtype="stepfilled", color="0.7")
    ax.axvline(np.mean(cosines), color=figures.PALETTE[2], ls="--")
    ax.set(xlabel="cosine (dashed: mean)", xlim=(-0.5, 1.02), yticks=[])
    ax.spines["left"].set_visible(False)
