"""Intrinsic dimension: shapes of known dimension, the fit by hand, and scipy's spanning tree."""

import math

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

from shrink_utils.geometry import intrinsic_dimension

METHODS = ["twonn", "ph"]


def _shape(name, n=1000):
    rng = np.random.default_rng(0)
    if name == "circle":
        angle = rng.uniform(0, 2 * np.pi, size=n)
        points = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    elif name == "plane":
        points = rng.uniform(size=(n, 2))
    elif name == "sphere":
        points = rng.normal(size=(n, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
    else:  # a Swiss roll: a curved sheet
        t = rng.uniform(4, 12, size=n)
        points = np.stack([t * np.cos(t), rng.uniform(0, 20, size=n), t * np.sin(t)], axis=1)
    return points @ np.linalg.qr(rng.normal(size=(20, 20)))[0][: points.shape[1]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("name", "expected"), [("circle", 1), ("plane", 2), ("sphere", 2), ("Swiss roll", 2)]
)
def test_shapes_in_twenty_dimensions_have_their_own_dimension(method, name, expected):
    assert intrinsic_dimension(_shape(name), method=method) == pytest.approx(expected, rel=0.12)


def test_twonn_is_the_line_through_the_origin_of_the_lowest_nine_tenths():
    x, mu = np.random.default_rng(3).normal(size=(37, 4)), []
    for i in range(37):
        to_others = sorted(math.dist(x[i], x[j]) for j in range(37) if j != i)
        mu.append(to_others[1] / to_others[0])
    log_mu = np.log(sorted(mu)[:33])
    target = np.array([-math.log(1 - i / 37) for i in range(1, 34)])
    slope = np.linalg.lstsq(log_mu[:, None], target, rcond=None)[0]
    found = intrinsic_dimension(x, return_error=True)  # tests/geometry/test_errors.py has the error
    assert found[0] == pytest.approx(slope[0], rel=1e-9)
    assert found[0] == intrinsic_dimension(x)


def test_ph_is_the_line_through_the_totals_of_scipys_spanning_trees():
    """Dimension and error by the normal equations, over the same subsamples."""
    x, rng = np.random.default_rng(3).normal(size=(60, 4)), np.random.default_rng(7)
    rows = []
    x = np.unique(x, axis=0)  # the order that the subsamples are drawn in
    distances = cdist(x, x)
    for size in np.geomspace(7.5, 60, 8).round().astype(int):
        for _ in range(5):
            kept = rng.permutation(60)[:size]
            total = (minimum_spanning_tree(distances[np.ix_(kept, kept)]).data).sum()
            rows.append((1.0, math.log(size), math.log(total)))
    design, y = np.array(rows)[:, :2], np.array(rows)[:, 2]
    inverse = np.linalg.inv(design.T @ design)
    line = inverse @ design.T @ y
    variance = ((y - design @ line) ** 2).sum() / (40 - 2) * inverse[1, 1]
    expected = 1 / (1 - line[1])
    found = intrinsic_dimension(x, method="ph", seed=7, return_error=True)
    error = math.sqrt(variance) / (1 - line[1]) ** 2
    assert found == pytest.approx((expected, error), rel=1e-6)


def test_ph_dimension_of_equidistant_rows_is_infinite():
    found = intrinsic_dimension(np.eye(64), method="ph", return_error=True)
    assert found == (math.inf, math.inf)


ROUNDING = [(torch.float64, e) for e in (0.0, 1e-12, 1e-7)]
ROUNDING += [(torch.float32, e) for e in (1e-7, 5e-7)]
ROUNDING += [(torch.bfloat16, 2e-3), (torch.float16, 3e-4)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("dtype", "error"), ROUNDING)
def test_copies_that_differ_by_rounding_are_counted_once(method, dtype, error):
    """Also copies of copies, and whatever the order of the rows."""
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(150, 3)) @ np.linalg.qr(rng.normal(size=(9, 9)))[0][:3])
    x = x.to(dtype).double()
    noise = torch.from_numpy(rng.uniform(-0.5, 0.5, size=(80, 9)))
    copies = torch.cat([x[:40], x[:40]]) * (1 + error * noise)
    both = torch.cat([copies, x]).to(dtype)[torch.from_numpy(rng.permutation(230))]
    expected = intrinsic_dimension(x, method=method)
    found = intrinsic_dimension(both, method=method)
    # Which subsamples are drawn for "ph" depends on the copy that is kept.
    assert found == pytest.approx(expected, rel=0.02 if method == "twonn" else 0.1)
