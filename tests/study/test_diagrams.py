"""Diagrams and their stability: the theorem holds, and the figures hold what they are given."""

from __future__ import annotations

import gudhi
import numpy as np
import pytest
import torch

from shrink_utils.study import diagrams
from shrink_utils.study.barcodes import CLOUDS, example_cloud


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
