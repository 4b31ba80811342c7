"""Pseudo-values: the mean where there is one, and coverage for functions of pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from shrink_utils.study.intervals import paired_interval
from shrink_utils.study.jackknife import pseudo_values


def test_for_a_mean_of_units_they_are_the_units():
    values = {4: 0.3, 7: -1.0, 9: 2.5}
    found = pseudo_values(lambda units: np.mean([values[u] for u in units]), values)
    assert found == pytest.approx(list(values.values()))


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


def test_one_unit_is_refused():
    with pytest.raises(ValueError, match="units: 1, expected at least 2"):
        pseudo_values(len, [3])
