"""Figures with controls: what they show, what they say, and what happens to a wrong input."""

from __future__ import annotations

import base64
import re

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import LineCollection, PatchCollection

from shrink_utils.study import barcodes, isotropy, regularizer
from shrink_utils.study.barcodes import CLOUDS, describe_filtration, draw_complex, example_cloud
from shrink_utils.study.contextuality.words import (
    WordContexts,
    describe_contexts,
    draw_contexts,
    word_explorer,
)
from shrink_utils.study.drawing import figure_data
from shrink_utils.study.explorer import Explorer, PointCanvas, slider
from shrink_utils.study.regularizer import describe_step, selection_steps
from shrink_utils.topology import prominent_features

TRIANGLE = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]], dtype=torch.float64)
DOZEN = [10.0, 9.0, 8.0, 4.0, 3.0, 2.5, 2.2, 2.0, 1.9, 1.8, 1.7, 1.6]
MEASURES = ["AvgSim", "IsoScore"]


def _titles(fig):
    return [ax.get_title("left") or ax.get_title() for ax in fig.axes]


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


def test_a_moved_control_draws_another_figure_and_leaves_none_open(explorer):
    before = _png(explorer)
    assert before.startswith(b"\x89PNG")
    explorer.controls["height"].value = 4
    assert _png(explorer) != before
    explorer.controls["height"].value = 1
    assert _png(explorer) == before
    assert plt.get_fignums() == []


def test_the_description_is_alt_text_and_read_out(explorer):
    assert 'alt="A bar, &quot;1&quot; high."' in explorer.picture.value
    assert '<p role="status">A bar' in explorer.picture.value


def test_what_is_wrong_stands_in_the_figures_place(explorer):
    explorer.controls["height"].value = 6
    assert explorer.picture.value == '<p role="status">height: 6 is &lt;too&gt; much</p>'
    explorer.controls["height"].value = 2
    assert "<img" in explorer.picture.value


def test_a_slider_over_layers_shows_whole_numbers_and_one_over_scales_decimals():
    assert [label for label, _ in slider([0, 1, 2], name="layer").options] == ["0", "1", "2"]
    scale = slider([0.0, 0.25, 0.5], name="scale", start=1)
    assert scale.label == "0.25" and scale.value == 0.25 and scale.description == "scale"


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


@pytest.mark.parametrize("name", CLOUDS)
def test_every_cloud_is_on_the_sheet_and_the_same_each_time(name):
    points = example_cloud(name)
    assert points.dtype == torch.float64 and points.shape[1] == 2
    assert (points >= 0).all() and (points <= torch.tensor([10, 6])).all()
    assert torch.equal(points, example_cloud(name))


def test_a_filtration_counts_components_and_draws_bars_as_far_as_the_scale_has_come():
    assert describe_filtration(TRIANGLE, 3.5) == (
        "At scale 3.50 the 3 points form 2 components; 1 of 2 bars have ended. "
        "Entropy of all bars: 0.68."
    )
    assert "form 1 component;" in describe_filtration(TRIANGLE, 4.0)
    bars = figure_data(barcodes.draw_filtration(TRIANGLE, 3.5))
    bars = bars[(bars.panel == 2) & (bars.kind == "bar")]
    assert bars[bars.series == "alive"].x.tolist() == [3.5, 3.0]
    assert bars[bars.series == "ended"].x.tolist() == [3.0]
    stages = _titles(barcodes.filtration_stages("two clusters", [0.3, 4.0]))
    assert stages[:2] == ["ε = 0.30, components: 11", "ε = 4.00, components: 1"]


def test_moving_the_slider_and_choosing_a_cloud_change_the_figure():
    explorer = barcodes.filtration_explorer()
    first = explorer.picture.value
    explorer.controls["scale"].value = 2.0
    second = explorer.picture.value
    explorer.controls["name"].value = "a circle"
    assert len({first, second, explorer.picture.value}) == 3
    assert "At scale 2.00 the 16 points" in explorer.picture.value


def test_points_that_are_set_become_the_cloud():
    explorer = barcodes.filtration_explorer()
    canvas = explorer.widget.children[-1]
    assert isinstance(canvas, PointCanvas)
    canvas.points = [[1.0, 1.0]]
    assert explorer.controls["name"].value == barcodes.DRAWN
    assert "the sheet below has 1, expected 2 to 60" in explorer.picture.value
    canvas.points = [[1.0, 1.0], [1.0, 2.0], [4.0, 2.0]]
    assert "the 3 points form 3 components" in explorer.picture.value


@pytest.fixture
def layers():
    """A table of measures, and the cosines of each layer's pairs."""
    rows = [
        {"space": space, "layer": layer, "cloud": cloud, "AvgSim": layer / 4, "IsoScore": 0.5}
        for space, layers in (("[CLS] vectors", (1, 2)), ("word-pieces", (0, 1, 2)))
        for layer in layers
        for cloud in ("encoder", "diagonal Gaussian", "isotropic Gaussian")
    ]
    return pd.DataFrame(rows), {layer: np.linspace(-0.5, layer / 2, 50) for layer in range(3)}


def test_the_marks_of_a_layer_are_its_numbers_and_a_missing_cloud_is_said(layers):
    for ax in isotropy.draw_layer(*layers, 2, measures=MEASURES).axes[:2]:
        assert [line.get_xdata().tolist() for line in ax.lines] == [[0.5, 0.5]] * 3
    cls, words, _ = isotropy.draw_layer(*layers, 0, measures=MEASURES).axes
    assert "no shape" in cls.texts[0].get_text() and not cls.lines
    assert len(words.lines) == 3
    assert isotropy.describe_layer(*layers, 0, measures=MEASURES) == (
        "Layer 0, [CLS] vectors: one point, no shape. Layer 0, word-pieces: AvgSim 0.00, "
        "IsoScore 0.50. Mean cosine of pairs: -0.25."
    )
    assert len(isotropy.layer_stages(*layers, [0, 2], measures=MEASURES).axes) == 4


@pytest.mark.parametrize("lengths", [[], [1.0], [2.0, 2.0], [1.0, 0.0]])
def test_nothing_to_decide_is_an_error(lengths):
    with pytest.raises(ValueError, match="lengths: expected two or more"):
        selection_steps(lengths)


def test_an_unknown_layer_or_cloud_is_named(layers):
    with pytest.raises(ValueError, match=r"layer: 9 is not in the table, which has \[0, 1, 2\]"):
        isotropy.draw_layer(*layers, 9, measures=MEASURES)
    with pytest.raises(ValueError, match="name: no cloud 'a circel', did you mean 'a circle'"):
        example_cloud("a circel")


def test_the_slider_over_layers_changes_the_figure(layers):
    explorer = isotropy.layer_explorer(*layers, measures=MEASURES)
    first = explorer.picture.value
    assert "Layer 0" in first
    explorer.controls["layer"].value = 2
    assert explorer.picture.value != first and "AvgSim 0.50" in explorer.picture.value


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=40))
def test_the_last_round_keeps_what_the_package_selects(lengths):
    if max(lengths) == min(lengths):
        return
    steps = selection_steps(lengths)
    if any(abs(step.c[-1] - 1) < 1e-9 for step in steps):
        return  # a tie as far as rounding goes
    kept = steps[-1].bars[: steps[-1].i]
    chosen = prominent_features(torch.tensor(lengths, dtype=torch.float64))
    assert kept == pytest.approx([lengths[i] for i in chosen])


def test_the_dozen_takes_three_rounds():
    steps = selection_steps(DOZEN)
    noise = [(step.round, step.i) for step in steps if not step.is_feature]
    assert noise == [(1, 4), (2, 3), (3, 3)]
    assert steps[3].neutral[-1] > DOZEN[4] and steps[2].neutral[-1] < DOZEN[3]
    assert describe_step(steps, 0) == (
        "Round 1, bar 1: its length 9 is longer than what would replace it, 4.46 (C = 1.105): "
        "a feature."
    )
    assert describe_step(steps, len(steps) - 1).endswith("Kept in the end: 10, 9, 8.")


def test_a_step_is_drawn_up_to_its_bar_and_the_stages_show_every_step():
    left, middle, right = regularizer.draw_step(selection_steps(DOZEN), 3).axes
    assert (left.get_title("left") or left.get_title()) == "round 1, bar 4: noise"
    assert len(middle.lines[0].get_xdata()) == 4 and len(right.lines[0].get_xdata()) == 5
    titles = _titles(regularizer.selection_stages(selection_steps(DOZEN)))
    assert sum(title.startswith("round") for title in titles) == 10


def test_the_slider_steps_and_ends_where_a_shorter_list_ends():
    explorer = regularizer.selection_explorer({"dozen": DOZEN, "three": [3.0, 2.0, 1.0]})
    step = explorer.controls["step"]
    first = explorer.picture.value
    step.value = 10
    assert explorer.picture.value != first and "Kept in the end" in explorer.picture.value
    explorer.controls["name"].value = "three"
    assert step.max == len(selection_steps([3.0, 2.0, 1.0])) == step.value
    assert "Kept in the end" in explorer.picture.value


def _contexts(word, cosine=0.25):
    near = torch.eye(3, dtype=torch.float64)
    near[0, 1] = near[1, 0] = cosine
    snippets = [f"a {word.upper()}", f"the {word.upper()}", f"no {word.upper()}"]
    return WordContexts(word, snippets, torch.stack([torch.ones(3, 3).double(), near]), 7)


def test_heatmaps_of_contexts_are_sorted_by_the_last_layer():
    first, last = draw_contexts(_contexts("cat"), (0, 1)).axes[:2]
    assert [label.get_text() for label in first.get_yticklabels()][2] == "no CAT"
    cosines = last.collections[0].get_array().reshape(3, 3)
    assert cosines[0, 1] == 0.25 and cosines[0, 2] == 0
    said = describe_contexts(_contexts("cat"), (0, 1))
    assert said.startswith("Most alike at layer 1 (+0.25): “a CAT” and “the CAT”. Least alike")


def test_typing_reads_a_word_once_and_a_rare_one_gets_an_answer():
    asked = []

    def find(word):
        asked.append(word)
        if word == "rare":
            raise ValueError("word: 'rare' stands in 1 of 7 texts")
        return _contexts(word, 0.75)

    explorer = word_explorer(_contexts("cat"), find, (0, 1))
    first = explorer.picture.value
    assert asked == []  # the first word came read
    explorer.controls["word"].value = "dog"
    assert asked == ["dog"]
    assert explorer.picture.value != first and "a DOG" in explorer.picture.value
    explorer.controls["word"].value = "rare"
    assert "stands in 1 of 7 texts" in explorer.picture.value
    explorer.controls["word"].value = "dog"
    assert "<img" in explorer.picture.value
