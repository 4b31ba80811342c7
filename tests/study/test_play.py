"""The cloud that the loss moves goes downhill."""

from __future__ import annotations

import pytest
import torch

from shrink_utils.study import play
from shrink_utils.topology import BarcodeRegularizer

LABELS = torch.arange(20) % 2


@pytest.fixture
def start():
    return torch.randn(20, 2, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def test_without_a_regularizer_the_task_alone_moves_points_along_its_direction(start):
    clouds = play.descend(start, LABELS, None, steps=5, rate=1.0)
    assert clouds.shape == (6, 20, 2) and torch.equal(clouds[0], start)
    assert torch.equal(clouds[-1][:, 1], start[:, 1])
    moved = clouds[-1][:, 0] - start[:, 0]
    assert (moved[LABELS == 1] > 0).all() and (moved[LABELS == 0] < 0).all()


def test_every_bar_in_the_loss_raises_the_entropy_and_keeps_the_cloud_rounder(start):
    ends = {
        name: play.measure(play.descend(start, LABELS, term, steps=60, rate=5.0)[-1], LABELS)
        for name, term in {"none": None, "all": BarcodeRegularizer("all", weight=3.0)}.items()
    }
    assert ends["all"]["missing"] < 0.1 * ends["none"]["missing"]
    assert ends["all"]["score"] < ends["none"]["score"]
