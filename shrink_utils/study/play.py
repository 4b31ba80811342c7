"""A cloud in the plane that the loss moves, step by step (chapter 05)."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import softplus

from shrink_utils.geometry import anisotropy
from shrink_utils.study.figures import CLASS_GREYS, CLASS_MARKERS
from shrink_utils.topology import BarcodeRegularizer


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


def draw_classes(ax: Axes, x: Tensor, labels: Tensor, **look: object) -> None:
    """Points (n, 2) of two classes: two markers and two greys."""
    for label in (0, 1):
        style = dict(color=CLASS_GREYS[label], markersize=4, **look)
        ax.plot(*x[labels == label].T, CLASS_MARKERS[label], **style)
