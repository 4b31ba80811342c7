"""Bars of cosine distances and of matrices of distances, against gudhi and the Euclidean ones."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist, squareform

from shrink_utils.topology import barcode, h0_barcode, persistent_entropy
from tests.topology.conftest import gudhi_intervals


def _cloud(n=24, d=3):
    return torch.randn(n, d, dtype=torch.float64)


def _distances(cloud, metric):
    return squareform(pdist(cloud.numpy(), metric))


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("metric", ["cosine", "cityblock"])
def test_bars_of_other_distances_are_gudhis(metric, dimension):
    cloud = _cloud(30) * torch.linspace(0.01, 100, 30, dtype=torch.float64)[:, None]
    distances = _distances(cloud, metric)
    given = (cloud, metric) if metric == "cosine" else (torch.from_numpy(distances), "precomputed")
    bars = barcode(given[0], max_dim=dimension, metric=given[1])[dimension]
    expected = gudhi_intervals(dimension, distance_matrix=distances)
    assert len(expected) > 0
    np.testing.assert_allclose(bars.births, expected[:, 0], atol=1e-14)
    np.testing.assert_allclose(bars.deaths, expected[:, 1], atol=1e-14)
    assert (bars.lengths.diff() <= 0).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_the_components_have_the_edges_of_their_lengths(metric):
    cloud = _cloud()
    bars, given = h0_barcode(cloud, metric=metric), _distances(cloud, metric)
    np.testing.assert_allclose(bars.lengths, given[tuple(bars.edges.T)], atol=1e-14)
    again = h0_barcode(torch.from_numpy(given), metric="precomputed")
    np.testing.assert_allclose(again.lengths, bars.lengths, atol=1e-14)
    assert {frozenset(e) for e in again.edges.tolist()} == {
        frozenset(e) for e in bars.edges.tolist()
    }


@pytest.mark.parametrize("max_dim", [0, 1])
@pytest.mark.parametrize("metric", ["cosine", "precomputed"])
def test_gradients_are_those_of_differences(metric, max_dim):
    def total(points):
        if metric == "precomputed":
            points = (points[:, None] - points[None]).abs().sum(dim=-1)
        bars = barcode(points, max_dim=max_dim, metric=metric)
        return sum(persistent_entropy(bar.lengths) + bar.lengths.sum() for bar in bars)

    assert torch.autograd.gradcheck(total, _cloud(12).requires_grad_(), eps=1e-7, atol=1e-5)


def test_both_entries_of_an_edge_share_its_gradient():
    distances = torch.tensor([[0.0, 1.0, 4.0], [1.0, 0.0, 2.0], [4.0, 2.0, 0.0]])
    distances.requires_grad_()
    h0_barcode(distances, metric="precomputed").lengths.sum().backward()
    half = [[0.0, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.0]]
    assert distances.grad.tolist() == half


def test_cosine_distances_in_float32_are_taken_though_some_lie_below_zero():
    cloud = _cloud(60, 6).float()
    cloud[1] = cloud[0]
    unit = cloud / cloud.norm(dim=1, keepdim=True)
    distances = (1 - unit @ unit.T).requires_grad_()
    assert distances.min() < 0
    bars = h0_barcode(distances, metric="precomputed").lengths
    assert bars.min() >= 0
    torch.testing.assert_close(bars, h0_barcode(cloud, metric="cosine").lengths, rtol=0, atol=1e-6)
    bars[:-1].sum().backward()
    assert distances.grad.sum() == 58
    with pytest.raises(ValueError, match=r"hold a negative distance, -0\.01"):
        h0_barcode(distances.detach() - 0.01 * torch.eye(60), metric="precomputed")
