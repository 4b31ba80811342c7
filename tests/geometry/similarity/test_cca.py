"""Canonical correlations against products of projections; the two means against their formulas."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.geometry import cca, pwcca, svcca

# The pairs of conftest include matrices with too few directions; the warnings have their own tests.
few_directions = pytest.mark.filterwarnings("ignore:. of shape .* linearly independent")
few_rows = pytest.mark.filterwarnings("ignore:x and y have .* by counting alone")


def _centre(x):
    x = np.asarray(x, dtype=np.float64)
    x = x - x.mean(axis=0)
    return x / np.abs(x).max()


def _projection(x):
    return x @ np.linalg.pinv(x, rcond=1e-10)  # (n, n)


def _rank(x):
    return np.linalg.matrix_rank(x, tol=1e-10 * np.linalg.norm(x, 2))


def _correlations(x, y):
    """cos of the angles between the two column spaces: singular values of P_x P_y."""
    x, y = _centre(x), _centre(y)
    return np.linalg.svd(_projection(x) @ _projection(y))[1][: min(_rank(x), _rank(y))]


def _pwcca(x, y):
    """Canonical variates of x are eigenvectors of P_x P_y P_x, ρ² their eigenvalues."""
    x, y = _centre(x), _centre(y)
    product = _projection(x) @ _projection(y) @ _projection(x)
    squared, variates = np.linalg.eigh((product + product.T) / 2)
    top = np.argsort(squared)[::-1][: min(_rank(x), _rank(y))]
    weights = np.abs(variates[:, top].T @ x).sum(axis=1)
    return float(weights @ np.sqrt(squared[top]) / weights.sum())


def _leading(x, variance):
    x = _centre(x)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    share = np.cumsum(s**2) / np.sum(s**2)
    k = next(i for i, value in enumerate(share, start=1) if value >= variance - 1e-15)
    return u[:, :k] * s[:k]


@few_directions
@few_rows
def test_correlations_are_cosines_between_column_spaces(pair):
    x, y = pair
    np.testing.assert_allclose(cca(x, y).numpy(), _correlations(x, y), rtol=0, atol=1e-9)


def test_one_column_each_is_the_correlation_coefficient():
    x, y = np.random.default_rng(4).normal(size=(2, 12))
    assert float(cca(x[:, None], y[:, None])) == pytest.approx(abs(np.corrcoef(x, y)[0, 1]))


@few_directions
@few_rows
@pytest.mark.parametrize("variance", [0.5, 0.9, 0.99])
def test_svcca_is_the_mean_correlation_of_the_leading_directions(pair, variance):
    x, y = pair
    expected = _correlations(_leading(x, variance), _leading(y, variance)).mean()
    assert svcca(x, y, variance=variance) == pytest.approx(expected, abs=1e-9)


def test_svcca_keeps_the_fewest_directions_that_reach_the_share():
    """Variances 8 : 1 : 1. Two directions hold .9 of it, one holds .8."""
    t = np.arange(8)
    basis = np.stack([np.cos(np.pi * t), np.cos(np.pi * t / 2), np.sin(np.pi * t / 2)], axis=1)
    basis *= [1, np.sqrt(2), np.sqrt(2)]  # orthogonal columns of length √8, mean zero
    x, y = basis * np.sqrt([8, 1, 1]), basis[:, [0]] + basis[:, [1]]
    assert svcca(x, y, variance=0.79) == pytest.approx(np.sqrt(0.5))
    assert svcca(x, y, variance=0.95) == pytest.approx(1)


def test_svcca_of_all_the_variance_is_mean_cca(random_pair):
    assert svcca(*random_pair, variance=1) == pytest.approx(float(cca(*random_pair).mean()))


@few_directions
def test_pwcca_weighs_by_the_projections_of_the_columns_of_x(tall_pair):
    x, y = tall_pair
    assert pwcca(x, y) == pytest.approx(_pwcca(x, y), abs=1e-9)
    assert pwcca(y, x) == pytest.approx(_pwcca(y, x), abs=1e-9)


def test_pwcca_depends_on_the_side_and_its_symmetric_form_does_not(random_pair):
    x, y = random_pair
    x = x * np.array([30, 1, 1, 1, 1])
    assert abs(pwcca(x, y) - pwcca(y, x)) > 0.01
    assert pwcca(x, y, symmetric=True) == pytest.approx((pwcca(x, y) + pwcca(y, x)) / 2)
    assert pwcca(x, y, symmetric=True) == pytest.approx(pwcca(y, x, symmetric=True))


@st.composite
def pairs_with_maps(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    d_x, d_y = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    x = rng.normal(size=(25, d_x))
    y = x @ rng.normal(size=(d_x, d_y)) + rng.normal(size=(25, d_y))
    return x, y, rng.normal(size=(d_x, d_x)) + 3 * np.eye(d_x), rng.normal(size=(d_y, d_y)) + 3


@given(pairs_with_maps())
def test_cca_ignores_invertible_maps_and_shifts_of_both_sides(given_pair):
    x, y, a, _ = given_pair
    np.testing.assert_allclose(cca(x @ a + 7, y - 2), cca(x, y), rtol=0, atol=1e-9)


def test_pwcca_ignores_invertible_maps_of_y_alone(random_pair):
    x, y = random_pair
    a = np.random.default_rng(3).normal(size=(4, 4))
    assert pwcca(x, y @ a + 5) == pytest.approx(pwcca(x, y), abs=1e-9)
    stretched = x * [50, 1, 1, 1, 1]
    assert abs(pwcca(stretched, y) - pwcca(x, y)) > 0.01


def test_even_a_rotation_of_x_changes_pwcca(random_pair, rotation):
    x, y = random_pair
    assert abs(pwcca(x @ rotation(5), y) - pwcca(x, y)) > 1e-4


def test_svcca_ignores_rotation_scale_and_shift_but_no_other_map(random_pair, rotation):
    x, y = random_pair
    moved = -3 * x @ rotation(5) + 1
    assert svcca(moved, y, variance=0.9) == pytest.approx(svcca(x, y, variance=0.9), abs=1e-9)
    stretched = x * [1, 1, 1, 1, 100]
    assert abs(svcca(stretched, y, variance=0.9) - svcca(x, y, variance=0.9)) > 0.05


@few_directions
@few_rows
def test_equal_column_spaces_have_similarity_one(pair):
    x, _ = pair
    for similarity in (cca(x, x).mean(), svcca(x, x), pwcca(x, x)):
        assert float(similarity) == pytest.approx(1, abs=1e-12)


def test_rounding_exceeds_one_by_little():
    x = np.random.default_rng(0).normal(size=(200, 40))
    assert float(cca(x, x + 5).max()) <= 1 + 1e-13


def test_independent_matrices_have_a_correlation_of_about_the_root_of_d_over_n():
    rng = np.random.default_rng(0)
    mean = float(cca(rng.normal(size=(2000, 50)), rng.normal(size=(2000, 50))).mean())
    assert mean == pytest.approx(np.sqrt(50 / 2000), rel=0.2)


@pytest.mark.parametrize("function", [cca, svcca, pwcca])
def test_dependent_columns_are_named_in_a_warning(function, random_pair):
    x, y = random_pair
    with pytest.warns(UserWarning, match=r"y of shape \(30, 5\) has 4 linearly independent"):
        function(x, np.concatenate([y, y[:, :1]], axis=1))


@pytest.mark.parametrize("function", [cca, svcca, pwcca])
def test_a_constant_column_adds_nothing_but_a_warning(function, random_pair):
    x, y = random_pair
    with pytest.warns(UserWarning, match=r"x of shape \(30, 6\) has 5 linearly independent"):
        found = function(np.concatenate([x, np.full((30, 1), 3.0)], axis=1), y)
    np.testing.assert_allclose(found, function(x, y), rtol=0, atol=1e-12)


@pytest.mark.parametrize("function", [cca, pwcca])
def test_correlations_that_are_one_by_counting_are_announced(function):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(10, 6)), rng.normal(size=(10, 5))
    with pytest.warns(UserWarning, match=r"6 and 5 directions over 10 rows: 2 canonical"):
        function(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (cca(x, y) > 1 - 1e-12).tolist() == [True, True, False, False, False]


def test_a_single_forced_correlation_is_announced_too():
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="1 canonical correlation"):
        cca(rng.normal(size=(10, 5)), rng.normal(size=(10, 5)))


def test_no_warning_when_the_ranks_just_fit():
    rng = np.random.default_rng(0)
    assert float(cca(rng.normal(size=(10, 5)), rng.normal(size=(10, 4))).max()) < 1


@pytest.mark.parametrize("function", [cca, svcca, pwcca])
def test_identical_rows_have_no_correlation(function, random_pair):
    with pytest.raises(ValueError, match=r"y of shape \(30, 4\) has no variance"):
        function(random_pair[0], np.full((30, 4), 0.1))


@pytest.mark.parametrize("function", [cca, svcca, pwcca])
def test_different_rows_are_refused(function, random_pair):
    x, y = random_pair
    with pytest.raises(ValueError, match="same samples as rows, got 30 and 29 rows"):
        function(x, y[:-1])


@pytest.mark.parametrize("variance", [0.0, -1.0, 1.1, float("nan")])
def test_an_impossible_share_of_variance_is_refused(variance, random_pair):
    with pytest.raises(ValueError, match="variance must lie above 0 and not above 1"):
        svcca(*random_pair, variance=variance)
