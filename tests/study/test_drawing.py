"""The table beside a figure holds what was drawn; a dark page shows all that a white one does."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.patches import Circle

from shrink_utils.study import drawing
from shrink_utils.study.drawing import (
    COLUMNS,
    PLACES,
    figure_data,
)

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


def test_a_mark_that_cannot_be_read_is_an_error_and_not_left_out(ax):
    ax.imshow(np.zeros((2, 2)))
    with pytest.raises(ValueError) as found:
        figure_data(ax.figure)
    where = "drawing.READERS"
    assert str(found.value) == f"fig: no reader for AxesImage: add one to {where}"
    assert drawing.__name__.endswith(where.removesuffix(".READERS")) and drawing.READERS
