"""Clouds with planted sub-clusters: what is drawn, what is removed, what is kept."""

import pytest
import torch

from shrink_utils.study import make_regularizer
from shrink_utils.study.subclusters import (
    SEPARATION,
    D,
    draw_clouds,
    noise_share,
    silhouette,
    trained_map,
)

EYE = torch.eye(D, dtype=torch.float64)


def test_the_clouds_are_what_they_are_said_to_be():
    clouds = draw_clouds(4000, 5.0, torch.Generator().manual_seed(0))
    one = clouds.points[clouds.classes == 1]
    assert one.std(dim=0)[0].item() == pytest.approx(5.0, rel=0.05)
    parts = clouds.parts[clouds.classes == 1]
    apart = one[parts == 1].mean(0) - one[parts == 0].mean(0)
    assert apart[3].item() == pytest.approx(2 * SEPARATION, abs=0.2) and apart[2].abs() < 0.2
    total = 25 + SEPARATION**2 + D - 1  # of the variance inside a class
    assert noise_share(clouds, EYE) == pytest.approx(25 / total, rel=0.05)
    without = EYE.clone()
    without[0] = 0.0
    assert noise_share(clouds, without) == 0.0
    assert silhouette(clouds, without) > silhouette(clouds, EYE)


def test_rewards_are_compared_at_an_equal_removal_of_the_noise():
    clouds = draw_clouds(500, 6.0, torch.Generator().manual_seed(1))
    maps = {arm: trained_map(make_regularizer(arm), 6.0, seed=0) for arm in ("all", "isoscore")}
    for weights in maps.values():
        assert 0.4 < noise_share(clouds, weights) / noise_share(clouds, EYE) < 0.55
    assert not torch.equal(*maps.values())
    assert torch.equal(trained_map(make_regularizer("all"), 6.0, seed=0), maps["all"])
