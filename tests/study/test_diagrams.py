"""Diagrams and their stability: the theorem holds, and the figures hold what they are given."""

from __future__ import annotations

import gudhi
import numpy as np
import pandas as pd
import pytest
import torch

from shrink_utils.study import diagrams
from shrink_utils.study.barcodes import CLOUDS, example_cloud
from shrink_utils.study.drawing import figure_data


def test_a_diagram_has_the_pairs_that_gudhi_finds():
    points = example_cloud("a circle")
    tree = gudhi.RipsComplex(points=points.numpy()).create_simplex_tree(max_dimension=2)
    tree.compute_persistence()
    for k in (0, 1):
        pairs = tree.persistence_intervals_in_dimension(k)
        pairs = pairs[np.isfinite(pairs[:, 1])]
        found = diagrams.diagram(points, k)
        np.testing.assert_allclose(np.sort(found, axis=0), np.sort(pairs, axis=0))


@pytest.mark.parametrize("size", [0.0, 0.2, 1.0])
def test_a_jitter_moves_every_point_by_its_size_and_the_diagram_by_twice_that_at_most(size):
    for name in CLOUDS:
        points = example_cloud(name)
        moved = diagrams.jitter(points, size, number=4)
        assert torch.allclose((moved - points).norm(dim=1), torch.tensor(size).double())
        assert diagrams.bottleneck(points, moved) <= 2 * size + 1e-12


def test_draws_of_a_jitter_differ_and_come_again():
    points = example_cloud("a line")
    assert torch.equal(diagrams.jitter(points, 1.0, 1), diagrams.jitter(points, 1.0, 1))
    assert not torch.equal(diagrams.jitter(points, 1.0, 1), diagrams.jitter(points, 1.0, 2))


def test_the_slider_says_the_distance_and_its_bound():
    explorer = diagrams.jitter_explorer()
    explorer.controls["size"].value = 0.5
    assert "Moved by 0.50: bottleneck distance" in explorer.picture.value
    assert "at most 1.00." in explorer.picture.value


def test_bars_above_the_limit_are_counted_and_dark():
    bars = torch.tensor([4.0, 2.0, 1.0, 1.0])  # mean 2
    drawn = figure_data(diagrams.significant_bars({"a": bars, "b": bars}, {"a": 1.5, "b": 3.0}))
    assert drawn.title.unique().tolist() == [
        "a: 1 of 4 above the limit",
        "b: 0 of 4 above the limit",
    ]


def test_every_jitter_is_a_point_below_the_line():
    table = pd.DataFrame({"size": [0.1, 0.2], "bottleneck": [0.15, 0.3]})
    drawn = figure_data(diagrams.stability_curves(table, loop=0.5))
    assert drawn[drawn.kind == "points"].y.tolist() == [0.15, 0.3]
    (half,) = drawn[(drawn.kind == "line") & drawn.x.isna()].y
    assert half == 0.25
