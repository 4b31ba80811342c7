"""Clouds, their complexes and bars, and the slider over the scale."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.collections import LineCollection, PatchCollection

from shrink_utils.study.drawing.data import figure_data
from shrink_utils.study.explore.canvas import PointCanvas
from shrink_utils.study.explore.complexes import CLOUDS, draw_complex, example_cloud
from shrink_utils.study.explore.filtration import (
    DRAWN,
    describe_filtration,
    draw_filtration,
    filtration_explorer,
    filtration_stages,
)

TRIANGLE = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]], dtype=torch.float64)


def _drawn(ax):
    """Numbers of edges and of triangles."""
    (edges,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    filled = [c for c in ax.collections if isinstance(c, PatchCollection)][-1]
    return len(edges.get_segments()), len(filled.get_paths())


@pytest.mark.parametrize(
    ("scale", "edges", "triangles"), [(2.9, 0, 0), (3.0, 1, 0), (4.0, 2, 0), (5.0, 3, 1)]
)
def test_edges_appear_at_their_length_and_a_triangle_with_its_longest(scale, edges, triangles):
    _, ax = plt.subplots()
    draw_complex(ax, TRIANGLE, scale)
    assert _drawn(ax) == (edges, triangles)


def test_balls_touch_when_their_edge_appears():
    _, ax = plt.subplots()
    draw_complex(ax, TRIANGLE, 3.0)
    balls = next(c for c in ax.collections if isinstance(c, PatchCollection))
    assert balls.get_paths()[0].get_extents().width == pytest.approx(3.0, rel=1e-3)


@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud_is_on_the_sheet_and_the_same_each_time(name):
    points = example_cloud(name)
    assert points.dtype == torch.float64 and points.shape[1] == 2
    assert (points >= 0).all() and (points <= torch.tensor([10, 6])).all()
    assert torch.equal(points, example_cloud(name))


def test_the_sentence_counts_components_and_bars():
    assert describe_filtration(TRIANGLE, 3.5) == (
        "At scale 3.50 the 3 points form 2 components; 1 of 2 bars have ended. "
        "Entropy of all bars: 0.68."
    )
    assert "form 1 component;" in describe_filtration(TRIANGLE, 4.0)


def test_a_bar_is_drawn_as_far_as_the_scale_has_come():
    _, right = draw_filtration(TRIANGLE, 3.5).axes
    bars = figure_data(right.figure)
    bars = bars[(bars.panel == 2) & (bars.kind == "bar")]
    assert bars[bars.series == "alive"].x.tolist() == [3.5, 3.0]
    assert bars[bars.series == "ended"].x.tolist() == [3.0]


def test_the_stages_are_a_column_a_scale():
    axes = filtration_stages("two clusters", [0.3, 4.0]).axes
    assert [ax.get_title("left") or ax.get_title() for ax in axes[:2]] == [
        "ε = 0.30, components: 11",
        "ε = 4.00, components: 1",
    ]


def test_moving_the_slider_and_choosing_a_cloud_change_the_figure():
    explorer = filtration_explorer()
    first = explorer.picture.value
    explorer.controls["scale"].value = 2.0
    second = explorer.picture.value
    explorer.controls["name"].value = "a circle"
    assert len({first, second, explorer.picture.value}) == 3
    assert "At scale 2.00 the 16 points" in explorer.picture.value


def test_points_that_are_set_become_the_cloud():
    explorer = filtration_explorer()
    canvas = explorer.widget.children[-1]
    assert isinstance(canvas, PointCanvas)
    canvas.points = [[1.0, 1.0]]
    assert explorer.controls["name"].value == DRAWN
    assert "the sheet below has 1, expected 2 to 60" in explorer.picture.value
    canvas.points = [[1.0, 1.0], [1.0, 2.0], [4.0, 2.0]]
    assert "the 3 points form 3 components" in explorer.picture.value


def test_a_name_that_is_no_cloud_is_named():
    with pytest.raises(ValueError, match="name: no cloud 'a circel', did you mean 'a circle'"):
        example_cloud("a circel")
