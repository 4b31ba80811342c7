"""What a figure leaves behind; its lines and colours can be told apart, by everybody."""

import io

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from shrink_utils.study import figures, load_profile, profile_names
from shrink_utils.study.figures import ARM_STYLE, PALETTE, interactive_figure


def test_show_saves_picture_and_drawing_displays_with_alt_text_and_closes(finished, monkeypatch):
    shown, (fig, ax) = [], plt.subplots()
    ax.plot([0, 1], [0.25, 1 / 3], label="mean")
    monkeypatch.setattr(figures, "display", shown.append)
    figures.show(fig, "line", profile=finished, alt="A line.", caption="**See.** A line.")
    saved = (finished.folder / "figures" / "line.png").read_bytes()
    image, caption = shown
    assert image.alt == "A line." and image.data == saved
    assert image.metadata["figure"] == "line"  # by which the book finds its SVG
    drawn = plt.imread(io.BytesIO(saved)).shape
    assert drawn[:2] == (200 * 4.8, 200 * 6.4) and (image.height, image.width) == (480, 640)
    assert caption.data == "**See.** A line." and not plt.get_fignums()
    drawing = (finished.folder / "figures" / "line.svg").read_text()
    assert "<path" in drawing and "<image" not in drawing and "<text" not in drawing


def test_a_heatmap_leaves_cells_without_a_value_empty_and_has_no_minus_zero():
    _, ax = plt.subplots()
    figures.heatmap(ax, pd.DataFrame([[0.5, -0.001], [np.nan, -0.25]]))
    assert [text.get_text() for text in ax.texts] == ["0.50", "0.00", "-0.25"]
    assert ax.collections[0].get_array()[0, 1] == -0.001  # its colour is that of the number


def test_every_arm_has_a_look_that_needs_no_colour():
    drawn = {*profile_names()} - {"strength"}  # its records are tables
    arms = {run.arm for name in drawn for run in load_profile(name).all_runs()}
    assert arms <= set(ARM_STYLE)
    for key in ("color", "linestyle", "marker"):
        assert len({str(style[key]) for style in ARM_STYLE.values()}) == len(ARM_STYLE)


def test_no_other_line_has_an_arms_colour_but_black():
    """Arms' colours are Okabe & Ito's and Tol's, told apart under colour blindness."""
    assert {style["color"] for style in ARM_STYLE.values()} & {*PALETTE} == {"#000000"}


def _draw(height):
    if height > 5:
        raise ValueError("height: 6 is <too> much")
    return plt.figure()


def test_what_is_wrong_stands_in_the_figures_place():
    height = widgets.IntSlider(value=1, max=9)
    row, picture = interactive_figure({"height": height}, _draw, "{height}".format).children
    assert row.children == (height,)
    height.value = 6
    assert picture.value == '<p role="status">height: 6 is &lt;too&gt; much</p>'
    height.value = 2
    assert "<img" in picture.value
