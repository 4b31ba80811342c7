"""Vietoris–Rips complexes and their bars (chapter 04): figures, and a slider over the scale."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon
from torch import Tensor

from shrink_utils.names import unknown_name
from shrink_utils.study.explorer import Explorer, slider
from shrink_utils.study.figures import PALETTE, bars_only
from shrink_utils.topology import (
    h0_barcode,
    persistent_entropy,
)

SCALES = [step / 20 for step in range(0, 121)]  # 0 to 6 in steps of 0.05


def example_cloud(name: str) -> Tensor:
    """One of `CLOUDS`, the same points every time, float64, shape (n, 2), within 10 by 6."""
    if name not in CLOUDS:
        raise unknown_name("name", "cloud", name, CLOUDS)
    generator = torch.Generator().manual_seed(0)
    return CLOUDS[name](lambda n: torch.randn(n, 2, generator=generator, dtype=torch.float64))


def _groups(centres: list[tuple[float, float]], n: int, spread: float, noise: Callable) -> Tensor:
    middle = torch.tensor(centres, dtype=torch.float64).repeat_interleave(n, dim=0)
    return middle + spread * noise(len(middle))


def _circle(noise: Callable) -> Tensor:
    angle = 2 * math.pi * torch.arange(16, dtype=torch.float64) / 16
    return torch.stack([5 + 2.4 * angle.cos(), 3 + 2.4 * angle.sin()], dim=1) + 0.12 * noise(16)


def _line(noise: Callable) -> Tensor:
    along = torch.linspace(0.8, 9.2, 12, dtype=torch.float64)
    return torch.stack([along, 1 + 0.45 * along], dim=1) + 0.15 * noise(12)


def _far(noise: Callable) -> Tensor:
    near = _groups([(2.5, 3.0)], 12, 0.9, noise)
    return torch.cat([near, _groups([(9.0, 4.5)], 4, 0.08, noise)])


def _grid(noise: Callable) -> Tensor:
    return torch.cartesian_prod(torch.arange(2.0, 9, 2), torch.arange(1.0, 6, 2)).double()


CLOUDS: dict[str, Callable[[Callable], Tensor]] = {
    "two clusters": lambda noise: _groups([(2.5, 2.0), (7.0, 4.0)], 7, 0.5, noise),
    "a circle": _circle,
    "a line": _line,
    "a tight cluster far away": _far,
    "an even grid": _grid,
    "one round cloud": lambda noise: _groups([(5.0, 3.0)], 16, 1.1, noise),
}


def draw_complex(ax: Axes, points: Tensor, scale: float, *, balls: bool = True) -> None:
    """Draw the Vietoris–Rips complex of points in the plane at a scale.

    Parameters
    ----------
    points : Tensor, shape (n, 2)
    scale : float
        Length of the longest edge, in the unit of the coordinates.
    balls : bool
        Draw balls of radius scale/2: two of them touch where an edge appears.
    """
    d, n = torch.cdist(points, points), len(points)
    edges = [(i, j) for i in range(n) for j in range(i) if d[i, j] <= scale]
    triangles = [(i, j, k) for i, j in edges for k in range(j) if max(d[i, k], d[j, k]) <= scale]
    if balls:
        circles = [Circle(point, scale / 2) for point in points.tolist()]
        ax.add_collection(PatchCollection(circles, color=PALETTE[6], alpha=0.25, lw=0))
    fill = [Polygon(points[list(corners)].numpy()) for corners in triangles]
    ax.add_collection(PatchCollection(fill, color=PALETTE[4], alpha=0.5, lw=0))
    lines = [points[list(edge)].numpy() for edge in edges]
    ax.add_collection(LineCollection(lines, color="0.45", lw=1))
    ax.plot(*points.T, "o", color=PALETTE[0], markersize=5)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def filtration(points: Tensor, scales: Sequence[float]) -> Figure:
    """The complex of a cloud at four scales."""
    fig, axes = plt.subplots(1, 4, figsize=(12, 3.1), sharex=True, sharey=True)
    for ax, scale in zip(axes, scales, strict=True):
        draw_complex(ax, points, scale)
        ax.set_title(f"ε = {scale}, components: {_components(points, scale)}")
    axes[0].set(xlim=(-1.6, 6.8), ylim=(-2.4, 4.4))
    return fig


def draw_filtration(points: Tensor, scale: float) -> Figure:
    """The complex of points (n, 2) within 10 by 6, beside the bars that have ended or live."""
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), width_ratios=[1.5, 1])
    _panel(left, points, scale)
    _bars(right, h0_barcode(points).lengths, scale)
    fig.get_layout_engine().set(h_pad=0.1)  # titles of square panels, else cut off
    return fig


def filtration_stages(name: str, scales: list[float]) -> Figure:
    """The same for several scales of one of `CLOUDS`, for readers without a kernel."""
    points = example_cloud(name)
    fig, axes = plt.subplots(
        2, len(scales), figsize=(3.2 * len(scales), 4.8), height_ratios=[1.5, 1], squeeze=False
    )
    for (upper, lower), scale in zip(axes.T, scales, strict=True):
        _panel(upper, points, scale)
        _bars(lower, h0_barcode(points).lengths, scale)
    fig.get_layout_engine().set(h_pad=0.1)
    return fig


def describe_filtration(points: Tensor, scale: float) -> str:
    """What the figure shows, in a sentence."""
    lengths = h0_barcode(points).lengths
    living = int((lengths > scale).sum())
    components = "1 component" if living == 0 else f"{living + 1} components"
    entropy = persistent_entropy(lengths).item()
    return (
        f"At scale {scale:.2f} the {len(points)} points form {components}; {len(lengths) - living} "
        f"of {len(lengths)} bars have ended. Entropy of all bars: {entropy:.2f}."
    )


def filtration_explorer() -> Explorer:
    """Choose a cloud, and move the scale."""
    controls = {
        "name": widgets.Dropdown(options=[*CLOUDS], description="cloud"),
        "scale": slider(SCALES, name="scale ε", start=SCALES.index(0.5)),
    }
    return Explorer(
        controls,
        lambda name, scale: draw_filtration(example_cloud(name), scale),
        lambda name, scale: describe_filtration(example_cloud(name), scale),
    )


def _panel(ax: Axes, points: Tensor, scale: float) -> None:
    draw_complex(ax, points, scale)
    title = f"ε = {scale:.2f}, components: {_components(points, scale)}"
    ax.set(xlim=(-1.2, 11.2), ylim=(-1.2, 7.2), title=title)


def _components(points: Tensor, scale: float) -> int:
    return int((h0_barcode(points).lengths > scale).sum()) + 1


def _bars(ax: Axes, lengths: Tensor, scale: float) -> None:
    """Bars as far as the scale has come; what is still to come is pale."""
    lengths = lengths.numpy()
    rows, living = np.arange(len(lengths)), lengths > scale
    ax.barh(rows, lengths, color="0.9", height=0.7)
    ax.barh(rows, lengths.clip(max=scale), color=PALETTE[6], height=0.7, label="alive")
    ax.barh(rows[~living], lengths[~living], color="0.55", height=0.7, label="ended")
    ax.axvline(scale, color=PALETTE[0], ls="--", lw=1.5)
    ax.set(xlabel="scale ε", xlim=(0, max(6.0, 1.05 * float(lengths.max()))))
    ax.set_title(f"{int((~living).sum())} of {len(lengths)} bars ended")
    ax.invert_yaxis()
    bars_only(ax)
