"""IsoScore*, against geometry's IsoScore, and what it remembers between batches."""

from __future__ import annotations

import pytest
import torch

from shrink_utils.geometry import iso_score
from shrink_utils.training.penalties import IsoScoreStar


def _iso_score(covariance):
    """(PR − 1) / (d − 1), from eigenvalues."""
    eigenvalues = torch.linalg.eigvalsh(covariance)
    ratio = eigenvalues.sum() ** 2 / eigenvalues.square().sum()
    return float((ratio - 1) / (len(covariance) - 1))


@pytest.mark.parametrize("shrinkage", [0.0, 0.2, 0.9])
def test_at_the_first_batch_of_one_class_it_is_its_iso_score(cloud, shrinkage):
    penalty = IsoScoreStar(shrinkage=shrinkage)
    assert penalty(cloud).values.item() == pytest.approx(1 - iso_score(cloud), abs=1e-12)


@pytest.mark.parametrize("unit_trace", [False, True])
def test_the_covariance_is_drawn_towards_that_of_all_classes_and_batches(gaussian, unit_trace):
    first, second = gaussian(9, 4), 3 * gaussian(7, 4, seed=1)
    labels = torch.tensor([0] * 4 + [1] * 3)
    penalty = IsoScoreStar(shrinkage=0.3, unit_trace=unit_trace)
    penalty(first)
    values = penalty(second, labels).values
    covariances = [torch.cov(x.T) for x in (first, second[:4], second[4:])]
    if unit_trace:
        covariances = [c / c.trace() for c in covariances]
    pooled = sum(k * c for k, c in zip((8, 3, 2), covariances, strict=True)) / 13
    torch.testing.assert_close(penalty.stable, pooled, rtol=1e-12, atol=1e-14)
    assert penalty.degrees.item() == 13
    for value, covariance in zip(values, covariances[1:], strict=True):
        expected = 1 - _iso_score(0.7 * covariance + 0.3 * pooled)
        assert value.item() == pytest.approx(expected, abs=1e-12)


def test_a_cloud_that_shrinks_gains_nothing(gaussian):
    """As published it does: what is left of it is the stable covariance, of full rank."""
    many, few = gaussian(200, 8), gaussian(4, 8, seed=1)
    values = {}
    for unit_trace in (False, True):
        penalty = IsoScoreStar(unit_trace=unit_trace)
        penalty(many)
        penalty.eval()
        values[unit_trace] = [penalty(scale * few).loss.item() for scale in (1.0, 1e-3)]
    assert values[True][1] == pytest.approx(values[True][0], rel=1e-9)
    assert values[False][1] < values[False][0] - 0.2


def test_the_stable_covariance_carries_no_gradient(cloud):
    penalty = IsoScoreStar()
    penalty(cloud.requires_grad_())
    assert not penalty.stable.requires_grad


def test_in_evaluation_mode_nothing_is_remembered(cloud, gaussian):
    penalty = IsoScoreStar()
    penalty(cloud)
    before = penalty.stable.clone()
    penalty.eval()
    first, again = (penalty(gaussian(8, 5)).loss.item() for _ in range(2))
    assert torch.equal(penalty.stable, before) and first == again
    assert first != IsoScoreStar()(gaussian(8, 5)).loss.item()  # what is remembered counts


def test_a_class_of_one_row_is_not_remembered(cloud):
    penalty = IsoScoreStar()
    penalty(cloud[:1])
    assert penalty.degrees.item() == 0
    penalty(cloud)
    own = torch.cov(cloud.T) / torch.cov(cloud.T).trace()
    torch.testing.assert_close(penalty.stable, own, rtol=1e-12, atol=1e-14)


def test_a_stored_state_goes_on_bit_for_bit(gaussian):
    penalty, resumed = IsoScoreStar(), IsoScoreStar()
    for seed in range(3):
        penalty(gaussian(8, 5, seed=seed))
    resumed.load_state_dict(penalty.state_dict())
    assert (
        penalty(gaussian(8, 5, seed=3)).loss.item() == resumed(gaussian(8, 5, seed=3)).loss.item()
    )
    assert torch.equal(penalty.stable, resumed.stable)


def test_a_fresh_state_can_be_stored(cloud):
    penalty = IsoScoreStar()
    penalty.load_state_dict(IsoScoreStar().state_dict())
    assert penalty(cloud).values.item() == pytest.approx(1 - iso_score(cloud), abs=1e-12)


def test_a_shift_of_a_class_does_not_matter(cloud):
    here, there = (IsoScoreStar()(x).values for x in (cloud, cloud + 1000.0))
    torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-12)


def test_isotropy_has_value_zero_and_a_line_one():
    cross = torch.cat([torch.eye(4), -torch.eye(4)]).double()
    line = torch.outer(torch.arange(6), torch.tensor([1, 2, 0, 0])).double()
    assert IsoScoreStar()(cross).values.item() == pytest.approx(0.0, abs=1e-12)
    assert IsoScoreStar()(line).values.item() == pytest.approx(1.0, abs=1e-12)


def test_equal_rows_have_value_and_gradient_zero():
    rows = torch.ones(6, 3, dtype=torch.float64, requires_grad=True)
    out = IsoScoreStar()(rows)
    out.loss.backward()
    assert (out.values.item(), rows.grad.abs().max()) == (0.0, 0.0)


def test_rows_of_another_width_are_an_error(cloud, gaussian):
    penalty = IsoScoreStar()
    penalty(cloud)
    with pytest.raises(ValueError, match=r"embeddings must keep the 5 dimensions .* got 3"):
        penalty(gaussian(8, 3))
    with pytest.raises(ValueError, match=r"embeddings must have at least 2 dimensions .* got 1"):
        IsoScoreStar()(gaussian(8, 1))


@pytest.mark.parametrize("shrinkage", [-0.1, 1.0, float("nan")])
def test_a_shrinkage_out_of_range_is_an_error(shrinkage):
    with pytest.raises(ValueError, match="shrinkage must be at least 0 and below 1; got"):
        IsoScoreStar(shrinkage=shrinkage)
