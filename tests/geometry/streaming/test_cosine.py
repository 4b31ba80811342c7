"""AvgSim and RogueDimensions: what they do beside merging."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.geometry.streaming import AvgSim, RogueDimensions


@pytest.mark.parametrize("metric", [AvgSim, RogueDimensions])
def test_a_single_row_has_no_pairs(metric):
    metric = metric(3)
    metric.update(np.ones((1, 3)))
    with pytest.raises(ValueError, match=r"needs at least 2 row\(s\), it has seen 1"):
        metric.compute()


def test_a_single_group_is_refused():
    metric = AvgSim(3)
    metric.update(np.eye(3), ["a", "a", "a"])
    with pytest.raises(ValueError, match="at least 2 different labels, got 1 for 3 rows"):
        metric.compute()


def test_groups_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"groups needs one label a row: 3 rows, got shape \(2,\)"):
        AvgSim(3).update(np.eye(3), [0, 1])


def test_labels_of_different_batches_are_different_groups():
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    metric = AvgSim(2)
    metric.update(x, ["a", "a"])
    metric.update(-x, ["a", "a"])
    assert metric.compute() == -1


def test_shares_of_dimensions_sum_to_avg_sim():
    whole, shares = AvgSim(5), RogueDimensions(5)
    for batch in (torch.randn(40, 5) + 0.5).split(9):
        whole.update(batch)
        shares.update(batch)
    assert float(shares.compute().sum()) == pytest.approx(float(whole.compute()), abs=1e-14)
