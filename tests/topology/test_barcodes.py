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


def random_distances(low, high):
    drawn = np.triu(np.random.default_rng(0).integers(low, high, (24, 24)), 1).astype(float)
    return drawn + drawn.T


def bars_of(distances, max_dim):
    bars = barcode(torch.from_numpy(distances), max_dim=max_dim, metric="precomputed")[max_dim]
    return np.stack([bars.births, bars.deaths], axis=1)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("by", ["ripser", "simplex tree"])
@pytest.mark.parametrize("name", ["clustered", "duplicated", "grid", "offset", "ties", "no metric"])
def test_ties_and_distances_of_zero_change_no_bar(clouds, monkeypatch, name, by, dimension):
    """In "ties", some distances are 0 and the points nevertheless no copies."""
    if by == "simplex tree":
        monkeypatch.setattr(barcodes, "ripser", None)
    found = {"ties": random_distances(0, 9), "no metric": random_distances(1, 10**9)}
    distances = found.get(name, squareform(pdist(clouds.get(name, clouds["grid"]).numpy())))
    expected = gudhi_intervals(dimension, distance_matrix=distances)
    expected = expected[expected[:, 1] > expected[:, 0]]
    assert sorted(bars_of(distances, dimension).tolist()) == sorted(expected.tolist())


GAUSSIAN = np.random.default_rng(0).standard_normal((500, 16))
COPY = GAUSSIAN.copy()
COPY[1] = COPY[0]
HARD = {
    "one row repeated": COPY,
    "every row twice, but for rounding": np.tile(GAUSSIAN[:250], (2, 1)),
    "lattice": np.stack(np.meshgrid(*[np.arange(1.0, 9.0)] * 3), axis=-1).reshape(-1, 3),
}
HARD["every row twice, but for rounding"][250:] *= 1 + 1e-15
METRICS = dict(zip(HARD, ("precomputed", "cosine", "euclidean"), strict=True))


@pytest.mark.parametrize("kind", HARD)
def test_copies_and_lattices_take_no_longer_than_other_clouds(kind):
    """The simplex tree of 500 points has 20 million triangles: half a minute."""
    given = squareform(pdist(COPY)) if METRICS[kind] == "precomputed" else HARD[kind]
    begun = time.process_time()
    assert len(barcode(torch.from_numpy(given), metric=METRICS[kind])[1].lengths) > 100
    assert time.process_time() - begun < 8


def test_more_simplices_than_memory_holds_are_refused():
    with pytest.raises(ValueError, match=r"points.*dimension 3 of 400 points.*1e\+09"):
        barcode(torch.randn(400, 2), max_dim=3)


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
