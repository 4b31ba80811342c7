"""RSA against scipy's Spearman correlation of scipy's cosine distances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from shrink_utils.geometry import rsa


def _cosine_distances(x):
    x = np.asarray(x, dtype=np.float64)
    return pdist(x / np.abs(x).max(axis=1, keepdims=True), "cosine").round(12)


def test_it_is_spearman_between_the_distances_of_all_pairs(pair):
    x, y = pair
    expected = spearmanr(_cosine_distances(x), _cosine_distances(y)).statistic
    assert rsa(x, y) == pytest.approx(expected, abs=1e-9)


def test_three_pairs_by_hand():
    """Distances 1, 1 − √½, 1 − √½ against 2, 1, 1: the tied pairs share rank 1.5 in both."""
    x = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]
    y = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]
    assert rsa(x, y) == pytest.approx(1)
    assert rsa(x, [y[1], y[2], y[0]]) == pytest.approx(-0.5)


def test_ties_that_rounding_breaks_are_ties():
    """Rows along three directions: distances take few values, all of them many times."""
    rng = np.random.default_rng(0)
    directions = np.array([[1.0, 2.0, 2.0], [0.3, -0.1, 0.7], [-1.0, 0.5, 0.1]])
    which = rng.integers(3, size=40)
    scaled = directions[which] * rng.uniform(0.1, 9, size=(40, 1))
    assert rsa(directions[which], scaled) == pytest.approx(1, abs=1e-12)


def test_a_representation_is_like_itself_and_bounds_hold(pair):
    x, y = pair
    assert rsa(x, x) == pytest.approx(1, abs=1e-12)
    assert abs(rsa(x, y)) <= 1 + 1e-12


def test_it_is_symmetric(pair):
    x, y = pair
    assert rsa(x, y) == pytest.approx(rsa(y, x), abs=1e-12)


def test_rotation_and_the_length_of_each_row_do_not_count(random_pair, rotation):
    x, y = random_pair
    lengths = np.random.default_rng(2).uniform(0.1, 10, size=(len(x), 1))
    assert rsa(lengths * (x @ rotation(5)), y) == pytest.approx(rsa(x, y), abs=1e-12)


def test_a_shift_counts(random_pair):
    x, y = random_pair
    assert abs(rsa(x + 3, y) - rsa(x, y)) > 0.05


def test_an_invertible_map_counts(random_pair):
    x, y = random_pair
    assert abs(rsa(x * [20, 1, 1, 1, 1], y) - rsa(x, y)) > 0.05


def test_zero_rows_are_refused_by_name(random_pair):
    x, y = random_pair
    y = y.copy()
    y[3] = 0
    with pytest.raises(ValueError, match=r"y of shape \(30, 4\) has 1 zero row.* at row 3"):
        rsa(x, y)


def test_different_rows_are_refused(random_pair):
    x, y = random_pair
    with pytest.raises(ValueError, match="same samples as rows, got 30 and 29 rows"):
        rsa(x, y[:-1])


def test_two_rows_have_one_pair_and_no_order():
    with pytest.raises(ValueError, match=r"x needs at least 3 row.* got shape \(2, 4\)"):
        rsa(np.ones((2, 4)), np.ones((2, 4)))


@pytest.mark.parametrize("x", [np.eye(6), np.ones((6, 2)), np.arange(1.0, 7.0)[:, None]])
def test_equal_distances_have_no_order(x):
    with pytest.raises(ValueError, match="y has all 15 pairs of its 6 rows at the same cosine"):
        rsa(np.random.default_rng(0).normal(size=(6, 3)), x)
