import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from shrink_utils.topology import barcode, h0_barcode
from tests.topology.conftest import gudhi_intervals

matrices = hnp.arrays(
    np.float64,
    st.tuples(st.integers(2, 20), st.integers(1, 4)),
    elements=st.floats(-100, 100).map(lambda v: round(v, 3)),
)


def assert_same(actual, expected, scale=1.0):
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12 * scale)


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


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_points_have_no_bar(n):
    points = torch.zeros(n, 3, requires_grad=True)
    bars = h0_barcode(points)
    bars.lengths.sum().backward()
    assert bars.lengths.shape == (0,)
    assert (bars.edges.shape, bars.edges.dtype) == ((0, 2), torch.int64)
    assert points.grad.tolist() == [[0.0] * 3] * n


def test_far_tight_clusters_keep_all_their_bars(clouds):
    """In float32 a matrix-multiply distance finds 1 of these 127 bars."""
    cloud = clouds["far_tight_clusters"].float()
    lengths = h0_barcode(cloud).lengths
    assert (lengths > 0).sum() == 127
    assert_same(
        lengths,
        gudhi_intervals(0, points=cloud.double().numpy())[:, 1].astype(np.float32),
        scale=1e5,
    )
    inside = torch.cat([h0_barcode(half).lengths for half in (cloud[:64], cloud[64:])])
    assert torch.equal(lengths[1:], inside.sort(descending=True).values)


def test_float32_points_far_apart_do_not_overflow():
    points = torch.tensor([[-1e30, 0.0], [1e30, 0.0], [1e30, 1e30]])
    torch.testing.assert_close(h0_barcode(points).lengths, torch.tensor([2e30, 1e30]))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_float64_squares_neither_overflow_nor_vanish(scale):
    points = scale * torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]], dtype=torch.float64)
    assert_same(h0_barcode(points).lengths / scale, [5.0, 1.0])


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


@pytest.mark.parametrize("n", [0, 1, 2])
def test_barcode_of_too_few_points_for_a_loop_is_empty(n):
    points = torch.zeros(n, 3, requires_grad=True)
    bars = barcode(points, max_dim=2)
    sum(bar.lengths.sum() for bar in bars).backward()
    assert [len(bar.lengths) for bar in bars] == [max(n - 1, 0), 0, 0]
    assert points.grad.tolist() == [[0.0] * 3] * n
