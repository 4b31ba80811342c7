"""Figures with controls: what they show, what they say, and what happens to a wrong input."""

from __future__ import annotations

import ipywidgets as widgets
import matplotlib.pyplot as plt
import pytest
import torch
from matplotlib.collections import LineCollection, PatchCollection

from shrink_utils.study.barcodes import draw_complex
from shrink_utils.study.explorer import Explorer

TRIANGLE = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]], dtype=torch.float64)


def _draw(height):
    if height > 5:
        raise ValueError("height: 6 is <too> much")
    fig, ax = plt.subplots()
    ax.bar([0], [height])
    ax.set_ylim(0, 5)
    return fig


@pytest.fixture
def explorer():
    control = widgets.IntSlider(value=1, min=1, max=9)
    return Explorer({"height": control}, _draw, lambda height: f'A bar, "{height}" high.')


def test_what_is_wrong_stands_in_the_figures_place(explorer):
    explorer.controls["height"].value = 6
    assert explorer.picture.value == '<p role="status">height: 6 is &lt;too&gt; much</p>'
    explorer.controls["height"].value = 2
    assert "<img" in explorer.picture.value


@pytest.mark.parametrize(
    ("scale", "n_edges", "n_triangles"), [(2.9, 0, 0), (3.0, 1, 0), (4.0, 2, 0), (5.0, 3, 1)]
)
def test_edges_appear_at_their_length_and_a_triangle_with_its_longest(scale, n_edges, n_triangles):
    _, ax = plt.subplots()
    draw_complex(ax, TRIANGLE.roll(-1, dims=0), scale)  # the longest edge is the first
    (edges,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    balls, filled = (c for c in ax.collections if isinstance(c, PatchCollection))
    assert (len(edges.get_segments()), len(filled.get_paths())) == (n_edges, n_triangles)
    # balls touch when their edge appears
    assert balls.get_paths()[0].get_extents().width == pytest.approx(scale, rel=1e-3)
