"""Spectrum, IsoScore and EffectiveRank: what they do beside merging."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.geometry import effective_rank
from shrink_utils.geometry.streaming import EffectiveRank, IsoScore, Spectrum


@pytest.mark.parametrize(
    ("metric", "needed"),
    [(IsoScore(3), 2), (IsoScore(3, bias_corrected=True), 4)],
)
def test_too_few_rows_are_refused(metric, needed):
    metric.update(torch.randn(needed - 1, 3))
    match = rf"IsoScore needs at least {needed} row\(s\), it has seen {needed - 1}"
    with pytest.raises(ValueError, match=match):
        metric.compute()


@pytest.mark.parametrize("metric", [Spectrum(3, center=True), IsoScore(3), EffectiveRank(3)])
def test_identical_rows_on_two_workers_have_no_variance(metric):
    metric.reset()
    other = metric.clone()
    metric.update(np.full((4, 3), 0.1))
    other.update(np.full((7, 3), 0.1))
    metric.merge_state(other)
    with pytest.raises(ValueError, match=r"has seen 11 row\(s\) with no variance"):
        metric.compute()


@pytest.mark.parametrize("metric", [Spectrum(3), EffectiveRank(3, center=False)])
def test_zeros_are_refused(metric):
    metric.update(torch.zeros(4, 3))
    with pytest.raises(ValueError, match=r"has seen 4 row\(s\) with nothing but zeros"):
        metric.compute()


@pytest.mark.parametrize("k", [0, -1, 4])
def test_more_scores_than_there_are_are_refused(k):
    metric = Spectrum(8, k=k)
    metric.update(torch.randn(3, 8))
    with pytest.raises(ValueError, match=rf"k must be between 1 and min.* = 3, got {k} after 3"):
        metric.compute()


def test_iso_score_of_a_single_column_is_refused():
    with pytest.raises(ValueError, match="n_features must be at least 2, got 1"):
        IsoScore(1)


def test_the_correction_is_undefined_for_equidistant_rows():
    metric = IsoScore(7, bias_corrected=True)
    for row in torch.eye(7):
        metric.update(row[None])
    with pytest.raises(ValueError, match="undefined for these 7 rows"):
        metric.compute()


@pytest.mark.parametrize("n", [2, 5, 30])
def test_fewer_rows_than_columns_have_the_value_of_all_rows(n):
    x = np.random.default_rng(0).normal(size=(n, 40))
    metric = EffectiveRank(40)
    for batch in np.array_split(x, 2):
        metric.update(batch)
    assert float(metric.compute()) == pytest.approx(effective_rank(x), rel=1e-12)


def test_many_null_directions_do_not_count():
    """From a scatter matrix each of the 294 would count with 1e-8 of the largest, 1 % in all."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6)) @ rng.normal(size=(6, 300)) + 10
    metric = EffectiveRank(300)
    for batch in np.array_split(x, 3):
        metric.update(batch)
    assert float(metric.compute()) == pytest.approx(effective_rank(x), rel=1e-10)
