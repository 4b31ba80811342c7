"""The spanning tree is that of Prim's algorithm in float64, by every way and at every size."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shrink_utils.topology import spanning_tree
from shrink_utils.topology.spanning_tree import minimum_spanning_tree

WAYS = {
    "float64": {"FLOAT32_FROM": 10**9},
    "float32": {"FLOAT32_FROM": 0, "MOST_TIES": 10**9},
    "clusters": {"FLOAT32_FROM": 0, "MOST_TIES": 0},  # every near tie is too many for float32
    "parts": {"FLOAT32_FROM": 8, "MOST_IN_MATRIX": 9, "AT_A_TIME": 3},
    "numpy": {"njit": None},
    "by points": {"njit": True},  # compiled where numba is installed
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
        return minimum_spanning_tree(points.astype(np.float64))


def lengths_of(edges, points):
    first, second = points.astype(np.float64)[edges.T]
    return np.sort(np.sqrt(((first - second) ** 2).sum(axis=1)))


def assert_is_the_tree(edges, points):
    assert (edges.shape, edges.dtype) == ((len(points) - 1, 2), np.int64)
    expected = np.sqrt(plain_prim(points))
    np.testing.assert_allclose(lengths_of(edges, points), expected, rtol=1e-13)
    component = list(range(len(points)))
    for a, b in edges.tolist():
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


def large(kind, n, d=16):
    points = gaussian(n, d)
    if kind == "copies":
        return points[np.arange(n) % 5]
    if kind == "tight clusters far apart":
        return 1e-3 * points + 1e3 * gaussian(3, d, seed=1)[np.arange(n) % 3]
    if kind == "one row far away":
        points[0] *= 1e4
    return points


KINDS = ["gaussian", "tight clusters far apart", "copies", "one row far away"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [901, 1024])
def test_lengths_are_the_same_on_both_sides_of_a_switch(n, dtype, kind, monkeypatch):
    """Float64 up to 1,023 points, one matrix up to 900 (as shipped, 8,192), then parts."""
    points = large(kind, n).astype(dtype)
    expected = lengths_of(tree_by("float64", points), points)
    np.testing.assert_array_equal(lengths_of(tree_by("float32", points), points), expected)
    monkeypatch.setattr(spanning_tree, "MOST_IN_MATRIX", 900)
    found = lengths_of(minimum_spanning_tree(points.astype(np.float64)), points)
    np.testing.assert_array_equal(found, expected)


MEASURE_PEAK = """
import torch
from shrink_utils.topology import BarcodeRegularizer, spanning_tree
torch.set_num_threads(1)
spanning_tree.MOST_IN_MATRIX = 1000
def step(embeddings):
    BarcodeRegularizer()(embeddings).loss.backward()
def kibibytes(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1])
points = torch.randn(4000, 8, requires_grad=True)
for n in (64, 2100):
    step(torch.randn(n, 8, requires_grad=True))
open("/proc/self/clear_refs", "w").write("5")  # the peak starts afresh
before = kibibytes("VmRSS")
step(points)
print((kibibytes("VmHWM") - before) / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's record of the peak")
def test_a_step_of_more_points_than_fit_a_matrix_holds_no_matrix_of_them_all():
    """Of 61 MiB in float32; that of two parts has 4."""
    run = [sys.executable, "-c", MEASURE_PEAK]
    extra = float(subprocess.run(run, capture_output=True, check=True, text=True).stdout)
    assert extra <= 30
