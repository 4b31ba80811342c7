"""A cloud in the plane that the loss moves, step by step (chapter 05), with controls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import ipywidgets as widgets
import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import softplus

from shrink_utils.geometry import anisotropy
from shrink_utils.study.barcodes import CLOUDS, DRAWN, example_cloud, redraw_when_drawn
from shrink_utils.study.explorer import Explorer, PointCanvas, slider
from shrink_utils.study.figures import ARM_STYLE, CLASS_GREYS
from shrink_utils.study.regularizer import draw_classes
from shrink_utils.topology import BarcodeRegularizer, h0_barcode
from shrink_utils.training import make_regularizer

ROUND = "64 Gaussian points"
ARMS = ("all", "prominent", "published")
WEIGHTS = [0.0, 0.1, 0.3, 1.0, 3.0, 10.0]
STEPS = 100


def descend(
    start: Tensor, labels: Tensor, regularizer: nn.Module | None, *, steps: int, rate: float = 20.0
) -> Tensor:
    """Move points (n, 2) downhill on task loss + regularizer: clouds (steps + 1, n, 2).

    The task is a fixed linear classifier along the first coordinate; labels are 0 and 1.
    """
    clouds = [start]
    for _ in range(steps):
        x = clouds[-1].clone().requires_grad_()
        loss = softplus((1 - 2 * labels) * x[:, 0]).mean()
        if regularizer is not None:
            loss = loss + regularizer(x, labels).loss
        (gradient,) = torch.autograd.grad(loss, x)
        clouds.append((x - rate * gradient).detach())
    return torch.stack(clouds)


def measure(x: Tensor, labels: Tensor) -> dict[str, float]:
    """First centred score of a cloud, and the entropy missing over all bars (mean of classes)."""
    out = BarcodeRegularizer("all")(x, labels)
    missing = (out.n_bars.clamp(min=1).double().log() - out.entropy.double()).mean().item()
    return {"score": anisotropy(x, k=1, center=True)[0].item(), "missing": missing}


def plane_clouds(planes: Mapping[str, Tensor], labels: Tensor) -> Figure:
    """Both classes in the plane, a panel per cloud, with what `measure` says."""
    fig, axes = plt.subplots(1, len(planes), figsize=(13, 3.9), sharex=True, sharey=True)
    fig.get_layout_engine().set(h_pad=0.15)  # titles of square panels, else cut off
    for ax, (name, x) in zip(axes, planes.items(), strict=True):
        draw_classes(ax, x, labels, alpha=0.8, markeredgewidth=0)
        found = measure(x, labels)
        ax.set_title(f"{name}\nscore {found['score']:.3f}\nln m − E = {found['missing']:.3f}")
        ax.set(aspect="equal", xlabel="direction of the task")
    axes[0].set_ylabel("across the task")
    return fig


@dataclass(frozen=True, eq=False)
class Descent:
    """All steps of a cloud that goes downhill."""

    clouds: Tensor  # (steps + 1, n, 2)
    labels: Tensor  # (n,)
    history: pd.DataFrame  # what `measure` says, a row per step


def draw_step(path: Descent, step: int, *, color: str = "black") -> Figure:
    """The cloud at a step, its classes' bars, and both measures up to there."""
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.3), layout="none")
    fig.subplots_adjust(0.05, 0.17, 0.94, 0.88, wspace=0.3)  # a layout engine is too slow here
    _cloud(left, path, step)
    _bars(middle, path.clouds[step], path.labels)
    right.plot(path.history.score[: step + 1], "-", color=color)
    right.plot(path.history.missing[: step + 1], "--", color=color)
    right.set(xlim=(0, STEPS), ylim=(0, 1.02), xlabel="step")
    right.set_title("first score (line), ln m − E (dashes)")
    return fig


def play_explorer() -> Explorer:
    """Choose or draw a cloud, an arm and a weight; then play the steps of the descent."""
    canvas = PointCanvas()
    controls = {
        "cloud": widgets.Dropdown(options=[ROUND, *CLOUDS, DRAWN], description="cloud"),
        "arm": widgets.Dropdown(options=ARMS, description="arm"),
        "weight": slider(WEIGHTS, name="weight", start=3),
        "step": widgets.IntSlider(max=STEPS, description="step", continuous_update=False),
    }
    play = widgets.Play(max=STEPS, step=2, interval=200)
    widgets.jslink((play, "value"), (controls["step"], "value"))

    def path(cloud: str, arm: str, weight: float) -> Descent:
        drawn = canvas.cloud().tolist() if cloud == DRAWN else []
        return _descent(cloud, tuple(map(tuple, drawn)), arm, weight)

    explorer = Explorer(
        controls,
        lambda cloud, arm, weight, step: draw_step(
            path(cloud, arm, weight), step, color=ARM_STYLE[arm]["color"]
        ),
        lambda cloud, arm, weight, step: _describe(path(cloud, arm, weight), step),
        extra=widgets.VBox([play, canvas]),
    )
    redraw_when_drawn(explorer, canvas, controls["cloud"])
    return explorer


@lru_cache(maxsize=16)
def _descent(cloud: str, drawn: tuple[tuple[float, ...], ...], arm: str, weight: float) -> Descent:
    """In units of the cloud's spread; every second point is of class 1."""
    if cloud == ROUND:
        start = torch.randn(64, 2, generator=torch.Generator().manual_seed(0)).double()
    else:
        start = torch.tensor(drawn).double() if drawn else example_cloud(cloud)
    start = (start - start.mean(0)) / start.std().clamp(min=1e-9)
    labels = torch.arange(len(start)) % 2
    regularizer = make_regularizer(arm, weight=weight) if weight else None
    clouds = descend(start, labels, regularizer, steps=STEPS, rate=20 * len(start) / 64)
    return Descent(clouds, labels, pd.DataFrame([measure(x, labels) for x in clouds]))


def _describe(path: Descent, step: int) -> str:
    now = path.history.loc[step]
    return (
        f"After {step} steps the first score is {now.score:.2f} and {now.missing:.3f} nats "
        "of the entropy are missing."
    )


def _cloud(ax: Axes, path: Descent, step: int) -> None:
    x = path.clouds[step]
    for label in (0, 1):
        members = x[path.labels == label]
        edges = members[h0_barcode(members).edges]  # (m, 2, 2)
        ax.add_collection(LineCollection(edges.numpy(), color="0.8", lw=1, zorder=0))
    draw_classes(ax, x, path.labels)
    reach = 1.1 * path.clouds.abs().max().item()
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
    ax.set(xlabel="direction of the task")
    ax.set_title(f"step {step}")


def _bars(ax: Axes, x: Tensor, labels: Tensor) -> None:
    offset, longest = 0, 0.0
    for label, color in enumerate(CLASS_GREYS):
        lengths = h0_barcode(x[labels == label]).lengths
        rows = torch.arange(offset, offset + len(lengths))
        bars = torch.stack(
            [torch.stack([0 * lengths, rows], 1), torch.stack([lengths, rows], 1)], 1
        )
        ax.add_collection(LineCollection(bars.numpy(), color=color, lw=2))
        offset, longest = offset + len(lengths) + 2, max(longest, *lengths.tolist(), 1e-9)
    ax.set(xlim=(0, 1.05 * longest), ylim=(offset, -1), yticks=[], xlabel="length")
    ax.set_title("bars of the two classes")
