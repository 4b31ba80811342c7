import math
import time
from itertools import combinations

import gudhi
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import pdist, squareform

from shrink_utils.topology import barcode, barcodes, h0_barcode
from tests.topology.conftest import gudhi_intervals

matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 20), st.integers(1, 4)),
    elements=st.floats(-100, 100).map(lambda v: round(v, 3)),
)


def assert_same(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def test_h0_lengths_are_gudhis_deaths(cloud):
    deaths = gudhi_intervals(0, points=cloud.numpy())[:, 1]
    assert_same(h0_barcode(cloud).lengths, deaths)


@given(matrices)
def test_h0_lengths_are_gudhis_deaths_on_any_cloud(points):
    deaths = gudhi_intervals(0, points=points)[:, 1]
    assert_same(h0_barcode(torch.from_numpy(points)).lengths, deaths)


def test_h0_gradcheck(clouds):
    points = clouds["gaussian"].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: h0_barcode(x).lengths, points)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_too_few_points_have_no_bar_or_no_loop(n):
    points = torch.zeros(n, 3, requires_grad=True)
    bars = [h0_barcode(points), *barcode(points, max_dim=2)]
    sum(bar.lengths.sum() for bar in bars).backward()
    n_bars = max(n - 1, 0)
    assert [len(bar.lengths) for bar in bars] == [n_bars, n_bars, 0, 0]
    assert (bars[0].edges.shape, bars[0].edges.dtype) == ((n_bars, 2), torch.int64)
    assert points.grad.tolist() == [[0.0] * 3] * n


@pytest.mark.parametrize(
    ("scale", "dtype"), [(1e-300, torch.float64), (1e300, torch.float64), (1e30, torch.float32)]
)
def test_squares_neither_overflow_nor_vanish(scale, dtype):
    points = scale * torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]], dtype=dtype)
    torch.testing.assert_close(
        h0_barcode(points).lengths / scale, torch.tensor([5.0, 1.0], dtype=dtype)
    )


@pytest.mark.parametrize("name", ["gaussian", "clustered", "duplicated", "circle"])
@pytest.mark.parametrize("dimension", [1, 2])
def test_barcode_is_gudhis_in_higher_dimensions(clouds, name, dimension):
    bars = barcode(clouds[name], max_dim=dimension)[dimension]
    expected = gudhi_intervals(dimension, points=clouds[name].numpy())
    expected = expected[expected[:, 1] - expected[:, 0] > 1e-12]  # the rest is rounding in ties
    real = bars.lengths > 1e-12
    assert_same(bars.lengths[real], expected[:, 1] - expected[:, 0])
    assert_same(bars.deaths - bars.births, bars.lengths)
    assert_same(sorted(bars.births[real].tolist()), sorted(expected[:, 0].tolist()))


def test_a_circle_has_one_loop(clouds):
    loop = barcode(clouds["circle"])[1]
    assert_same(loop.births, [2 * math.sin(math.pi / 16)])  # neighbours meet
    assert_same(loop.deaths, [2 * math.sin(math.pi * 6 / 16)])  # an inscribed triangle fills it


@pytest.mark.parametrize("part", ["lengths", "births", "deaths"])
def test_barcode_gradcheck_in_dimension_one(clouds, part):
    points = clouds["circle"] + 0.05 * clouds["gaussian"][:16, :2]
    points.requires_grad_()
    assert len(barcode(points)[1].lengths) > 0
    assert torch.autograd.gradcheck(lambda x: getattr(barcode(x)[1], part), points)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("name", ["gaussian", "clustered", "grid", "offset", "ties", "no metric"])
def test_loops_have_the_edges_that_the_simplex_tree_finds(clouds, monkeypatch, name, dimension):
    rng = np.random.default_rng(0)
    found = {"ties": rng.integers(1, 50, (30, 30)), "no metric": rng.random((30, 30))}
    found |= {key: squareform(pdist(clouds[key].numpy())) for key in clouds if key not in found}
    distances = np.triu(found[name], 1).astype(float)
    distances += distances.T
    fast = barcodes._flag_generators(distances, dimension)
    monkeypatch.setattr(barcodes, "ripser", None)
    slow = barcodes._flag_generators(distances, dimension)

    def edges(vertices):
        ends = [(frozenset(row[:2]), frozenset(row[2:])) for row in vertices.tolist()]
        lengths = ((distances[tuple(b)], distances[tuple(d)]) for b, d in ends)
        return {pair for pair, (born, died) in zip(ends, lengths, strict=True) if died > born}

    assert edges(fast) == edges(slow) and (dimension > 1 or edges(slow))


def test_many_points_have_their_loops_in_seconds():
    """The simplex tree of 500 points has 20 million triangles: half a minute."""
    begun = time.process_time()
    assert len(barcode(torch.randn(500, 16))[1].lengths) > 500
    assert time.process_time() - begun < 5


def test_coefficients_are_in_the_field_of_eleven():
    """A projective plane has a loop in Z/2 and none in any field of odd characteristic."""
    triangles = [(1, 2, 5), (1, 2, 6), (1, 3, 4), (1, 3, 6), (1, 4, 5)]
    triangles += [(2, 3, 4), (2, 3, 5), (2, 4, 6), (3, 5, 6), (4, 5, 6)]
    parts = {frozenset(c) for t in triangles for k in (1, 2, 3) for c in combinations(t, k)}
    near = np.array([[a <= b or b <= a for a in parts] for b in parts])
    distances = np.where(near, 1.0, 2.0) - np.eye(len(parts))  # its barycentric subdivision
    bars = barcode(torch.from_numpy(distances), max_dim=2, metric="precomputed")
    assert [len(bar.lengths) for bar in bars] == [30, 0, 0]
    in_two = gudhi.RipsComplex(distance_matrix=distances).create_simplex_tree(max_dimension=3)
    in_two.compute_persistence(homology_coeff_field=2)
    assert [len(in_two.persistence_intervals_in_dimension(k)) for k in (1, 2)] == [1, 1]
