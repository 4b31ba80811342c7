"""The entropy of singular values, against geometry's effective rank and a gradient by hand."""

from __future__ import annotations

import math

import pytest
import torch

from shrink_utils.geometry import effective_rank
from shrink_utils.training.penalties import SpectralEntropy


def _centred(x):
    return x - x.mean(0)


def test_it_is_minus_the_log_of_the_effective_rank(cloud):
    expected = -math.log(effective_rank(cloud))
    assert SpectralEntropy()(cloud).values.item() == pytest.approx(expected, abs=1e-12)


def test_a_shift_of_a_class_does_not_matter(cloud):
    here, there = (SpectralEntropy()(x).values for x in (cloud, cloud + 1000.0))
    torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("shape", [(6, 20), (20, 6)])
def test_the_gradient_is_that_of_the_formula(gaussian, shape):
    """Also with fewer rows than dimensions, where centring takes a direction away."""
    rows = gaussian(*shape).requires_grad_()
    SpectralEntropy(weight=2.0)(rows).loss.backward()
    u, sigma, v = torch.linalg.svd(_centred(rows.detach()), full_matrices=False)
    rank = min(shape[0] - 1, shape[1])
    u, sigma, v = u[:, :rank], sigma[:rank], v[:rank]
    p = sigma / sigma.sum()
    entropy = -(p * p.log()).sum()
    slopes = -(p.log() + entropy) / sigma.sum()  # ∂H/∂σ
    torch.testing.assert_close(rows.grad, -2.0 * (u * slopes) @ v, rtol=1e-9, atol=1e-12)


def test_equal_singular_values_have_a_finite_gradient():
    rows = torch.cat([torch.eye(4), -torch.eye(4)]).double().requires_grad_()
    out = SpectralEntropy()(rows)
    out.loss.backward()
    assert out.values.item() == pytest.approx(-math.log(4), abs=1e-12)
    assert rows.grad.abs().max() < 1e-12  # the most that four directions can have


def test_rows_in_few_dimensions_stay_in_them(gaussian):
    """Rounding would otherwise choose directions, with gradients of the size of ln 1e-16."""
    flat = gaussian(10, 2) @ gaussian(2, 8, seed=1)
    rows = flat.clone().requires_grad_()
    SpectralEntropy()(rows).loss.backward()
    outside = torch.linalg.svd(_centred(flat)).Vh[2:]  # (6, 8)
    assert rows.grad.abs().max() > 1e-3
    assert (rows.grad @ outside.T).abs().max() < 1e-12


def test_equal_rows_stay_equal(gaussian):
    rows = gaussian(4, 6).repeat(3, 1).requires_grad_()
    SpectralEntropy()(rows).loss.backward()
    torch.testing.assert_close(rows.grad[:4], rows.grad[4:8], rtol=1e-9, atol=1e-12)
    assert rows.grad.abs().max() > 1e-3
