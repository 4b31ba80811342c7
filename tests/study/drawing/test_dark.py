"""Figures on a dark page: everything can be seen, and told apart, as on a white one."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import seaborn as sns
from matplotlib.colors import to_hex, to_rgba

from shrink_utils.study.drawing import BACKGROUND, INK, contrast, darken, on_dark
from shrink_utils.study.figures import ARM_STYLE, PALETTE, use_house_style

LOOKS = {*PALETTE, *(style["color"] for style in ARM_STYLE.values())}


@pytest.fixture(autouse=True)
def _style():
    use_house_style()
    yield
    plt.close("all")


def test_contrast_is_that_of_wcag():
    assert contrast("white", "black") == pytest.approx(21)
    assert contrast("#777777", "white") == pytest.approx(4.48, abs=0.01)  # their own example
    assert contrast("red", "red") == 1


def test_black_and_white_change_places_and_opacity_stays():
    assert to_hex(on_dark("black")) == INK and to_hex(on_dark("white")) == BACKGROUND
    assert contrast(INK, BACKGROUND) > 12
    assert on_dark((0, 0.45, 0.7, 0.15))[3] == 0.15
    assert on_dark("none")[3] == 0


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


def test_a_heatmap_and_its_numbers_stay_and_a_band_keeps_its_opacity(figure):
    left, right = figure.axes[:2]
    numbers = [text.get_color() for text in right.texts]
    cells = right.collections[0].get_facecolor().copy()
    darken(figure)
    figure.canvas.draw()
    assert [text.get_color() for text in right.texts] == numbers
    np.testing.assert_array_equal(right.collections[0].get_facecolor(), cells)
    (face,) = left.collections[0].get_facecolor()
    assert face[3] == 0.5 and to_rgba(face)[:3] != to_rgba("white")[:3]
