"""The spanning tree is that of Prim's algorithm in float64, by every way and at every size."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shrink_utils.topology import spanning_tree
from shrink_utils.topology.arrays import COMPILED
from shrink_utils.topology.spanning_tree import minimum_spanning_tree, rounding_of

needs_numba = pytest.mark.skipif(not COMPILED, reason="numba is not installed")

# Without numba the compiled ways run too, as plain Python.
WAYS = {
    "rows": {"COMPILED": False},
    "matrix": {"COMPILED": True},
    "matrix of blocks": {"COMPILED": True, "BLOCK": 7},
    "no matrix": {"COMPILED": True, "MOST_IN_MATRIX": 1},
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
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAYS[way].items():
            patch.setattr(spanning_tree, name, value)
        return minimum_spanning_tree(points)


def assert_is_the_tree(tree, points):
    edges, lengths = tree
    expected = np.sqrt(plain_prim(points))[::-1]
    np.testing.assert_allclose(lengths, expected, rtol=1e-13)
    assert (edges.shape, edges.dtype) == ((len(points) - 1, 2), np.int64)
    component = list(range(len(points)))
    for (a, b), length in zip(edges.tolist(), lengths, strict=True):
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
def test_distances_that_float32_cannot_tell_apart_are_measured(way):
    """A simplex moved by 1e-7, where every comparison is close; clusters whose squares vanish."""
    simplex = np.eye(24, 40, dtype=np.float32) + 1e-7 * gaussian(24, 40)
    tiny = 1e-25 * gaussian(24, 3)
    tiny[12:] += 1.0
    tiny[12:, 1:] = 1e-25 * gaussian(12, 2, seed=1)
    for points in (simplex, tiny):
        assert_is_the_tree(tree_by(way, points), points)


@needs_numba
def test_without_the_certificate_they_are_not_told_apart(monkeypatch):
    points = np.eye(60, 90, dtype=np.float32) + 1e-7 * gaussian(60, 90)
    right = np.sqrt(plain_prim(points)).sum()
    assert tree_by("matrix", points)[1].sum() == pytest.approx(right, rel=1e-15)
    monkeypatch.setattr(spanning_tree, "rounding_of", lambda dtype, d: (1e-30, 0.0))
    assert tree_by("matrix", points)[1].sum() > right * (1 + 1e-10)


@given(matrices)
def test_rounded_distances_lie_within_their_intervals(points):
    n, squared = len(points), spanning_tree._squared_distances(points)
    epsilon, tau = (Fraction(v) for v in rounding_of(points.dtype, points.shape[1]))
    exact = [[Fraction(float(v)) for v in row] for row in points]
    for i in range(n):
        for j in range(n):
            true = sum((a - b) ** 2 for a, b in zip(exact[i], exact[j], strict=True))
            rounded = Fraction(float(squared[i, j]))
            assert (1 - epsilon) * rounded - tau <= true <= (1 + epsilon) * rounded + tau


@needs_numba
@pytest.mark.parametrize("kind", ["gaussian", "tight clusters far apart", "copies"])
def test_a_large_cloud_has_the_tree_of_a_small_one(kind):
    points = gaussian(2100, 16)  # one that no matrix is held of
    if kind == "copies":
        points = points[np.arange(2100) % 5]
    elif kind != "gaussian":
        points = 1e-3 * points + 1e3 * gaussian(3, 16, seed=1)[np.arange(2100) % 3]
    found = minimum_spanning_tree(points)[1]
    np.testing.assert_allclose(found, tree_by("rows", points)[1], rtol=1e-13)


MEASURE_PEAK = """
import torch
from shrink_utils.topology import BarcodeRegularizer
torch.set_num_threads(1)
def step(embeddings):
    BarcodeRegularizer()(embeddings).loss.backward()
def kibibytes(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1])
points = torch.randn(3000, 768, requires_grad=True)
for n in (64, 2100):
    step(torch.randn(n, 8, requires_grad=True))
open("/proc/self/clear_refs", "w").write("5")  # the peak starts afresh
before = kibibytes("VmRSS")
step(points)
print((kibibytes("VmHWM") - before) / 1024)
"""


@needs_numba
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's record of the peak")
def test_a_step_of_3000_points_holds_no_matrix():
    """Of 34 MiB in float32."""
    run = [sys.executable, "-c", MEASURE_PEAK]
    extra = float(subprocess.run(run, capture_output=True, check=True, text=True).stdout)
    assert 8 <= extra <= 30  # the gradient alone is 9
