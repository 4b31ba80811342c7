"""Resampling by halves: what it draws, the known variance of a mean, and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from shrink_utils.geometry import cka
from shrink_utils.study.statistics import bootstrap_interval


def _mean(x):
    return float(x.mean())


@pytest.mark.parametrize("n", [40, 7])  # of 7, 3 are kept and 4 left out
def test_the_standard_error_of_a_mean_is_the_textbooks(n):
    x = np.random.default_rng(0).normal(size=(n, 1))
    found = bootstrap_interval(_mean, x, n_resamples=4000).stderr
    assert found == pytest.approx(x.std(ddof=1) / math.sqrt(n), rel=0.05)


def test_rows_of_one_group_stay_together():
    groups = np.array(list("aaabbcccccddeeef"))

    def measure(x):
        kept = set(groups[x[:, 0].long().numpy()])
        assert len(x) == sum(int((groups == g).sum()) for g in kept)
        assert len(kept) in (3, 6)
        return float(x.mean())

    bootstrap_interval(measure, np.arange(16.0)[:, None], groups=groups, n_resamples=40)


def test_dependent_rows_need_groups():
    """Every row ten times: the spread is that of 30 rows, which only groups can know."""
    x = np.random.default_rng(0).normal(size=(30, 1))
    copies, groups = x.repeat(10, axis=0), np.arange(30).repeat(10)
    honest = bootstrap_interval(_mean, copies, groups=groups, n_resamples=1000).stderr
    assert honest == pytest.approx(x.std(ddof=1) / math.sqrt(30), rel=0.08)
    assert bootstrap_interval(_mean, copies).stderr < honest / 2


def _coverage(measure, truth, draw, *, trials=100):
    rng = np.random.default_rng(7)
    hits = 0
    for trial in range(trials):
        found = bootstrap_interval(measure, *draw(rng), n_resamples=40, seed=trial)
        hits += found.low <= truth <= found.high
    return hits / trials


def _draw(rng, n=50):
    shared = rng.normal(size=(n, 3))
    return tuple(
        np.concatenate([shared * [2.0, 1.5, 1.0], rng.normal(size=(n, 3))], axis=1)
        for _ in range(2)
    )


def test_intervals_of_debiased_cka_hold_the_truth_as_often_as_they_say():
    truth = (16 + 1.5**4 + 1) / (16 + 1.5**4 + 1 + 3)  # ‖C_xy‖² / ‖C_xx‖‖C_yy‖

    def measure(x, y):
        return cka(x, y, debiased=True)

    assert 0.90 <= _coverage(measure, truth, _draw) <= 0.99


def test_a_measure_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="measure must give a finite number"):
        bootstrap_interval(lambda x: 1.0 if len(x) == 6 else math.inf, np.ones((6, 2)))


@pytest.mark.parametrize(
    ("arrays", "options", "match"),
    [
        ([], {}, r"arrays must be matrices .* got \[\] rows"),
        ([np.ones((3, 2))], {}, "groups: 3 to draw from, halves need at least 4"),
        ([np.ones((6, 2))], {"groups": [0, 0, 0, 1, 1, 1]}, "groups: 2 to draw from"),
        ([np.ones((6, 2))], {"groups": [0, 1]}, "groups needs one label per row: 6 rows"),
        ([np.ones((6, 2)), np.ones((5, 2))], {}, r"same samples, got \[5, 6\]"),
        ([np.ones((6, 2))], {"confidence": 0.0}, "confidence must lie"),
        ([np.ones((6, 2))], {"confidence": 1.0}, "confidence must lie"),
        ([np.ones((6, 2))], {"n_resamples": 1}, "n_resamples must be"),
    ],
)
def test_what_cannot_be_drawn_from_is_refused(arrays, options, match):
    with pytest.raises(ValueError, match=match):
        bootstrap_interval(_mean, *arrays, **options)


def test_the_standard_error_is_that_of_the_resampled_values():
    """s.e. = s (ddof 1) of the halves' values times √(kept / left out), 2 of 5 rows kept."""
    values = []

    def measure(x):
        values.append(float(x.mean()))
        return values[-1]

    found = bootstrap_interval(measure, torch.arange(5.0)[:, None] ** 2, n_resamples=2)
    _, *resampled = values
    assert found.stderr == pytest.approx(np.std(resampled, ddof=1) * (2 / 3) ** 0.5, rel=1e-12)
