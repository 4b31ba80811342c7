"""Persistence diagrams and what a jitter does to them (chapter 04b)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import gudhi
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from shrink_utils.study.figures import ARM_STYLE, PALETTE
from shrink_utils.topology import barcode

LOOKS = (("o", PALETTE[0]), ("^", "0.55"))  # of H0 and H1
# A rule looks like the arm that uses it ("ratio", "published"); "relative_entropy" has no arm.
_ARMS = (ARM_STYLE["prominent"], ARM_STYLE["published"], {"color": "0.4", "marker": "o"})
RULE_LOOKS = [{name: look[name] for name in ("color", "marker")} for look in _ARMS]


def jitter(points: Tensor, size: float, number: int = 0) -> Tensor:
    """Points (n, d), each moved by `size` in a random direction; `number` says which draw."""
    generator = torch.Generator().manual_seed(1000 + number)  # not those that drew the cloud
    moves = torch.randn(points.shape, generator=generator, dtype=points.dtype)
    return points + size * moves / moves.norm(dim=1, keepdim=True)


def diagram(points: Tensor, dimension: int) -> np.ndarray:
    """Finite (birth, death) pairs of a cloud's Vietoris–Rips filtration, shape (m, 2)."""
    bars = barcode(points.detach(), max_dim=dimension)[dimension]
    return np.stack([bars.births, bars.deaths], axis=1)


def valleys(heights: Sequence[float], pairs: np.ndarray) -> Figure:
    """A profile of heights with the life of each valley that dies, and its diagram."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=[1.6, 1])
    left.plot(heights, "o-", color="0.5")
    for birth, death in pairs:
        place = list(heights).index(birth)
        left.plot([place, place], [birth, death], color=PALETTE[6], lw=4, zorder=0)
    left.set(xlabel="place", ylabel="height", title="Each valley but the lowest dies at a pass")
    draw_diagram(right, [pairs])
    right.set(xlabel="birth (height)", ylabel="death (height)", title="the same as a diagram")
    return fig


def draw_diagram(ax: Axes, found: Sequence[np.ndarray], *, names: bool = False) -> None:
    """Points (birth, death) of dimension 0, 1, … above the diagonal."""
    reach = 1.1 * max(pairs.max(initial=0.1) for pairs in found)
    ax.plot([0, reach], [0, reach], color="0.7", lw=1)
    for dimension, (pairs, (marker, color)) in enumerate(zip(found, LOOKS, strict=False)):
        name = f"$H_{dimension}$" if names else None
        ax.plot(*pairs.T, marker, color=color, markersize=5, alpha=0.8, label=name)
    ax.set(xlim=(-0.03 * reach, reach), ylim=(0, reach), aspect="equal")
    ax.set(xlabel="birth ε", ylabel="death ε")


def diagram_and_betti(points: Tensor, betti: pd.DataFrame) -> Figure:
    """A plane cloud, its diagram, and its Betti curves; `betti` has a column per dimension."""
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6), width_ratios=[1.2, 1, 1.2])
    left.plot(*points.T, "o", color=PALETTE[0], markersize=4)
    left.set(aspect="equal", xticks=[], yticks=[], title="a noisy circle")
    left.spines[:].set_visible(False)
    draw_diagram(middle, [diagram(points, 0), diagram(points, 1)], names=True)
    middle.set_title("diagram")
    middle.legend(loc="lower right", fontsize="small")
    for (name, curve), (_, color), line in zip(betti.items(), LOOKS, ("-", "--"), strict=True):
        right.step(curve.index, curve, line, where="post", color=color, label=name)
    right.set(xlabel="scale ε", ylabel="number of bars alive", title="Betti curves")
    right.yaxis.set_major_locator(MaxNLocator(integer=True))
    right.legend(fontsize="small")
    return fig


def bottleneck(points: Tensor, moved: Tensor) -> float:
    """The larger of the bottleneck distances of two clouds' diagrams in dimensions 0 and 1."""
    distances = [gudhi.bottleneck_distance(diagram(points, k), diagram(moved, k)) for k in (0, 1)]
    return max(distances)


def stability_curves(table: pd.DataFrame, loop: float) -> Figure:
    """Bottleneck distance of jittered clouds by size, under its bound.

    Columns "size" and "bottleneck", a jittered cloud per row; `loop` is the length of the loop's
    bar, and half of it the cost of losing the loop.
    """
    fig, ax = plt.subplots(figsize=(7, 3.6))
    ax.plot(table["size"], table.bottleneck, "o", color=PALETTE[0], markersize=3, alpha=0.6)
    ends = np.array([0, table["size"].max()])
    ax.plot(ends, 2 * ends, color=PALETTE[6], lw=2)
    beside = dict(xytext=(-10, 0), textcoords="offset points", ha="right")
    ax.annotate("bound 2δ", (ends[1], 2 * ends[1]), **beside)
    ax.axhline(loop / 2, color="0.6", ls=":", zorder=0)
    ax.annotate("half the loop's bar", (0, loop / 2), xytext=(0, 4), textcoords="offset points")
    ax.set(xlabel="size δ of the jitter", ylabel="bottleneck distance")
    ax.set_title("No jitter exceeds the bound")
    return fig


def selection_under_jitter(table: pd.DataFrame, rules: Sequence[str]) -> Figure:
    """Entropy, and the number of bars that each rule keeps, of draws of one jitter.

    Columns "entropy" (over that of the cloud itself) and one per rule, a draw per row.
    """
    fig, (left, right) = plt.subplots(1, 2, figsize=(11, 3.4), width_ratios=[1, 1.6])
    left.plot(table.entropy, "o", color=PALETTE[0], markersize=4)
    left.axhline(1, color="0.6", ls=":", zorder=0)
    left.set(ylim=(0, 1.1), xlabel="draw", ylabel="entropy / that of the cloud")
    left.set_title("The entropy stays")
    for rule, look in zip(rules, RULE_LOOKS, strict=True):
        right.plot(table[rule], ls="none", markersize=5, label=rule, **look)
    right.set(ylim=(0, None), xlabel="draw", ylabel="bars kept")
    right.set_title("The number of selected bars jumps")
    fig.legend(loc="outside lower right", ncols=3, fontsize="small")
    return fig


def significant_bars(lengths: Mapping[str, Tensor], limits: Mapping[str, float]) -> Figure:
    """Bars over their mean, those above the null's limit dark; a panel per cloud."""
    fig, axes = plt.subplots(1, len(lengths), figsize=(10, 3.2))
    for ax, (name, bars) in zip(axes, lengths.items(), strict=True):
        relative = (bars / bars.mean()).numpy()
        above = int((relative > limits[name]).sum())
        ax.stairs(relative, fill=True, color="0.8")
        ax.stairs(relative[:above], np.arange(above + 1), fill=True, color=PALETTE[0])
        ax.axhline(limits[name], color=PALETTE[6], lw=2)
        ax.set(xlabel="bar, longest first", title=f"{name}: {above} of {len(bars)} above the limit")
    axes[0].set_ylabel("length / mean length")
    return fig
