"""Figures of chapter 12 hold the numbers of the tables that they are given."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study.drawing import figure_data
from shrink_utils.study.language import figures

RNG = np.random.default_rng(0)


def test_a_tree_is_drawn_as_one_arc_and_one_bar_per_edge():
    edges, lengths = np.array([[0, 3], [1, 3], [2, 3]]), np.array([0.9, 0.5, 0.1])
    drawn = figure_data(figures.attention_graph(np.eye(4), list("abca"), edges, lengths))
    arcs = drawn[(drawn.panel == 2) & (drawn.kind == "line")]
    ends = arcs.groupby("mark").x.agg(["min", "max"])
    np.testing.assert_allclose(ends, edges)
    bars = drawn[drawn.panel == 3]
    np.testing.assert_allclose(np.sort(bars.x_high), np.sort(lengths))


@pytest.fixture
def attention():
    hits = pd.DataFrame(
        product(["word_order"], ["hit"], figures.FEATURES, range(20)),
        columns=["task", "measure", "features", "item"],
    ).assign(value=RNG.integers(0, 2, size=20 * len(figures.FEATURES)))
    heads = pd.DataFrame(
        product(["word_order"], ["auc"], [1, 2], [0, 1]),
        columns=["task", "measure", "layer", "head"],
    ).assign(value=[0.5, 0.52, 0.3, 0.48])
    chance = pd.DataFrame({"task": ["word_order"], "measure": ["chance"], "value": [0.1]})
    return pd.concat([hits, heads, chance], ignore_index=True)


def test_accuracy_is_the_share_of_hits(attention):
    drawn = figure_data(figures.attention_accuracy(attention))
    hits = attention[attention.measure == "hit"]
    expected = hits.groupby("features", sort=False).value.mean()
    points = drawn[(drawn.y_name != "") & drawn.groupby("mark").x.transform("size").eq(1)]
    np.testing.assert_allclose(points.sort_values("y").x, expected[list(figures.FEATURES)])


def test_a_head_beyond_chance_is_outlined(attention):
    drawn = figure_data(figures.attention_heads(attention))
    outlined = drawn[drawn.kind == "shape"]
    assert (outlined.x_low.tolist(), outlined.y_low.tolist()) == ([0], [1])  # layer 2, head 0


def test_the_median_and_its_bounds_are_order_statistics():
    assert figures._median(pd.Series(range(1, 41))) == (14, 20.5, 27)
    assert figures._median(pd.Series([3.0, 1.0, np.inf])) == (1, 3, np.inf)


def test_divergences_are_shares_of_both_layers_nulls():
    table = pd.DataFrame(
        {
            "pair": ["null", "null", "itself"],
            "measure": "rtd",
            "layer": [0, 1, 0],
            "other": [0, 1, 1],
            "value": [10.0, 30.0, 5.0],
        }
    )
    assert figures.shares_of_null(table).value.tolist() == [1, 1, 0.25]


def test_every_cloud_is_a_line_of_its_components():
    keys = product(figures.CLOUD_STYLE, ["components", "lived", "forgotten"], range(3))
    table = pd.DataFrame(keys, columns=["cloud", "measure", "layer"])
    table["value"] = RNG.uniform(size=len(table))
    drawn = figure_data(figures.components_by_layer(table))
    expected = table[(table.measure == "components") & (table.cloud == "random")].value
    assert drawn[drawn.series == "random weights"].y.tolist() == expected.tolist()
    lines = figure_data(figures.surviving_edges(table)).series.unique()
    assert len(lines) == 5 and "sentences shuffled, without memory" not in lines
