"""Intervals of a mean, and of what is computed from pairs: textbook cases, coverage, refusals."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from shrink_utils.study.claims.stl import interpolate_frontier
from shrink_utils.study.statistics import Interval, _mean_of, paired_interval, pseudo_values

numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(numbers, min_size=2, max_size=9), st.floats(0.01, 0.99))
def test_bounds_are_the_means_that_a_t_test_does_not_reject(values, confidence):
    interval = paired_interval(values, confidence=confidence)
    # A t test of (almost) equal numbers is rounding.
    assume(np.std(values) > 1e-6 * np.abs(values).max())
    for bound in (interval.low, interval.high):
        p = stats.ttest_1samp(values, bound).pvalue
        assert p == pytest.approx(1 - confidence, abs=1e-5)


def test_one_seed_has_infinite_bounds_and_equal_differences_no_width_and_neither_a_p():
    assert paired_interval([-0.2]) == Interval(-0.2, -math.inf, math.inf, 1)
    assert paired_interval([-0.5, -0.5, -0.5]) == Interval(-0.5, -0.5, -0.5, 3)
    for differences in ([0.3], [0.5, 0.5]):
        assert math.isnan(_mean_of(differences).p())


FINITE = "differences has NaN or infinity"
SHAPE = r"differences needs one number per unit, or \(units, rows\), got shape \("


@pytest.mark.parametrize(
    ("bad", "message"),
    [([0.1, bad], FINITE) for bad in (math.nan, math.inf, -math.inf)]
    + [(bad, SHAPE) for bad in ([], [[0.1], [0.2]], [[[0.1]]], 0.1)],
)
def test_differences_that_are_not_one_finite_number_per_unit_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        paired_interval(bad)


def test_for_the_mean_of_all_pairs_they_are_worked_by_hand():
    """Three units with pair values 1, 2, 6: θ = 3, and without a unit one pair is left."""
    pairs = {(0, 1): 1.0, (0, 2): 2.0, (1, 2): 6.0}
    found = pseudo_values(
        lambda units: np.mean([pairs[p] for p in combinations(units, 2)]), range(3)
    )
    assert found == pytest.approx([3 * 3 - 2 * 6, 3 * 3 - 2 * 2, 3 * 3 - 2 * 1])


def test_intervals_over_units_cover_where_intervals_over_pairs_do_not():
    """A pair's value is the sum of its units' luck: the truth is 0."""
    rng, n = np.random.default_rng(0), 6
    covered, naive = [], []
    for _ in range(400):
        luck = rng.normal(size=n)
        pairs = {p: luck[p[0]] + luck[p[1]] for p in combinations(range(n), 2)}
        found = pseudo_values(
            lambda units, pairs=pairs: np.mean([pairs[p] for p in combinations(units, 2)]), range(n)
        )
        interval = paired_interval(found)
        covered.append(interval.low < 0 < interval.high)
        naive.append(stats.ttest_1samp(list(pairs.values()), 0).pvalue > 0.05)
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
    assert np.mean(naive) < 0.85


@pytest.mark.parametrize("bound", [0.0, -0.5, 0.3])
def test_p_is_that_of_students_test_and_agrees_with_the_interval(bound):
    values = [0.2, -0.1, 0.4, 0.3]
    interval, found = paired_interval(values), _mean_of(values).p(bound)
    assert found == pytest.approx(stats.ttest_1samp(values, bound).pvalue)
    assert (found < 0.05) == (not interval.low <= bound <= interval.high)


def test_crossed_intervals_cover_where_intervals_over_seeds_alone_do_not():
    """Differences with luck of a seed, of a row, and of both; the truth is 0."""
    rng, luck = np.random.default_rng(0), (((5, 1), 0.1), ((1, 60), 1.0), ((5, 60), 0.5))
    drawn = [sum(size * rng.normal(size=of) for of, size in luck) for _ in range(600)]
    crossed = [paired_interval(x) for x in drawn]
    seeds = [paired_interval(x.mean(axis=1)) for x in drawn]
    held = [np.mean([i.low < 0 < i.high for i in found]) for found in (crossed, seeds)]
    assert held[0] > 0.93 and held[1] < 0.85


def test_rows_that_all_seeds_answer_alike_leave_the_luck_of_rows():
    a = np.tile([True, True, False, True], (3, 1))
    found = paired_interval(a)
    error = math.sqrt((3 * 0.25**2 + 0.75**2) / 4**2 * 4 / 3)
    assert found.estimate == 0.75 and found.n == 3
    assert found.high - found.estimate == pytest.approx(stats.t.ppf(0.975, 2) * error, rel=0.1)
    assert paired_interval(a[:1]) == Interval(0.75, -math.inf, math.inf, 1)


def _read(scores, values, score):
    place = interpolate_frontier(scores, score)
    return float(place.of(values)), place.passed


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.5, 0.75), (0.2, 0.5), (0.4, 0.7), (0.6, 0.8), (0.7, 0.8), (0.05, 0.4)],
)
def test_a_metric_is_interpolated_on_the_score_or_that_of_the_nearest_point(score, expected):
    found, passed = _read([0.6, 0.4, 0.1], [0.80, 0.70, 0.40], score)
    assert found == pytest.approx(expected) and passed == (0.1 <= score <= 0.6)


def test_a_sweep_that_turns_back_is_read_where_it_first_passes():
    assert _read([0.6, 0.2, 0.6], [0.8, 0.4, 0.0], 0.4)[0] == pytest.approx(0.6)
