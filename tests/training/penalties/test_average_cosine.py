"""The average cosine, against geometry's and by hand."""

from __future__ import annotations

import pytest
import torch

from shrink_utils.geometry import avg_sim
from shrink_utils.training.penalties import AverageCosine


def test_it_is_the_average_similarity_of_the_class(cloud):
    assert AverageCosine()(cloud).values.item() == pytest.approx(avg_sim(cloud).value, abs=1e-12)


def test_it_is_the_mean_over_pairs_of_different_rows():
    rows = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]], dtype=torch.float64)
    assert AverageCosine()(rows).values.item() == pytest.approx((0 + 2 * 0.5**0.5) / 3)


def test_the_length_of_a_row_does_not_matter(cloud):
    lengths = torch.linspace(0.1, 5.0, len(cloud), dtype=torch.float64)[:, None]
    here, there = (AverageCosine()(x).values for x in (cloud, lengths * cloud))
    torch.testing.assert_close(here, there, rtol=1e-12, atol=1e-14)


def test_a_shift_matters(cloud):
    assert AverageCosine()(cloud + 100.0).values.item() > 0.99


def test_a_zero_row_counts_as_orthogonal_to_all_and_does_not_move(cloud):
    rows = torch.cat([cloud, torch.zeros(1, 5)]).requires_grad_()
    out = AverageCosine()(rows)
    out.loss.backward()
    n = len(cloud)
    assert out.values.item() == pytest.approx(avg_sim(cloud).value * (n - 1) / (n + 1), abs=1e-12)
    assert rows.grad[-1].abs().max() == 0.0
    assert rows.grad[:-1].abs().max() > 0.0
