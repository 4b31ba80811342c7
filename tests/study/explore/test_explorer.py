"""Controls redraw the figure, and say what it shows or what is wrong."""

from __future__ import annotations

import base64
import re

import ipywidgets as widgets
import matplotlib.pyplot as plt
import pytest

from shrink_utils.study.explore.explorer import Explorer, slider


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


def _png(explorer):
    return base64.b64decode(re.search(r"base64,([^\"]+)", explorer.picture.value)[1])


def test_a_moved_control_draws_another_figure(explorer):
    before = _png(explorer)
    assert before.startswith(b"\x89PNG")
    explorer.controls["height"].value = 4
    assert _png(explorer) != before
    explorer.controls["height"].value = 1
    assert _png(explorer) == before


def test_the_description_is_alt_text_and_read_out(explorer):
    assert 'alt="A bar, &quot;1&quot; high."' in explorer.picture.value
    assert '<p role="status">A bar' in explorer.picture.value


def test_what_is_wrong_stands_in_the_figures_place(explorer):
    explorer.controls["height"].value = 6
    assert explorer.picture.value == '<p role="status">height: 6 is &lt;too&gt; much</p>'
    explorer.controls["height"].value = 2
    assert "<img" in explorer.picture.value


def test_no_figure_stays_open(explorer):
    explorer.controls["height"].value = 3
    assert plt.get_fignums() == []


def test_a_slider_over_layers_shows_whole_numbers_and_one_over_scales_decimals():
    assert [label for label, _ in slider([0, 1, 2], name="layer").options] == ["0", "1", "2"]
    scale = slider([0.0, 0.25, 0.5], name="scale", start=1)
    assert scale.label == "0.25" and scale.value == 0.25 and scale.description == "scale"
