"""A slider over layers shows the numbers of the table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study.explore.layers import (
    describe_layer,
    draw_layer,
    layer_explorer,
    layer_stages,
)

MEASURES = ["AvgSim", "IsoScore"]


@pytest.fixture
def table():
    return pd.DataFrame(
        [
            {"space": space, "layer": layer, "cloud": cloud, "AvgSim": layer / 4, "IsoScore": 0.5}
            for space, layers in (("[CLS] vectors", (1, 2)), ("word-pieces", (0, 1, 2)))
            for layer in layers
            for cloud in ("encoder", "matched Gaussian", "isotropic Gaussian")
        ]
    )


@pytest.fixture
def cosines():
    return {layer: np.linspace(-0.5, layer / 2, 50) for layer in range(3)}


def test_the_marks_are_the_numbers_of_the_layer(table, cosines):
    cls, words, _ = draw_layer(table, cosines, 2, measures=MEASURES).axes
    for ax in (cls, words):
        assert [line.get_xdata().tolist() for line in ax.lines] == [[0.5, 0.5]] * 3


def test_a_layer_without_a_cloud_says_so(table, cosines):
    cls, words, _ = draw_layer(table, cosines, 0, measures=MEASURES).axes
    assert "no shape" in cls.texts[0].get_text() and not cls.lines
    assert len(words.lines) == 3
    assert describe_layer(table, cosines, 0, measures=MEASURES) == (
        "Layer 0, [CLS] vectors: one point, no shape. Layer 0, word-pieces: AvgSim 0.00, "
        "IsoScore 0.50. Mean cosine of pairs: -0.25."
    )


def test_an_unknown_layer_is_an_error(table, cosines):
    with pytest.raises(ValueError, match=r"layer: 9 is not in the table, which has \[0, 1, 2\]"):
        draw_layer(table, cosines, 9, measures=MEASURES)


def test_the_slider_changes_the_figure(table, cosines):
    explorer = layer_explorer(table, cosines, measures=MEASURES)
    first = explorer.picture.value
    assert "Layer 0" in first
    explorer.controls["layer"].value = 2
    assert explorer.picture.value != first and "AvgSim 0.50" in explorer.picture.value


def test_the_stages_are_two_panels_a_layer(table, cosines):
    assert len(layer_stages(table, cosines, [0, 2], measures=MEASURES).axes) == 4
