"""The selection rule of *Shrink the longest*, one bar at a time.

`topology.selection` decides all bars at once; here the same decisions are taken as the paper words
them, so that each can be looked at. A test holds the two together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import ipywidgets as widgets
import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from shrink_utils.study import figures
from shrink_utils.study.explorer import Explorer
from shrink_utils.topology import persistent_entropy
from shrink_utils.topology.selection import most_features


@dataclass(frozen=True)
class Step:
    """One bar of one round, ``bars[i]``, and the rule's verdict on it."""

    round: int  # from 1
    bars: tuple[float, ...]  # of this round, longest first; bars[0] is always kept
    i: int
    neutral: tuple[float, ...]  # length ℓ' that would replace the first 1, …, i bars
    c: tuple[float, ...]  # C(1), …, C(i); below 1 the bar is noise
    entropy: tuple[float, ...]  # of the whole list with the first 0, …, i bars replaced

    @property
    def is_feature(self) -> bool:
        """Whether the bar is longer than the length that would replace it."""
        return self.c[-1] >= 1


def selection_steps(lengths: Sequence[float]) -> list[Step]:
    """The decisions of ``prominent_features(rule="ratio")``, in order.

    A round ends with the first bar that is noise; the last round's kept bars are the result.

    Raises
    ------
    ValueError
        There are not two or more positive lengths, or all are equal.
    """
    bars = tuple(sorted((float(length) for length in lengths), reverse=True))
    if len(bars) < 2 or bars[-1] <= 0 or bars[0] == bars[-1]:
        raise ValueError("lengths: expected two or more positive ones that are not all equal")
    steps: list[Step] = []
    for number in range(1, len(bars) + 1):
        steps += _one_round(number, bars)
        kept = bars[: steps[-1].i]
        if len(kept) <= most_features(bars[-1] / bars[0], len(bars)) or len(kept) + 1 >= len(bars):
            break
        bars = (*kept, bars[-1])
    return steps


def _one_round(number: int, bars: tuple[float, ...]) -> list[Step]:
    values = torch.tensor([*bars[1:], bars[0]], dtype=torch.float64)  # the longest at the end
    neutral, ratios, steps = [], [], []
    entropy, before = [persistent_entropy(values).item()], values.sum().item()
    for i in range(1, len(values)):
        rest = values[i:]  # R_i
        neutral.append((rest.sum() / persistent_entropy(rest).exp()).item())  # ℓ'_i
        total = rest.sum().item() + i * neutral[-1]  # S_i
        ratios.append(before / total)
        replaced = torch.cat([rest, torch.full((i,), neutral[-1], dtype=torch.float64)])
        entropy.append(persistent_entropy(replaced).item())
        before = total
        steps.append(Step(number, bars, i, tuple(neutral), tuple(ratios), tuple(entropy)))
        if ratios[-1] < 1:
            return steps
    return steps


def draw_step(steps: list[Step], at: int) -> Figure:
    """The bars, the threshold and the entropy at one of the steps."""
    step = steps[at]
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.4), width_ratios=[1.6, 1, 1])
    _bars(left, step)
    left.legend(fontsize="small", loc="upper right")
    limits = (0.5, len(step.bars) - 0.5)
    middle.plot(range(1, step.i + 1), step.c, "o-", color=figures.PALETTE[1])
    middle.axhline(1, color=figures.PALETTE[2], ls="--")
    middle.set(xlabel="position i", xlim=limits, title="C(i): below 1, noise")
    right.plot(range(step.i + 1), step.entropy, "s-", color=figures.PALETTE[3])
    right.axhline(math.log(len(step.bars)), color="0.6", ls=":")
    right.set(xlabel="bars replaced", xlim=(-0.5, len(step.bars) - 0.5))
    right.set_title("entropy (nats); dotted: ln m")
    return fig


def selection_stages(steps: list[Step]) -> Figure:
    """The bars of every step side by side, for readers without a kernel."""
    columns = min(4, len(steps))
    rows = math.ceil(len(steps) / columns)
    fig, axes = plt.subplots(
        rows, columns, figsize=(3.1 * columns, 2.6 * rows), squeeze=False, sharey=True
    )
    for ax, step in zip(axes.flat, steps, strict=False):
        _bars(ax, step)
    for ax in axes.flat[len(steps) :]:
        ax.set_axis_off()
    axes[0, 0].legend(fontsize="x-small", loc="upper right")
    return fig


def describe_step(steps: list[Step], at: int) -> str:
    """The rule's verdict at one step, in a sentence or two."""
    step = steps[at]
    compared = "longer than" if step.is_feature else "shorter than"
    verdict = "a feature" if step.is_feature else "from here on, noise"
    said = (
        f"Round {step.round}, bar {step.i}: its length {step.bars[step.i]:.3g} is {compared} what "
        f"would replace it, {step.neutral[-1]:.3g} (C = {step.c[-1]:.3f}): {verdict}."
    )
    if at + 1 == len(steps):
        kept = ", ".join(f"{length:.3g}" for length in step.bars[: step.i])
        said += f" Kept in the end: {kept}."
    return said


def selection_explorer(examples: Mapping[str, Sequence[float]]) -> Explorer:
    """Choose a named list of bars, and step through the rule."""
    steps = {name: selection_steps(lengths) for name, lengths in examples.items()}
    which = widgets.Dropdown(options=list(steps), description="bars")
    step = widgets.IntSlider(
        value=1, min=1, max=len(steps[which.value]), description="step", continuous_update=False
    )
    explorer = Explorer(
        {"name": which, "step": step},
        lambda name, step: draw_step(steps[name], min(step, len(steps[name])) - 1),
        lambda name, step: describe_step(steps[name], min(step, len(steps[name])) - 1),
    )
    which.observe(lambda change: setattr(step, "max", len(steps[change.new])), "value")
    return explorer


def _bars(ax: Axes, step: Step) -> None:
    """Longest first: kept, looked at, not yet looked at; dashes where a bar would be replaced."""
    looks = {
        "kept so far": (range(step.i), dict(color=figures.PALETTE[1])),
        "looked at": ([step.i], dict(color=figures.PALETTE[2])),
        "to come": (range(step.i + 1, len(step.bars)), dict(color="0.8")),
    }
    if not step.is_feature:
        looks["noise"] = looks.pop("to come")
        looks["noise"][1].update(facecolor="white", edgecolor="0.5", hatch="///")
    for name, (positions, look) in looks.items():
        ax.bar(positions, [step.bars[i] for i in positions], width=0.75, label=name, **look)
    ax.hlines(step.neutral[-1], 0.5, step.i + 0.5, color="black", ls="--", label="neutral length")
    ax.set(xlabel="position i (0: the longest)", xlim=(-0.6, len(step.bars) - 0.4))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(f"round {step.round}, bar {step.i}: {'feature' if step.is_feature else 'noise'}")
