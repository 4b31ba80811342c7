"""Clouds with planted sub-clusters: what is drawn, what is removed, what is kept."""

import pytest
import torch

from shrink_utils.study.subclusters import APART, D, _measured, draw_clouds, subclusters_kept


def test_the_clouds_are_what_they_are_said_to_be():
    clouds = draw_clouds(4000, 5.0, torch.Generator().manual_seed(0))
    one = clouds.points[clouds.classes == 1]
    assert one.std(dim=0)[0].item() == pytest.approx(5.0, rel=0.05)
    parts = clouds.parts[clouds.classes == 1]
    apart = one[parts == 1].mean(0) - one[parts == 0].mean(0)
    assert apart[3].item() == pytest.approx(2 * APART, abs=0.2) and apart[2].abs() < 0.2
    total = 25 + APART**2 + D - 1  # of the variance inside a class
    eye = torch.eye(D, dtype=torch.float64)
    measured = _measured(clouds, eye, silhouette=False)
    assert measured["noise_share"] == pytest.approx(25 / total, rel=0.05)
    without = eye.clone()
    without[0] = 0.0
    assert _measured(clouds, without)["noise_share"] == 0.0
    assert _measured(clouds, without)["silhouette"] > _measured(clouds, eye)["silhouette"]


def test_arms_are_compared_at_an_equal_removal_of_the_noise():
    table = subclusters_kept(noises=(6.0,), seeds=(0,), arms=("all", "isoscore"))
    assert table.reached.all() and (table.steps > 3).all()
    removed = table.noise_share_after / table.noise_share_before
    assert removed.between(0.4, 0.55).all()
    assert table.silhouette_before.nunique() == 1 and table.silhouette_after.nunique() == 2
    again = subclusters_kept(noises=(6.0,), seeds=(0,), arms=("isoscore",))
    assert again.iloc[0].to_dict() == table.iloc[1].to_dict()
