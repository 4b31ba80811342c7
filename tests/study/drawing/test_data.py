"""The table beside a figure holds what was drawn, in the coordinates of the axes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns
from matplotlib.collections import LineCollection, PatchCollection
from matplotlib.patches import Circle

from shrink_utils.study.drawing import data
from shrink_utils.study.drawing.data import COLUMNS, figure_data


@pytest.fixture
def ax():
    _, ax = plt.subplots()
    yield ax
    plt.close("all")


def _rows(ax, **chosen) -> pd.DataFrame:
    table = figure_data(ax.figure)
    for name, value in chosen.items():
        table = table[table[name] == value]
    return table


def test_a_line_is_its_points_under_its_name_and_axes(ax):
    ax.plot([1, 2, 4], [0.1, 0.2, 0.4], "s--", label="all")
    ax.set(title="loss", xlabel="step", ylabel="nats")
    table = _rows(ax)
    assert list(table.columns) == COLUMNS
    assert table.x.tolist() == [1, 2, 4] and table.y.tolist() == [0.1, 0.2, 0.4]
    first = table.iloc[0]
    assert (first.panel, first.title, first.x_axis, first.y_axis) == (1, "loss", "step", "nats")
    assert (first.series, first.kind) == ("all", "line")


def test_points_without_a_line_are_points(ax):
    ax.plot([1, 2], [3, 4], "o")
    ax.scatter([5], [6], c=[7.0])
    table = _rows(ax, kind="points")
    assert table.x.tolist() == [1, 2, 5] and table.y.tolist() == [3, 4, 6]
    assert table.value.tolist()[-1] == 7 and table.mark.nunique() == 2


def test_error_bars_are_ends_beside_their_point_once_and_missing_ones_stay_missing(ax):
    ax.errorbar([1, 2], [10, 20], yerr=[[1, 2], [3, 4]], xerr=0.5, capsize=2, label="mean")
    table = _rows(ax)
    assert table.y_low.tolist() == [9, 18] and table.y_high.tolist() == [13, 24]
    assert table.x_low.tolist() == [0.5, 1.5] and table.series.eq("mean").all()
    assert len(table) == 2
    ax.errorbar([1, 2, 3], [1, np.nan, 3], yerr=[0.1, 0.1, np.nan])
    missing = _rows(ax, mark=2)
    assert missing.y_low.isna().tolist() == [False, True, True]
    assert missing.y.isna().tolist() == [False, True, False]


def test_a_line_across_the_panel_lacks_the_coordinate_it_does_not_have(ax):
    ax.axhline(0.5)
    ax.axvline(2)
    across, along = _rows(ax).itertuples()
    assert (across.y, along.x) == (0.5, 2)
    assert np.isnan(across.x) and np.isnan(along.y)


def test_bars_end_where_they_end_and_know_their_words(ax):
    ax.barh(["a", "b"], [3, -1], label="share")
    table = _rows(ax, kind="bar")
    assert table.x_low.tolist() == [0, -1] and table.x_high.tolist() == [3, 0]
    assert table.x.tolist() == [3, -1]
    assert table.y_name.tolist() == ["a", "b"] and table.series.eq("share").all()


@pytest.mark.parametrize("way", ["vertical", "horizontal"])
def test_stairs_have_their_edges_and_heights(ax, way):
    ax.stairs([3, 1], [0, 2, 3], orientation=way, fill=True)
    table = _rows(ax, kind="bar")
    across, along = "xy" if way == "vertical" else "yx"
    assert table[along].tolist() == [3, 1] and table[across].tolist() == [1, 2.5]
    assert table[f"{across}_low"].tolist() == [0, 2]


def test_a_histogram_has_its_edges_and_counts(ax):
    ax.hist([0.1, 0.2, 0.9], bins=[0, 0.5, 1])
    table = _rows(ax, kind="bar")
    assert table.y.tolist() == [2, 1]
    assert table.x_low.tolist() == [0, 0.5] and table.x_high.tolist() == [0.5, 1]


def test_a_heatmap_has_a_row_a_cell_with_both_names_and_no_text(ax):
    values = pd.DataFrame([[1.0, 2.0], [3.0, np.nan]], index=["r", "s"], columns=["u", "v"])
    sns.heatmap(values, annot=True, ax=ax)
    table = _rows(ax).set_index(["y_name", "x_name"])
    assert table.kind.eq("cell").all() and len(table) == 4  # nor is the colour bar a panel
    assert table.value["r", "v"] == 2 and table.value["s", "u"] == 3
    assert np.isnan(table.value["s", "v"])


def test_a_band_has_its_ends_and_the_name_of_its_line(ax):
    ax.plot([0, 1], [1, 2], color="#0072B2", label="mean")
    ax.fill_between([0, 1], [0, 1], [2, 3], color="#0072B2", alpha=0.2)
    table = _rows(ax, kind="band")
    assert table.y_low.tolist() == [0, 1] and table.y_high.tolist() == [2, 3]
    assert table.series.eq("mean").all()


def test_shapes_segments_and_arrows_are_where_they_are(ax):
    ax.add_collection(PatchCollection([Circle((1, 2), 0.5)]))
    ax.add_collection(LineCollection([[(0, 1), (2, 0)]]))
    ax.axhspan(3, 4)
    ax.quiver([0], [1], [2], [3])
    circle, span = _rows(ax, kind="shape").itertuples()
    assert (circle.x, circle.y, circle.y_high) == pytest.approx((1, 2, 2.5))
    assert (span.y_low, span.y_high) == (3, 4) and np.isnan(span.x)
    (segment,) = _rows(ax, kind="segment").itertuples()
    assert (segment.x_low, segment.y_low, segment.x_high, segment.y_high) == (0, 1, 2, 0)
    (arrow,) = _rows(ax, kind="arrow").itertuples()
    assert (arrow.x, arrow.y, arrow.x_high, arrow.y_high) == (0, 1, 2, 4)


def test_a_note_at_a_point_is_kept_and_one_in_the_corner_is_not(ax):
    ax.annotate("the", (3, 4), xytext=(5, 5), textcoords="offset points")
    ax.text(1, 2, "here")
    ax.text(0.5, 0.5, "legend", transform=ax.transAxes)
    ax.annotate("edge", (1.01, 7), xycoords=("axes fraction", "data"))
    table = _rows(ax, kind="text").set_index("series")
    assert table.x["the"] == 3 and table.y["here"] == 2
    assert np.isnan(table.x["edge"]) and table.y["edge"] == 7
    assert "legend" not in table.index


def test_a_legend_in_one_panel_names_the_lines_of_another_and_a_shared_axis_has_one_label():
    fig, (left, right) = plt.subplots(1, 2, sharex=True)
    left.plot([0], [1], "o-", color="red", label="all")
    left.set_xlabel("layer")
    right.plot([0], [2], "o-", color="red")
    right.plot([0], [3], "s", color="red")
    right.plot([0], [4], color="blue", gid="bare")
    left.plot([0], [5], "o-", color="black", label="none")
    right.plot([0], [6], color="black")  # a grey alone is no name
    table = figure_data(fig)
    plt.close(fig)
    assert table.series.tolist() == ["all", "none", "all", "all", "bare", ""]
    assert table.panel.tolist() == [1, 1, 2, 2, 2, 2]
    assert table.x_axis.tolist() == ["layer"] * 6


def test_an_inset_is_a_panel_and_an_empty_figure_an_empty_table(ax):
    assert figure_data(ax.figure).empty
    ax.inset_axes([0.5, 0.5, 0.4, 0.4]).plot([1], [2])
    assert _rows(ax).panel.tolist() == [2]


def test_a_mark_that_cannot_be_read_is_an_error_and_not_left_out(ax):
    ax.imshow(np.zeros((2, 2)))
    with pytest.raises(ValueError) as found:
        figure_data(ax.figure)
    where = "drawing.data.READERS"
    assert str(found.value) == f"fig: no reader for AxesImage: add one to {where}"
    assert data.__name__.endswith(where.removesuffix(".READERS")) and data.READERS
