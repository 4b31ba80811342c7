"""The bound of the bfloat16 product holds for every pair, and what it leaves open is measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shrink_utils.topology import bfloat16, spanning_tree
from shrink_utils.topology.arrays import COMPILED
from shrink_utils.topology.spanning_tree import minimum_spanning_tree

needs_numba = pytest.mark.skipif(not COMPILED, reason="numba is not installed")
NEVER = {"least_rounded": 10**9}


def gaussian(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(np.float32)


def clustered(n, d, spread, scale, k=7):
    centres = np.float32(scale) * gaussian(k, d, seed=1)
    return np.float32(spread) * gaussian(n, d) + centres[np.arange(n) % k]


def ties(n, d):
    """A regular simplex, twice; a coordinate of the second is moved by one unit in the last place.

    Nearly all comparisons are equal, or differ in the last bit of float32.
    """
    points = np.eye(n, d, dtype=np.float32)
    points[n // 2 :, 0] = np.nextafter(np.float32(1), np.float32(2)) - np.float32(1)
    return points


def same_signs(n, d):
    """Products as large as norms let them be: what is rounded on output is largest."""
    points = np.abs(gaussian(n, d)) * np.sign(gaussian(1, d, seed=2))
    points[: n // 2] *= -1
    return points


CLOUDS = {
    "gaussian": gaussian,
    "offset by 1e6": lambda n, d: gaussian(n, d) + np.float32(1e6),
    "clusters": lambda n, d: clustered(n, d, 0.3, 1),
    "tight clusters far apart": lambda n, d: clustered(n, d, 1e-3, 1e3),
    "copies": lambda n, d: gaussian(n, d)[np.arange(n) % max(n // 7, 2)],
    "near copies": lambda n, d: np.repeat(gaussian(n, d), 2, axis=0)[:n] + 1e-6 * gaussian(n, d, 3),
    "mixed scales": lambda n, d: gaussian(n, d) * np.float32(10) ** (np.arange(n)[:, None] % 9 - 6),
    "decaying spectrum": lambda n, d: gaussian(n, d) / np.arange(1, d + 1, dtype=np.float32),
    "ties": ties,
    "same signs": same_signs,
    "denormal": lambda n, d: np.where(np.arange(n)[:, None] % 3, 1, 1e-40) * gaussian(n, d),
    "small": lambda n, d: np.float32(1e-8) * gaussian(n, d),
    "large": lambda n, d: np.float32(1e7) * gaussian(n, d),
    "halfway between bfloat16 numbers": lambda n, d: np.round(gaussian(n, d)) + np.float32(2**-8),
}
clouds = pytest.mark.parametrize("name", CLOUDS)


def cloud_of(name, n, d):
    return np.ascontiguousarray(CLOUDS[name](n, d), dtype=np.float32)


def bounds_and_squares(points):
    """Lower bounds of all pairs, and their squared distances with 64 bits."""
    n, rows = len(points), np.arange(len(points))
    bounds = np.empty((n, n), np.float32)
    bfloat16.rounded(points).fill(rows, rows, bounds)
    wide = points.astype(np.longdouble)
    return bounds, np.stack([((wide - row) ** 2).sum(axis=1) for row in wide])


@clouds
@pytest.mark.parametrize(("n", "d"), [(90, 768), (70, 3), (40, 1), (33, 3000)])
def test_no_pair_is_nearer_than_its_bound(name, n, d):
    bounds, squares = bounds_and_squares(cloud_of(name, n, d))
    assert (bounds <= squares).all()
    assert (bounds >= 0).all()


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64]),
        st.tuples(st.integers(2, 20), st.integers(1, 9)),
        elements=st.floats(-1e6, 1e6, width=32) | st.floats(-2, 2, width=16),
    )
)
def test_no_pair_of_any_cloud_is(points):
    if bfloat16.rounded(points) is not None:
        bounds, squares = bounds_and_squares(points)
        assert (bounds <= squares).all()


@pytest.mark.parametrize("leave_out", ["", "rounding of the product", "residuals"])
def test_each_allowance_is_needed(leave_out, monkeypatch):
    """Without it, the bound of some pair lies beyond its distance."""
    points = cloud_of("same signs", 90, 768)
    if leave_out == "residuals":  # vectors at right angles, all rounded up: products are 0
        points = np.concatenate([np.eye(45), -np.eye(45)]).astype(np.float32) * (1 - 2.0**-10)
    cloud, rows, bounds = bfloat16.rounded(points), np.arange(90), np.empty((90, 90), np.float32)
    if leave_out == "rounding of the product":
        monkeypatch.setattr(bfloat16, "OUTPUT", 0.0)
    if leave_out == "residuals":
        cloud = cloud._replace(residuals=np.zeros(90, np.float32))
    # What is compiled has the allowance in it.
    plain = getattr(bfloat16._bounds, "py_func", bfloat16._bounds)
    monkeypatch.setattr(bfloat16, "_bounds", plain)
    cloud.fill(rows, rows, bounds)
    _, squares = bounds_and_squares(points)
    assert (bounds > squares).any() == bool(leave_out)


def test_the_bound_is_near_where_products_are_small():
    bounds, squares = bounds_and_squares(gaussian(90, 768))
    off_diagonal = ~np.eye(90, dtype=bool)
    assert (bounds / np.where(off_diagonal, squares, 1))[off_diagonal].min() > 0.98


@needs_numba
@clouds
@pytest.mark.parametrize("decides", [True, None])
def test_lengths_are_those_without_bfloat16(name, decides, monkeypatch):
    monkeypatch.setattr(spanning_tree, "native", lambda: True)
    if decides:
        monkeypatch.setattr(spanning_tree, "decides", lambda cloud, points: True)
    points = cloud_of(name, 300, 96)
    expected = minimum_spanning_tree(points, **NEVER).lengths
    for n_neighbours in (3, 16):
        found = minimum_spanning_tree(points, least_rounded=2, n_neighbours=n_neighbours).lengths
        np.testing.assert_array_equal(found, expected)


@clouds
@pytest.mark.parametrize("rows", [64, 1024])  # at a time
def test_a_sample_tells_where_the_bound_decides_little(name, rows, monkeypatch):
    monkeypatch.setattr(bfloat16, "ROWS", rows)
    points = cloud_of(name, 200, 96)
    open_ = {"tight clusters far apart", "copies", "mixed scales", "ties", "denormal"}
    assert bfloat16.decides(bfloat16.rounded(points), points) == (name not in open_)


@needs_numba
@pytest.mark.parametrize("why", ["", "no bfloat16", "undecided", "few points", "flat", "scale"])
def test_bfloat16_is_used_only_where_it_does(why, monkeypatch):
    monkeypatch.setattr(spanning_tree, "native", lambda: why != "no bfloat16")
    used, boruvka = [], spanning_tree._boruvka
    monkeypatch.setattr(
        spanning_tree, "_boruvka", lambda *given: used.append(given) or boruvka(*given)
    )
    d = 31 if why == "flat" else 32
    points = clustered(120, d, 1e-3, 1e3) if why == "undecided" else gaussian(120, d)
    points *= np.float32(1e-15 if why == "scale" else 1)
    minimum_spanning_tree(points, least_rounded=121 if why == "few points" else 120)
    assert bool(used) == (not why)
