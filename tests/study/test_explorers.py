"""Figures with controls: what happens to a wrong input."""

import ipywidgets as widgets
import matplotlib.pyplot as plt

from shrink_utils.study.explorer import Explorer


def _draw(height):
    if height > 5:
        raise ValueError("height: 6 is <too> much")
    return plt.figure()


def test_what_is_wrong_stands_in_the_figures_place():
    explorer = Explorer({"height": widgets.IntSlider(value=1, max=9)}, _draw, "{} high".format)
    explorer.controls["height"].value = 6
    assert explorer.picture.value == '<p role="status">height: 6 is &lt;too&gt; much</p>'
    explorer.controls["height"].value = 2
    assert "<img" in explorer.picture.value
