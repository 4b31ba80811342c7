"""What a figure leaves behind; its lines and colours can be told apart, by everybody."""

from __future__ import annotations

import io
from itertools import combinations, product
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from shrink_utils.study import figures, load_profile, profile_names
from shrink_utils.study.figures import ARM_STYLE, PALETTE

LOOKS = [style["color"] for style in ARM_STYLE.values()]

# Machado, Oliveira & Fernandes 2009, table 1, severity 1: what linear RGB becomes.
SEEN_AS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = np.array(  # sRGB, D65
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.072175],
        [0.0193339, 0.119192, 0.9503041],
    ]
)
TOLD_APART = 10.0  # CIE 1976 units; about 2.3 are just noticeable side by side


@pytest.fixture(autouse=True)
def _display(monkeypatch):
    monkeypatch.setattr(figures, "display", lambda shown: None)


@pytest.fixture
def line():
    fig, ax = plt.subplots()
    ax.plot([0, 1], [0.25, 1 / 3], label="mean")
    return fig


def test_show_saves_displays_with_alt_text_and_closes(finished, monkeypatch, line):
    shown = []
    monkeypatch.setattr(figures, "display", shown.append)
    figures.show(line, "line", profile=finished, alt="A line.", caption="**See.** A line.")
    saved = (finished.folder / "figures" / "line.png").read_bytes()
    assert saved.startswith(b"\x89PNG")
    image, caption = shown
    assert image.alt == "A line." and image.data == saved
    assert image.metadata["figure"] == "line"  # by which the book finds its SVG
    drawn = plt.imread(io.BytesIO(saved)).shape
    assert drawn[:2] == (200 * 4.8, 200 * 6.4) and (image.height, image.width) == (480, 640)
    assert caption.data == "**See.** A line."
    assert not plt.get_fignums()


def test_beside_the_picture_is_its_drawing(finished, line):
    figures.show(line, "both", profile=finished, alt="A line.", caption="")
    drawing = (finished.folder / "figures" / "both.svg").read_text()
    assert "<path" in drawing and "<image" not in drawing and "<text" not in drawing


def test_a_figure_that_cannot_be_written_leaves_the_old_one(finished, monkeypatch, line):
    figures.show(line, "half", profile=finished, alt="A line.", caption="")
    files = sorted((finished.folder / "figures").glob("half*"))
    old = [path.read_bytes() for path in files]
    fig, ax = plt.subplots()
    ax.plot([0, 2])

    def fail(path, content):
        path.write_text("half")
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(OSError, match="No space"):
        figures.show(fig, "half", profile=finished, alt="A line.", caption="")
    assert sorted((finished.folder / "figures").glob("half*")) == files
    assert [path.read_bytes() for path in files] == old


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


def _lab(color: str, vision: str) -> np.ndarray:
    """CIE L*a*b* of a colour as it is seen."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = (SEEN_AS[vision] @ linear).clip(0, 1)
    x, y, z = np.cbrt(np.maximum(TO_XYZ @ seen / TO_XYZ.sum(axis=1), 1e-12))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def _distance(one: str, other: str, vision: str = "normal") -> float:
    return float(np.linalg.norm(_lab(one, vision) - _lab(other, vision)))


def test_no_other_line_has_an_arms_colour_but_black():
    pairs = product(set(PALETTE) - {"#000000"}, LOOKS)
    near = [pair for pair in pairs if _distance(*pair) < 1.5 * TOLD_APART]
    assert not near


@pytest.mark.parametrize("vision", SEEN_AS)
@pytest.mark.parametrize("colors", [PALETTE, LOOKS], ids=["palette", "arms"])
def test_colours_are_told_apart(colors, vision):
    pairs = combinations(colors, 2)
    near = {
        (a, b): distance for a, b in pairs if (distance := _distance(a, b, vision)) < TOLD_APART
    }
    assert not near
