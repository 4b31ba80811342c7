"""The table beside a figure holds what was drawn; a dark page shows all that a white one does."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Circle

from shrink_utils.study import drawing
from shrink_utils.study.drawing import (
    BACKGROUND,
    COLUMNS,
    PLACES,
    contrast,
    darken,
    figure_data,
)
from shrink_utils.study.figures import ARM_STYLE, PALETTE

NAN = float("nan")
HEATMAP = pd.DataFrame([[1.0, 2.0], [3.0, NAN]], index=["r", "s"], columns=["u", "v"])
# What is drawn, its kind, and columns of the table; a column that is not named holds no number.
MARKS = {
    "line": (lambda ax: ax.plot([1, 2], [3, 4], "s--"), "line", {"x": [1, 2], "y": [3, 4]}),
    "points": (lambda ax: ax.plot([1, 2], [3, 4], "o"), "points", {"x": [1, 2], "y": [3, 4]}),
    "scatter": (
        lambda ax: ax.scatter([5], [6], c=[7.0]),
        "points",
        {"x": [5], "y": [6], "value": [7]},
    ),
    "across": (lambda ax: ax.axhline(0.5), "line", {"y": [0.5]}),
    "along": (lambda ax: ax.axvline(2), "line", {"x": [2]}),
    "error bars": (
        lambda ax: ax.errorbar([1, 2], [10, 20], yerr=[[1, 2], [3, 4]], xerr=0.5, capsize=2),
        "line",
        {"x": [1, 2], "y": [10, 20], "y_low": [9, 18], "y_high": [13, 24]}
        | {"x_low": [0.5, 1.5], "x_high": [1.5, 2.5]},
    ),
    "missing error bars": (
        lambda ax: ax.errorbar([1, 2, 3], [1, NAN, 3], yerr=[0.5, 0.5, NAN]),
        "line",
        {"x": [1, 2, 3], "y": [1, NAN, 3], "y_low": [0.5, NAN, NAN], "y_high": [1.5, NAN, NAN]},
    ),
    "bars": (
        lambda ax: ax.barh([0, 1], [3, -1], height=1),
        "bar",
        {"x": [3, -1], "y": [0, 1], "x_low": [0, -1], "x_high": [3, 0]}
        | {"y_low": [-0.5, 0.5], "y_high": [0.5, 1.5]},
    ),
    "histogram": (
        lambda ax: ax.hist([0.1, 0.2, 0.9], bins=[0, 0.5, 1]),
        "bar",
        {"x": [0.25, 0.75], "y": [2, 1], "x_low": [0, 0.5], "x_high": [0.5, 1]}
        | {"y_low": [0, 0], "y_high": [2, 1]},
    ),
    "stairs": (
        lambda ax: ax.stairs([3, 1], [0, 2, 3], fill=True),
        "bar",
        {"x": [1, 2.5], "y": [3, 1], "x_low": [0, 2], "x_high": [2, 3]},
    ),
    "horizontal stairs": (
        lambda ax: ax.stairs([3, 1], [0, 2, 3], orientation="horizontal"),
        "bar",
        {"x": [3, 1], "y": [1, 2.5], "y_low": [0, 2], "y_high": [2, 3]},
    ),
    "band": (
        lambda ax: ax.fill_between([0, 1], [0, 1], [2, 3]),
        "band",
        {"x": [0, 1], "y_low": [0, 1], "y_high": [2, 3]},
    ),
    "circle": (
        lambda ax: ax.add_collection(PatchCollection([Circle((1, 2), 0.5)])),
        "shape",
        {"x": [1], "y": [2], "x_low": [0.5], "x_high": [1.5], "y_low": [1.5], "y_high": [2.5]},
    ),
    "span": (lambda ax: ax.axhspan(3, 4), "shape", {"y": [3.5], "y_low": [3], "y_high": [4]}),
    "segment": (
        lambda ax: ax.add_collection(LineCollection([[(0, 1), (2, 0)]])),
        "segment",
        {"x_low": [0], "y_low": [1], "x_high": [2], "y_high": [0]},
    ),
    "arrow": (
        lambda ax: ax.quiver([0], [1], [2], [3]),
        "arrow",
        {"x": [0], "y": [1], "x_high": [2], "y_high": [4]},
    ),
    "heatmap": (  # neither its text nor its colour bar
        lambda ax: sns.heatmap(HEATMAP, annot=True, ax=ax),
        "cell",
        {"x": [0.5, 1.5, 0.5, 1.5], "y": [0.5, 0.5, 1.5, 1.5], "value": [1, 2, 3, NAN]},
    ),
}


@pytest.fixture
def ax():
    return plt.subplots()[1]


@pytest.mark.parametrize("name", MARKS)
def test_a_mark_is_where_it_is(ax, name):
    draw, kind, expected = MARKS[name]
    draw(ax)
    table = figure_data(ax.figure)
    assert list(table.columns) == COLUMNS
    assert table.kind.eq(kind).all() and table.mark.eq(1).all()
    for column in PLACES:
        nothing = [NAN] * len(table)
        np.testing.assert_allclose(table[column], expected.get(column, nothing), rtol=1e-3)


def test_a_row_says_its_panel_axes_series_and_words(ax):
    ax.barh(["a", "b"], [3, -1], label="share")
    ax.set(title="loss", xlabel="nats", ylabel="step")
    table = figure_data(ax.figure)
    first = table.iloc[0]
    assert (first.panel, first.title, first.x_axis, first.y_axis) == (1, "loss", "nats", "step")
    assert table.y_name.tolist() == ["a", "b"] and table.series.eq("share").all()


def test_a_legend_in_one_panel_names_the_lines_of_another_and_a_shared_axis_has_one_label():
    fig, (left, right) = plt.subplots(1, 2, sharex=True)
    left.plot([0], [1], "o-", color="red", label="all")
    left.set_xlabel("layer")
    right.plot([0], [2], "o-", color="red")
    right.plot([0], [3], "s", color="red")
    right.plot([0], [4], color="blue", gid="bare")
    left.plot([0], [5], "o-", color="black", label="none")
    right.plot([0], [6], color="black")  # a grey alone is no name
    right.plot([0], [7], "o-", color="black")
    table = figure_data(fig)
    assert table.series.tolist() == ["all", "none", "all", "all", "bare", "", "none"]
    assert table.panel.tolist() == [1, 1, 2, 2, 2, 2, 2]
    assert table.x_axis.tolist() == ["layer"] * 7


def test_a_mark_that_cannot_be_read_is_an_error_and_not_left_out(ax):
    ax.imshow(np.zeros((2, 2)))
    with pytest.raises(ValueError) as found:
        figure_data(ax.figure)
    where = "drawing.READERS"
    assert str(found.value) == f"fig: no reader for AxesImage: add one to {where}"
    assert drawing.__name__.endswith(where.removesuffix(".READERS")) and drawing.READERS


LOOKS = {*PALETTE, *(style["color"] for style in ARM_STYLE.values())}


@pytest.fixture
def figure():
    fig, (left, right) = plt.subplots(1, 2)
    for i, color in enumerate(sorted(LOOKS)):
        left.plot([0, 1], [i, i + 1], "o-", color=color, label=f"line {i}")
        left.text(0.5, i, f"text {i}", color=color)
    left.fill_between([0, 1], [0, 0], [1, 1], color=PALETTE[1], alpha=0.5)
    left.bar([2], [1], color="#332288", edgecolor="white")
    left.annotate("w", (0, 0), xytext=(1, 1), arrowprops={"arrowstyle": "->", "color": "black"})
    left.legend()
    sns.heatmap([[0.0, 1.0]], ax=right, annot=True, cmap="cividis")
    fig.canvas.draw()
    return fig


def test_every_line_stands_out_three_to_one_and_every_text_more(figure):
    darken(figure)
    left = figure.axes[0]
    assert min(contrast(line.get_color(), BACKGROUND) for line in left.lines) >= 3
    texts = [*left.texts, *left.get_legend().get_texts(), *left.get_xticklabels(), left.xaxis.label]
    assert min(contrast(text.get_color(), BACKGROUND) for text in texts) >= 4.5
    assert contrast(left.patches[0].get_facecolor(), BACKGROUND) >= 3
    arrow = next(text.arrow_patch for text in left.texts if getattr(text, "arrow_patch", None))
    assert contrast(arrow.get_edgecolor(), BACKGROUND) >= 3
    for patch in (figure.patch, left.patch):
        assert to_hex(patch.get_facecolor()) == BACKGROUND
