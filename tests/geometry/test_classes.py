"""Variance within and between classes, on clouds whose values are known by hand."""

import numpy as np
import pytest
import torch

from shrink_utils.geometry import anisotropy, between_share, within_classes

# Two classes of four rows, at ±3 on the first axis; inside, ±1 on the second and ±2 on the third.
INSIDE = torch.tensor([[0.0, 1, 0], [0, -1, 0], [0, 0, 2], [0, 0, -2]])
CLOUD = torch.cat([INSIDE + torch.tensor([3.0, 0, 0]), INSIDE - torch.tensor([3.0, 0, 0])])
LABELS = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])


def test_the_score_within_classes_does_not_see_how_far_they_lie_apart():
    """Sums of squares inside: 4 on the second axis, 16 on the third."""
    for apart in (1.0, 100.0):
        x = CLOUD * torch.tensor([apart, 1.0, 1.0])
        assert anisotropy(within_classes(x, LABELS), k=1).item() == pytest.approx(16 / 20)
    assert anisotropy(CLOUD, k=1, center=True).item() == pytest.approx(72 / 92)


def test_the_share_between_classes_is_that_of_their_means():
    """8 · 3² = 72 between the means, 20 inside."""
    assert between_share(CLOUD, LABELS) == pytest.approx(72 / 92)
    assert between_share(CLOUD, LABELS.flip(0)) == pytest.approx(72 / 92)
    assert between_share(INSIDE, [0, 0, 1, 1]) == pytest.approx(0.0)  # one mean
    assert between_share(CLOUD * torch.tensor([1.0, 0, 0]), LABELS) == pytest.approx(1.0)


def test_unequal_classes_are_weighed_by_their_rows():
    x, labels = np.array([[0.0], [0.0], [0.0], [4.0]]), ["a", "a", "a", "b"]
    assert within_classes(x, labels).abs().sum() == 0
    rows = np.array([[0.0], [2.0], [1.0], [5.0]])  # mean 2, class means 1 and 5
    assert between_share(rows, labels) == pytest.approx((3 * 1 + 9) / (4 + 0 + 1 + 9))
