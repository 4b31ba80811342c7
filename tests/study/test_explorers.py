"""Figures with controls: what they show, what they say, and what happens to a wrong input."""

import ipywidgets as widgets
import matplotlib.pyplot as plt
import pytest

from shrink_utils.study.explorer import Explorer


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
