"""Colours of the figures can be told apart, also by people who see red or green weakly."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from shrink_utils.study.drawing.dark import on_dark
from shrink_utils.study.figures import ARM_STYLE, PALETTE

ARMS = [style["color"] for style in ARM_STYLE.values()]
ARMS_ON_DARK = [on_dark(color, least=3.0)[:3] for color in ARMS]

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


def _lab(color: str, vision: str) -> np.ndarray:
    """CIE L*a*b* of a colour as it is seen."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = (SEEN_AS[vision] @ linear).clip(0, 1)
    x, y, z = np.cbrt(np.maximum(TO_XYZ @ seen / TO_XYZ.sum(axis=1), 1e-12))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_the_formula_knows_white_grey_and_the_distance_of_red_and_green():
    np.testing.assert_allclose(_lab("white", "normal"), [100, 0, 0], atol=0.01)
    distances = {
        vision: np.linalg.norm(_lab("#c04000", vision) - _lab("#608000", vision))
        for vision in SEEN_AS
    }
    assert distances["deuteranopia"] < distances["normal"] / 3


@pytest.mark.parametrize("vision", SEEN_AS)
@pytest.mark.parametrize(
    "colors",
    [PALETTE, ARMS, [on_dark(color, least=3.0)[:3] for color in PALETTE], ARMS_ON_DARK],
    ids=["palette", "arms", "palette on dark", "arms on dark"],
)
def test_colours_are_told_apart(colors, vision):
    pairs = combinations(colors, 2)
    near = {
        (a, b): distance
        for a, b in pairs
        if (distance := np.linalg.norm(_lab(a, vision) - _lab(b, vision))) < TOLD_APART
    }
    assert not near


def test_no_two_arms_share_a_marker_or_a_line():
    markers = [style["marker"] for style in ARM_STYLE.values()]
    lines = [str(style["linestyle"]) for style in ARM_STYLE.values()]
    assert len(set(markers)) == len(markers) and len(set(lines)) == len(lines)
