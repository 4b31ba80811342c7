"""The spanning tree is that of Prim's algorithm in float64, by every way and at every size."""

from __future__ import annotations

import math
import subprocess
import sys
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shrink_utils.topology import edges, spanning_tree
from shrink_utils.topology.arrays import COMPILED
from shrink_utils.topology.certified import squared_distances
from shrink_utils.topology.spanning_tree import _interval, minimum_spanning_tree

needs_numba = pytest.mark.skipif(not COMPILED, reason="numba is not installed")

# Sizes at which a way hands over to the next, made small: clouds of two dozen points cross them.
WAYS = {
    "rows": None,
    "matrix": {"most_in_matrix": 10**6, "block": 96},
    "matrix of blocks": {"most_in_matrix": 10**6, "block": 7},
    "lists of one": {"most_in_matrix": 1, "n_neighbours": 1, "block": 5},
    "lists of three": {"most_in_matrix": 1, "n_neighbours": 3, "block": 4},
    "longer lists than points": {"most_in_matrix": 1, "n_neighbours": 200, "block": 96},
    "lists above twenty points": {"most_in_matrix": 20, "n_neighbours": 2, "block": 9},
    "k-d trees": {"most_in_matrix": 1},
    "k-d trees, short lists": {"most_in_matrix": 1, "n_neighbours": 1},
    "bfloat16": {"least_rounded": 2},
    "bfloat16, short lists": {"least_rounded": 2, "n_neighbours": 2},
}
ways = pytest.mark.parametrize("way", WAYS)

matrices = hnp.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.tuples(st.integers(2, 24), st.integers(0, 4)),
    elements=st.integers(-50, 50).map(float) | st.integers(-(10**6), 10**6).map(lambda v: v / 1024),
)


def plain_prim(points):
    """Squared lengths of the tree's edges, ascending: Prim's algorithm, nothing clever."""
    points = points.astype(np.float64)
    outside, distance, newest, lengths = list(range(1, len(points))), {}, 0, []
    while outside:
        for j in outside:
            squared = ((points[newest] - points[j]) ** 2).sum()
            distance[j] = min(distance.get(j, math.inf), squared)
        newest = min(outside, key=distance.get)
        outside.remove(newest)
        lengths.append(distance[newest])
    return sorted(lengths)


def tree_by(way, points):
    """The tree found this way. Without numba the compiled ways run too, as plain Python."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (spanning_tree, edges):
            patch.setattr(module, "COMPILED", COMPILED and way != "rows")
        if way != "rows":
            patch.setattr(spanning_tree, "COMPILED", True)
            patch.setattr(spanning_tree, "native", lambda: True)
            patch.setattr(spanning_tree, "LEAST_COORDINATES", 1)
            patch.setattr(spanning_tree, "MOST_IN_TREE", 10**6 if "trees" in way else -1)
            patch.setattr(spanning_tree, "decides", lambda cloud, points: True)
        return minimum_spanning_tree(points, **(WAYS[way] or {}))


def assert_is_the_tree(tree, points):
    expected = np.sqrt(plain_prim(points))[::-1]
    np.testing.assert_allclose(tree.lengths, expected, rtol=1e-13)
    assert (tree.edges.shape, tree.edges.dtype) == ((len(points) - 1, 2), np.int64)
    component = list(range(len(points)))
    for (a, b), length in zip(tree.edges.tolist(), tree.lengths, strict=True):
        difference = points[a].astype(np.float64) - points[b].astype(np.float64)
        assert length == pytest.approx(np.sqrt((difference**2).sum()), rel=1e-13)
        assert component[a] != component[b], "the edge closes a cycle"
        component = [component[a] if c == component[b] else c for c in component]


def gaussian(n, d, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


@ways
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_named_clouds(way, cloud, dtype):
    points = cloud.numpy().astype(dtype)
    assert_is_the_tree(tree_by(way, points), points)


@given(points=matrices)
def test_any_cloud(points):
    for way in WAYS:
        assert_is_the_tree(tree_by(way, points), points)


@ways
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 19, 20, 21, 22])
def test_every_size_at_the_boundaries(way, n):
    points = gaussian(n, 3)
    tree = tree_by(way, points)
    if n < 2:
        assert (tree.edges.shape, tree.lengths.shape) == ((0, 2), (0,))
    else:
        assert_is_the_tree(tree, points)


@ways
def test_distances_that_float32_cannot_tell_apart_are_measured(way):
    """Corners of a regular simplex, moved by 1e-7: every comparison is too close to call."""
    points = np.eye(24, 40, dtype=np.float32) + 1e-7 * gaussian(24, 40)
    assert_is_the_tree(tree_by(way, points), points)


@needs_numba
@pytest.mark.parametrize("way", ["matrix", "lists of three"])
def test_without_the_certificate_they_are_not_told_apart(way, monkeypatch):
    points = np.eye(60, 90, dtype=np.float32) + 1e-7 * gaussian(60, 90)
    right = np.sqrt(plain_prim(points)).sum()
    assert tree_by(way, points).lengths.sum() == pytest.approx(right, rel=1e-15)
    monkeypatch.setattr(spanning_tree, "_interval", lambda dtype, d: (0.0, 0.0))
    assert tree_by(way, points).lengths.sum() > right * (1 + 1e-10)


@ways
def test_squares_that_vanish_in_float32_are_measured(way):
    """Two clusters of a size whose squares are below float32's numbers."""
    points = 1e-25 * gaussian(24, 3)
    points[12:] += 1.0
    points[12:, 1:] = 1e-25 * gaussian(12, 2, seed=1)
    assert_is_the_tree(tree_by(way, points), points)


@ways
def test_is_the_same_each_time(way, cloud):
    first, second = (tree_by(way, cloud.numpy().copy()) for _ in range(2))
    np.testing.assert_array_equal(first.edges, second.edges)
    np.testing.assert_array_equal(first.lengths, second.lengths)


@given(matrices)
def test_rounded_distances_lie_within_their_intervals(points):
    n = len(points)
    squared = np.empty((n, n), points.dtype)
    squared_distances(points, points, False, squared)
    epsilon, tau = (Fraction(v) for v in _interval(points.dtype, points.shape[1]))
    exact = [[Fraction(float(v)) for v in row] for row in points]
    for i in range(n):
        for j in range(n):
            true = sum((a - b) ** 2 for a, b in zip(exact[i], exact[j], strict=True))
            rounded = Fraction(float(squared[i, j]))
            assert (1 - epsilon) * rounded - tau <= true <= (1 + epsilon) * rounded + tau


@needs_numba
@pytest.mark.parametrize("kind", ["gaussian", "clusters", "tight clusters far apart", "copies"])
def test_a_large_cloud_by_lists_is_that_by_rows(kind):
    points = gaussian(700, 16)
    if kind == "clusters":
        points = 0.1 * points + gaussian(7, 16, seed=1)[np.arange(700) % 7]
    elif kind == "copies":
        points = points[np.arange(700) % 5]
    elif kind != "gaussian":
        points = 1e-3 * points + 1e3 * gaussian(3, 16, seed=1)[np.arange(700) % 3]
    lists = minimum_spanning_tree(points, most_in_matrix=100)
    np.testing.assert_allclose(lists.lengths, tree_by("rows", points).lengths, rtol=1e-13)


@pytest.mark.parametrize("way", ["rows", pytest.param("lists", marks=needs_numba)])
def test_memory_does_not_grow_with_the_square(way, monkeypatch):
    points = gaussian(3000 if COMPILED else 1000, 2)
    for module in (spanning_tree, edges):
        monkeypatch.setattr(module, "COMPILED", way == "lists")
    monkeypatch.setattr(spanning_tree, "MOST_IN_TREE", 0)
    minimum_spanning_tree(points[:200], most_in_matrix=100)
    tracemalloc.start()
    minimum_spanning_tree(points, most_in_matrix=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400 * len(points)  # bytes; the matrix would take 4,000 or 12,000 a point


MEASURE_PEAK = """
import torch
from shrink_utils.topology import BarcodeRegularizer
torch.set_num_threads(1)
def step(embeddings):
    BarcodeRegularizer()(embeddings).loss.backward()
def kibibytes(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1])
points = torch.randn(8192, 768, requires_grad=True)
for n in (64, 2100):
    step(torch.randn(n, 8, requires_grad=True))
open("/proc/self/clear_refs", "w").write("5")  # the peak starts afresh
before = kibibytes("VmRSS")
step(points)
print((kibibytes("VmHWM") - before) / 1024)
"""


@needs_numba
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's record of the peak")
def test_a_step_of_8192_points_takes_150_mebibytes_at_most():
    run = [sys.executable, "-c", MEASURE_PEAK]
    extra = float(subprocess.run(run, capture_output=True, check=True, text=True).stdout)
    assert 24 <= extra <= 150  # the gradient alone is 24
