"""The filtration scale as a slider: balls grow, components join, bars end."""

from __future__ import annotations

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from shrink_utils.study import figures
from shrink_utils.study.explore.canvas import PointCanvas
from shrink_utils.study.explore.complexes import CLOUDS, draw_complex, example_cloud
from shrink_utils.study.explore.explorer import Explorer, slider
from shrink_utils.topology import h0_barcode, persistent_entropy

__all__ = ["describe_filtration", "draw_filtration", "filtration_explorer", "filtration_stages"]

DRAWN = "the points drawn below"
SCALES = [step / 20 for step in range(0, 121)]  # 0 to 6 in steps of 0.05


def draw_filtration(points: Tensor, scale: float) -> Figure:
    """The complex of a cloud at a scale, beside the bars that have ended and those that live.

    Parameters
    ----------
    points : Tensor, shape (n, 2)
        Within 10 by 6.
    scale : float
        Edges are drawn up to this length.

    Returns
    -------
    Figure
    """
    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), width_ratios=[1.5, 1])
    _panel(left, points, scale)
    _bars(right, h0_barcode(points).lengths, scale)
    fig.get_layout_engine().set(h_pad=0.1)  # titles of square panels, else cut off
    return fig


def filtration_stages(name: str, scales: list[float]) -> Figure:
    """The same for several scales of one of `CLOUDS`: what stands where no slider can move."""
    points = example_cloud(name)
    fig, axes = plt.subplots(
        2, len(scales), figsize=(3.2 * len(scales), 4.4), height_ratios=[1.5, 1], squeeze=False
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
    """Choose a cloud or draw one, and move the scale."""
    canvas = PointCanvas()
    cloud = widgets.Dropdown(options=[*CLOUDS, DRAWN], description="cloud")
    scale = slider(SCALES, name="scale ε", start=SCALES.index(0.5))

    def points(name: str) -> Tensor:
        return canvas.cloud() if name == DRAWN else example_cloud(name)

    explorer = Explorer(
        {"name": cloud, "scale": scale},
        lambda name, scale: draw_filtration(points(name), scale),
        lambda name, scale: describe_filtration(points(name), scale),
        extra=canvas,
    )

    def drawn(change: object) -> None:
        if cloud.value == DRAWN:
            explorer.redraw()
        else:
            cloud.value = DRAWN  # which draws

    canvas.observe(drawn, "points")
    return explorer


def _panel(ax: Axes, points: Tensor, scale: float) -> None:
    draw_complex(ax, points, scale)
    components = int((h0_barcode(points).lengths > scale).sum()) + 1
    ax.set(xlim=(-0.5, 10.5), ylim=(-0.5, 6.5), title=f"ε = {scale:.2f}, components: {components}")


def _bars(ax: Axes, lengths: Tensor, scale: float) -> None:
    """Bars as far as the scale has come; what is still to come is pale."""
    lengths = lengths.numpy()
    rows, living = np.arange(len(lengths)), lengths > scale
    ax.barh(rows, lengths, color="0.9", height=0.7)
    ax.barh(rows, lengths.clip(max=scale), color=figures.PALETTE[1], height=0.7, label="alive")
    ax.barh(rows[~living], lengths[~living], color="0.55", height=0.7, label="ended")
    ax.axvline(scale, color=figures.PALETTE[2], ls="--", lw=1.5)
    ax.set(xlabel="scale ε", yticks=[], xlim=(0, max(6.0, 1.05 * float(lengths.max()))))
    ax.set_title(f"{int((~living).sum())} of {len(lengths)} bars ended")
    ax.invert_yaxis()
    ax.spines["left"].set_visible(False)
