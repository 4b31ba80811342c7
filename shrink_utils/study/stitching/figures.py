"""Figures of stitched models and of families, from tables of the experiment."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shrink_utils.study.figures import MARKERS, PALETTE, heatmap, legend_below, looks_of

PAIRS = {  # kinds of pairs, as queries of `measure_stitched`
    "same model": "relation == 'same'",
    "other seed": "relation == 'seed'",
    "untrained bottom": "relation == 'untrained'",
    "GeLU below, SoLU above": "relation == 'activation' and front == 'gelu'",
    "SoLU below, GeLU above": "relation == 'activation' and front == 'solu'",
}
MAP_NAMES = {"identity": "identity", "affine": "least squares", "trained": "trained"}
STYLE = looks_of(["other seed", "same model", *list(PAIRS)[2:]])


class Turned(NamedTuple):
    """Change of a stitch when its two models change places."""

    mixed: pd.Series  # SoLU below GeLU less GeLU below SoLU, by the pair's number
    alike: pd.Series  # the same of two seeds, by activation and both numbers
    floor: float  # the root mean square of `alike`, where no direction is special


def turned(stitches: pd.DataFrame, value: str) -> Turned:
    """Differences of a column (penalty or loss) between both directions of each pair of models."""
    mixed, alike = (stitches[stitches.relation == name] for name in ("activation", "seed"))
    mixed = mixed.groupby(["front_number", "front"])[value].mean().unstack()
    alike = alike.groupby(["front", "front_number", "back_number"])[value].mean()
    alike = alike - alike.swaplevel().reindex(alike.index)
    return Turned(mixed["solu"] - mixed["gelu"], alike, float((alike**2).mean() ** 0.5))


def penalty_grids(stitches: pd.DataFrame, floors: pd.DataFrame) -> Figure:
    """Penalty of least squares by the layers of both models, per kind of pair, and its floor."""
    affine = stitches[stitches.kind == "affine"]
    grids = {name: _by_layers(affine.query(query), "penalty") for name, query in PAIRS.items()}
    grids["noise floor"] = _by_layers(floors[floors.kind == "affine"], "floor")
    top = max(grid.to_numpy().max() for grid in grids.values())
    fig, axes = plt.subplots(2, 3, figsize=(10.5, 6.4))
    for ax, (name, grid) in zip(axes.flat, grids.items(), strict=True):
        heatmap(ax, grid, vmax=top, annot_kws={"size": 8})
        ax.set(title=name, xlabel="layer of the upper model", ylabel="layer of the lower model")
    fig.colorbar(axes[0, 0].collections[0], ax=axes, shrink=0.6, label="penalty (nats per token)")
    return fig


def penalties_by_map(stitches: pd.DataFrame, floors: pd.DataFrame) -> Figure:
    """Penalty between equal layers under each map; the floor is around the mean of other seeds."""
    equal = stitches[stitches.front_layer == stitches.back_layer]
    floors = floors[floors.front_layer == floors.back_layer].set_index(["kind", "front_layer"])
    fig, axes = plt.subplots(1, 3, figsize=(12.5, 4.2), width_ratios=[1, 1, 1.1])
    for ax, kind in zip(axes, ("identity", "affine"), strict=False):
        _penalty_lines(ax, equal[equal.kind == kind], floors.floor[kind])
        ax.set(title=MAP_NAMES[kind])
    trained = equal[equal.kind == "trained"]
    layer = int(trained.front_layer.median())  # where the profile trains maps, the middle one
    _penalty_points(axes[2], trained[trained.front_layer == layer], floors.floor["trained", layer])
    axes[2].set(title=f"trained, layer {layer}: one point per pair")
    for ax in axes:
        ax.axhline(0, color="0.6", lw=1)
    axes[0].set_ylabel("penalty (nats per token)")
    legend_below(fig, axes[0], 5)
    return fig


def direction_differences(stitches: pd.DataFrame) -> Figure:
    """SoLU below GeLU less the reverse per pair, and the same of two seeds of one activation."""
    equal = stitches[(stitches.front_layer == stitches.back_layer) & (stitches.front_layer > 0)]
    fig, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    for ax, kind in zip(axes, ("affine", "trained"), strict=True):
        rows = equal[equal.kind == kind]
        penalty = turned(rows, "penalty")
        numbers, floor = penalty.mixed.index, penalty.floor
        _mixed_differences(ax, penalty.mixed, turned(rows, "loss").mixed)
        _seed_differences(ax, penalty.alike, start=len(numbers))
        ax.axhspan(-floor, floor, color="0.88", zorder=0, lw=0)
        ax.axhline(0, color="0.6", lw=1)
        ax.set(title=MAP_NAMES[kind], xticks=range(len(numbers) + 2))
        ax.set_xticklabels([*(f"pair {n}" for n in numbers), "two\nGeLU", "two\nSoLU"])
    axes[0].set_ylabel("SoLU below − GeLU below\n(nats per token)")
    legend_below(fig, axes[0], 4)
    return fig


def _by_layers(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    return rows.pivot_table(index="front_layer", columns="back_layer", values=value)


def _penalty_lines(ax: Axes, rows: pd.DataFrame, floor: pd.Series) -> None:
    """Mean penalty by layer, one line per kind of pair."""
    for name, style in STYLE.items():
        mean = rows.query(PAIRS[name]).groupby("front_layer").penalty.mean()
        ax.plot(mean.index, mean, label=name, **style)
        if name == "other seed":
            ax.fill_between(mean.index, mean - floor, mean + floor, color="0.85", lw=0, zorder=0)
    ax.set(xlabel="layer (of both)", xticks=mean.index)


def _penalty_points(ax: Axes, rows: pd.DataFrame, floor: float) -> None:
    """Penalty at one layer, one point per pair of models."""
    for x, (name, style) in enumerate(STYLE.items()):
        values = rows.query(PAIRS[name]).penalty
        spread = x + np.linspace(-0.2, 0.2, len(values))
        ax.plot(spread, values, **{**style, "linestyle": "none"}, markersize=5)
        if name == "other seed":
            mean = values.mean()
            ax.axhspan(mean - floor, mean + floor, color="0.85", lw=0, zorder=0)
    labels = [name.replace(" ", "\n", 1).replace(", ", ",\n") for name in STYLE]
    ax.set(xticks=range(len(STYLE)))
    ax.set_xticklabels(labels, fontsize="x-small")


def _mixed_differences(ax: Axes, penalty: pd.Series, loss: pd.Series) -> None:
    """One point per pair of a GeLU and a SoLU model."""
    labels = ("by penalty", "by the stitched models' own loss")
    for i, (values, label) in enumerate(zip((penalty, loss), labels, strict=True)):
        x, fill = values.index + 0.2 * i, "none" if i else "full"
        ax.plot(x, values, MARKERS[i], label=label, color=PALETTE[0], fillstyle=fill)


def _seed_differences(ax: Axes, alike: pd.Series, *, start: int) -> None:
    """One point per ordered pair of seeds, from place `start` on."""
    for i, (activation, name) in enumerate({"gelu": "GeLU", "solu": "SoLU"}.items()):
        values = alike[activation].to_numpy()
        x = start + i + np.linspace(-0.25, 0.25, len(values))
        label = f"two {name} models, by penalty"
        ax.plot(x, values, MARKERS[i + 2], color=PALETTE[i + 1], label=label)
