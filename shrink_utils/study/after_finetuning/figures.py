"""Figures of chapter 08: isotropy, removed directions and decoded words before and after."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shrink_utils.study.figures import (
    ARM_STYLE,
    LINESTYLES,
    REFERENCE_STYLE,
    heatmap,
    legend_below,
    mean_line,
)
from shrink_utils.study.runs import Run

STYLE = {
    "pretrained": {"color": "0.35", "linestyle": LINESTYLES[4], "marker": "P"},
    "isotropic": REFERENCE_STYLE["isotropic Gaussian"],
    **ARM_STYLE,
}
NAMES = {"isotropic": "isotropic Gaussian", "none": "fine-tuned (none)"}
MEASURES = {
    "log I(W), unit norm": "log I(W), unit norm (nats)",
    "IsoScore": "IsoScore, corrected",
    "AvgSim": "AvgSim (cosine)",
}
VECTORS = {"cls": "[CLS] vectors", "mean": "mean over the tokens"}
SIDES = {0: "the k longest directions removed", 1: "control: the next k removed"}
PROBES = {
    "frequency": "word frequency\n($R^2$, new words)",
    "type": "word type\n(accuracy, new sentences)",
}


def arms_of(shape: pd.DataFrame) -> list[str]:
    """The fine-tuned arms of the first task, in the order of the table."""
    first = shape[shape.task == shape.task.iloc[0]]
    return [arm for arm in first.arm.unique() if arm not in ("pretrained", "isotropic")]


def treatment_names(k: int) -> dict[tuple[str, int, int], str]:
    """The treatments that are compared, by (name, directions removed, directions skipped)."""
    return {
        ("untreated", 0, 0): "untreated",
        ("global", 0, 0): "zero mean",
        ("clusters", 0, 0): "clustered\nzero mean",
        ("global", k, 0): f"global\nlongest {k}",
        ("clusters", k, 0): f"clusters\nlongest {k}",
        ("global", k, k): f"global\nnext {k}",
        ("clusters", k, k): f"clusters\nnext {k}",
    }


def isotropy_by_layer(shape: pd.DataFrame) -> Figure:
    """Three measures of the [CLS] vectors of the first task by layer, a line per cloud."""
    rows = _first_task(shape)
    fig, axes = plt.subplots(1, 3, figsize=(12, 3.7), sharex=True)
    for ax, (measure, label) in zip(axes, MEASURES.items(), strict=True):
        _draw(ax, rows[rows.measure == measure], "layer", ["isotropic", "pretrained"], shape)
        ax.set(xlabel="layer", ylabel=label, xticks=sorted(shape.layer.unique()))
    axes[0].set_title(f"[CLS] vectors, {rows.task.iloc[0]}")
    legend_below(fig, axes[0], 6)
    return fig


def elongation(shape: pd.DataFrame, run: Run) -> Figure:
    """Number of elongated directions by layer, and a run's spectrum before and after."""
    rows, layers = _first_task(shape), sorted(shape.layer.unique())
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.9))
    counts = rows[rows.measure == "elongated directions"]
    _draw(left, counts, "layer", ["isotropic", "pretrained"], shape)
    left.set(xlabel="layer", ylabel="number of elongated directions", xticks=layers)
    left.set(title=f"eigenvalues above 5 × the mean, n = {rows.n.iloc[0]}")
    legend_below(fig, left, 6)
    for when, cloud in (("before", "pretrained"), ("after", "none")):
        x = run.embeddings[when].double()
        eigenvalues = torch.linalg.svdvals(x - x.mean(0)).square()
        relative = eigenvalues / eigenvalues.sum() * x.shape[1]
        look = {name: STYLE[cloud][name] for name in ("color", "linestyle")}
        label = NAMES.get(cloud, cloud)
        right.plot(range(1, len(relative)), relative[:-1], label=label, **look)
    right.axhline(5, color="0.6", lw=1)
    offset = {"xytext": (0, -12), "textcoords": "offset points", "color": "0.4"}
    right.annotate("5 × the mean", (1, 5), **offset)
    right.set(xscale="log", yscale="log", xlabel="direction, longest first", ylim=(1e-3, None))
    title = f"spectrum of layer {layers[-1]}, seed {run.config.seed}"
    right.set(ylabel="eigenvalue (mean = 1)", title=title)
    right.legend(fontsize="small")
    return fig


def removal(shape: pd.DataFrame) -> Figure:
    """Probe accuracy against the number of directions removed, the longest and the next ones."""
    accuracy = shape[shape.measure == "accuracy"]
    commonest = accuracy[accuracy.treatment == "commonest"].value.iloc[0]
    fig, axes = plt.subplots(2, 2, figsize=(10.5, 6.6), sharex=True, sharey=True)
    for row, (vectors, spoken) in zip(axes, VECTORS.items(), strict=True):
        whole = accuracy[(accuracy.vectors == vectors) & (accuracy.treatment == "global")]
        for ax, (is_control, side) in zip(row, SIDES.items(), strict=True):
            chosen = whole[whole.skipped == is_control * whole.removed]
            _draw(ax, chosen, "removed", ["pretrained"], shape)
            ax.axhline(commonest, color="0.6", lw=1, zorder=0)
            ax.set(title=f"{spoken}: {side}", xlabel="", ylabel="")
            ax.set_xticks(sorted(whole.removed.unique()))
        row[0].set_ylabel("probe accuracy")
    for ax in axes[1]:
        ax.set_xlabel("k, directions removed (0: mean subtracted)")
    _name_line(axes[1, 1], commonest, "commonest class")
    legend_below(fig, axes[0, 0], 5)
    return fig


def treatment_grid(shape: pd.DataFrame, k: int) -> Figure:
    """Heatmap of probe accuracy by arm and treatment, for [CLS] and mean vectors."""
    accuracy = shape[shape.measure == "accuracy"]
    commonest = accuracy[accuracy.treatment == "commonest"].value.iloc[0]
    names, keys = treatment_names(k), ["treatment", "removed", "skipped"]
    fig, axes = plt.subplots(1, 2, figsize=(13, 3.6), sharey=True, width_ratios=[1, 1.15])
    for ax, (vectors, spoken) in zip(axes, VECTORS.items(), strict=True):
        cell = accuracy[accuracy.vectors == vectors]
        wide = cell.pivot_table(index="arm", columns=keys, values="value", sort=False)
        wide = wide.loc[["pretrained", *arms_of(shape)], list(names)]
        wide = wide.set_axis(list(names.values()), axis=1)
        look = {"vmin": commonest, "vmax": accuracy.value.max(), "cbar": vectors == "mean"}
        heatmap(ax, wide, cbar_kws={"label": "probe accuracy (mean of seeds)"}, **look)
        ax.set(title=spoken)
        ax.tick_params(axis="x", rotation=0, labelsize="x-small", length=0)
        ax.tick_params(axis="y", length=0)
    return fig


def words_by_layer(words: pd.DataFrame) -> Figure:
    """How well word frequency and word type are decoded by layer, with shuffled labels below."""
    fig, axes = plt.subplots(1, 2, figsize=(10.5, 3.8))
    for ax, (probe, label) in zip(axes, PROBES.items(), strict=True):
        cell = words[words.probe == probe]
        true, shuffled = cell[cell.labels == "true"], cell[cell.labels == "shuffled"]
        _draw(ax, true, "layer", ["pretrained"], words)
        control = shuffled.groupby("layer").value.mean()
        ax.plot(control, color="0.6", linestyle=":", label="labels shuffled")
        ax.set(xlabel="layer", ylabel=label, xticks=sorted(cell.layer.unique()))
        ax.set(title=f"{probe}, n = {cell.n.iloc[0]} vectors")
    legend_below(fig, axes[0], 6)
    return fig


def _first_task(shape: pd.DataFrame) -> pd.DataFrame:
    return shape[(shape.task == shape.task.iloc[0]) & (shape.vectors == "cls")]


def _draw(
    ax: Axes, rows: pd.DataFrame, x: str, references: Sequence[str], table: pd.DataFrame
) -> None:
    """Mean over seeds of `value` by the column x, a line per cloud, a band of ± one s.d."""
    for cloud in [*references, *arms_of(table)]:
        seeds = rows[rows.arm == cloud].pivot(index=x, columns="seed", values="value")
        mean_line(ax, seeds, label=NAMES.get(cloud, cloud), markersize=5, **STYLE[cloud])


def _name_line(ax: Axes, y: float, name: str) -> None:
    """Write the name of a horizontal line above its right end."""
    place = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    look = {"ha": "right", "va": "bottom", "fontsize": "small", "color": "0.4"}
    ax.annotate(name, (0.98, y), xytext=(0, 3), **place, **look)
