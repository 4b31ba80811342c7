"""Figures of loss change allocation and of the two encoders, from tables of the experiments."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shrink_utils.study.dynamics.experiment import CELL, allocations
from shrink_utils.study.dynamics.reading import (
    COUNTED,
    OBJECTIVE_NAMES,
    hurting_steps,
    profile_correlations,
    profiles_of,
    published_steps,
)
from shrink_utils.study.figures import MARKERS, PALETTE, legend_below, looks_of
from shrink_utils.training.dynamics import TRUNK, shares

PANELS = {
    "masked LM": ("mlm", ""),
    "causal LM": ("clm", ""),
    "translation: encoder": ("mt", "encoder"),
    "translation: decoder": ("mt", "decoder"),
}
PARTS = {
    "embeddings": ["embedding"],
    "head": ["head"],
    "queries and keys": ["query", "key", "cross query", "cross key"],
    "values and out": ["value", "out", "cross value", "cross out"],
    "W1 and W2": ["W1", "W2"],
    "LayerNorm": ["LayerNorm"],
}
PART_OF = {component: part for part, members in PARTS.items() for component in members}
DIFFERENCES = {
    "seed": "seed alone\n(the floor)",
    "size": "seed and\ndata size",
    "source": "seed and\ndomain",
}


def trunk_shares(dynamics: pd.DataFrame) -> Figure:
    """Shares of the trunk's loss change by layer and component, means over seeds."""
    grids = [_mean_shares(dynamics, *panel) for panel in PANELS.values()]
    top = 100 * max(grid.max().max() for grid in grids)
    widths = [len(grid.columns) for grid in grids]
    fig, axes = plt.subplots(1, 4, figsize=(13, 3.8), width_ratios=widths)
    colours = {"cmap": "vlag_r", "vmin": -top, "vmax": top, "cbar": False}
    text = {"fmt": ".0f", "annot_kws": {"size": 8}, "linewidths": 0.5}
    for ax, grid, title in zip(axes, grids, PANELS, strict=True):
        rounded = (100 * grid).round() + 0.0  # no −0
        sns.heatmap(100 * grid, ax=ax, annot=rounded, **colours, **text)
        ax.set(title=title, xlabel="", ylabel="layer" if ax is axes[0] else "")
        ax.tick_params(axis="y", rotation=0)
        ax.tick_params(axis="x", rotation=90)
    label = "share of the trunk's ΔL, %"
    fig.colorbar(axes[0].collections[0], ax=axes, shrink=0.8, label=label)
    return fig


def contributions_over_time(dynamics: pd.DataFrame) -> Figure:
    """Cumulative contributions by group of components, beside the change of the loss."""
    fig, axes = plt.subplots(2, 3, figsize=(12, 5.6), sharex=True)
    for (above, below), (objective, name) in zip(axes.T, OBJECTIVE_NAMES.items(), strict=True):
        rows = dynamics[dynamics.objective == objective]
        losses = rows[rows.quantity == "loss"].pivot(index="step", columns="seed", values="value")
        loss, parts = losses.mean(axis=1), _cumulative(dynamics, objective)
        above.plot(loss - loss.iloc[0], color="0.6", lw=4, label="change of the loss")
        above.plot(parts.sum(axis=1), color="black", lw=1, label="sum of all contributions")
        every = max(1, len(parts) // 6)
        for part, style in looks_of(PARTS).items():
            ax = above if part == "embeddings" else below
            ax.plot(parts[part], label=part, **style, markevery=every, markersize=5)
        above.set(title=name)
        below.set(xlabel="training step")
    for row, label in zip(axes, ("cumulative (nats)", "smaller parts (nats)"), strict=True):
        row[0].set_ylabel(label)
        place = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
        row[2].legend(*row[0].get_legend_handles_labels(), fontsize="small", **place)
    return fig


def hurting_shares(dynamics: pd.DataFrame) -> Figure:
    """Share of each component in the block-steps that hurt, beside the published one."""
    published = published_steps().set_index(["objective", "component"]).share
    fig, axes = plt.subplots(1, 3, figsize=(12, 3.4), sharey=True)
    places = np.arange(len(COUNTED))
    for ax, (objective, name) in zip(axes, OBJECTIVE_NAMES.items(), strict=True):
        y = 100 * published.loc[objective].reindex(COUNTED)
        dash = {"color": PALETTE[0], "marker": "_", "markersize": 12, "markeredgewidth": 3}
        ax.plot(places - 0.2, y, label="Vázquez et al. 2022", linestyle="", **dash)
        rows = dynamics[dynamics.objective == objective]
        for i, gradient in enumerate(("fixed set", "mini-batch"), start=1):
            style = {"color": PALETTE[i], "marker": MARKERS[i], "markersize": 5, "alpha": 0.8}
            label = f"ours, {gradient}"
            for _, record in rows.groupby("seed"):
                y, x = 100 * hurting_steps(record, gradient).share, places + 0.2 * (i - 1)
                ax.plot(x, y, label=label, linestyle="", **style)
                label = None  # once
        ax.axhline(100 / 6, color="0.6", lw=1, linestyle=":")
        ax.set(title=name, xticks=range(len(COUNTED)), xticklabels=COUNTED)
    axes[0].set_ylabel("share of block-steps\nthat hurt, %")
    legend_below(fig, axes[0], 3)
    return fig


def profile_stability(stability: pd.DataFrame) -> Figure:
    """Shares by component for every text, and correlations of profiles of different seeds."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(12, 3.8), width_ratios=[2.2, 1])
    _component_shares(left, profiles_of(stability))
    _correlations(right, stability)
    return fig


def _by_seed(dynamics: pd.DataFrame, objective: str) -> dict[int, pd.DataFrame]:
    """The allocation of every run of an objective."""
    runs = dynamics[dynamics.objective == objective].groupby("seed")
    return {seed: allocations(record) for seed, record in runs}


def _mean_shares(dynamics: pd.DataFrame, objective: str, stack: str) -> pd.DataFrame:
    """Means over seeds of the shares within the trunk, both stacks together: layer by component."""
    records = _by_seed(dynamics, objective).values()
    grids = [shares(record, "stack", *CELL, trunk=True) for record in records]
    grid = (sum(grids) / len(grids)).loc[stack].unstack()
    return grid[[component for component in TRUNK if component in grid]]


def _cumulative(dynamics: pd.DataFrame, objective: str) -> pd.DataFrame:
    """By step and part, mean over seeds."""
    runs = []
    for record in _by_seed(dynamics, objective).values():
        cells = record.assign(part=record.component.map(PART_OF)).groupby(["step", "part"])
        runs.append(cells.value.sum().unstack().cumsum())
    return sum(runs) / len(runs)


def _component_shares(ax: Axes, profiles: pd.DataFrame) -> None:
    components = profiles.T.groupby(level="component").sum().T
    kinds = [component for component in TRUNK if component in components]
    for i, (source, rows) in enumerate(components.groupby(level="source")):
        for j, (size, of_size) in enumerate(rows.groupby(level="size")):
            x = np.arange(len(kinds)) + 0.1 * (3 * i + j - 2.5)
            mean, spread = 100 * of_size[kinds].mean(), 100 * of_size[kinds].std()
            style = {"color": PALETTE[i + 1], "marker": MARKERS[j], "linestyle": ""}
            label = f"{source}, {size} sentences"
            ax.errorbar(x, mean, spread, capsize=2, markersize=5, label=label, **style)
    ax.set(xticks=range(len(kinds)), xticklabels=kinds)
    ax.set(ylabel="share of the trunk's ΔL, %", title="mean ± s.d. over seeds")
    ax.legend(fontsize="small")


def _correlations(ax: Axes, stability: pd.DataFrame) -> None:
    """Of pairs of profiles, and of every profile with the number of parameters."""
    pairs, profiles = profile_correlations(stability), profiles_of(stability)
    count = stability.drop_duplicates(CELL).set_index(CELL).parameters.reindex(profiles.columns)
    for x, kind in enumerate(DIFFERENCES):
        r = pairs[pairs.differs == kind].r
        spots = x + np.linspace(-0.2, 0.2, len(r))
        ax.plot(spots, r, linestyle="", marker="o", color="0.4", markersize=4)
        ax.plot([x - 0.3, x + 0.3], [r.mean()] * 2, color="black", lw=2)
    by_count = profiles.apply(lambda profile: np.corrcoef(profile, count)[0, 1], axis=1)
    spots = len(DIFFERENCES) + np.linspace(-0.2, 0.2, len(by_count))
    ax.plot(spots, by_count, linestyle="", marker="x", color="0.5", markersize=4)
    ax.set(xticks=range(4), ylabel="correlation of profiles", title="one point per pair of runs")
    ax.set_xticklabels([*DIFFERENCES.values(), "parameter\ncounts"], fontsize="small")
