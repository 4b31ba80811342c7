"""Affine maps: planted ones are found and nothing comes closer; removal is by definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from shrink_utils.geometry import affine, principal_axes, procrustes
from shrink_utils.geometry.maps import nearest_centre
from tests.geometry.conftest import clouds, each, rotation_of, unit_scaled


def test_procrustes_is_the_rotation_that_scipy_finds_on_padded_rows(pair):
    x, y = map(unit_scaled, pair)
    padded = np.pad(y, ((0, 0), (0, x.shape[1] - y.shape[1])))
    expected = x @ orthogonal_procrustes(x, padded)[0][:, : y.shape[1]]
    found = procrustes(*pair)
    np.testing.assert_allclose(x @ found.matrix.numpy(), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.matrix.T @ found.matrix, np.eye(y.shape[1]), atol=1e-12)


def test_affine_is_least_squares_with_a_constant_and_has_the_least_norm(tall_pair):
    x, y = (np.asarray(z, dtype=np.float64) for z in tall_pair)
    size, unit = np.abs(y - y.mean(0)).max(), unit_scaled(x)
    design = np.concatenate([unit, np.ones((len(x), 1))], axis=1)
    weights = np.linalg.lstsq(design, (y - y.mean(0)) / size, rcond=1e-10)[0]
    mapped = (affine(*tall_pair)(x).numpy() - y.mean(0)) / size
    np.testing.assert_allclose(mapped, design @ weights, rtol=0, atol=1e-9)
    expected = np.linalg.pinv(unit, rcond=1e-10) @ unit_scaled(y)
    np.testing.assert_allclose(affine(unit, unit_scaled(y)).matrix, expected, rtol=1e-9, atol=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 50.0]))
def test_a_planted_rotation_is_found_on_rows_that_were_not_fitted(seed, shift):
    x = np.random.default_rng(seed).normal(size=(40, 4))
    y = x @ rotation_of(4, seed) + shift
    found = procrustes(x[:20], y[:20])
    np.testing.assert_allclose(found(x[20:]), y[20:], rtol=0, atol=1e-9)
    assert found.explained(x[20:], y[20:]) == pytest.approx(1, abs=1e-9)


def test_a_planted_scale_is_found_when_asked_for_and_a_planted_affine_map_by_affine_alone():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(60, 4))
    y = 3 * x @ rotation_of(4) + 1
    assert procrustes(x, y, scaling=True).explained(x, y) == pytest.approx(1, abs=1e-12)
    rigid = procrustes(x, y)
    np.testing.assert_allclose(rigid.matrix, rotation_of(4), rtol=0, atol=1e-9)
    assert rigid.explained(x, y) == pytest.approx(1 - (2 / 3) ** 2, abs=1e-9)
    y = x @ rng.normal(size=(4, 7)) - 5
    assert affine(x[:30], y[:30]).explained(x[30:], y[30:]) == pytest.approx(1, abs=1e-9)
    assert procrustes(x[:30], y[:30]).explained(x[30:], y[30:]) < 0.9


def test_explained_is_measured_against_the_mean_of_the_fit(random_pair):
    x, y = random_pair
    found = affine(x[:20], y[:20])
    missed = np.square(found(x[20:]).numpy() - y[20:]).sum()
    spread = np.square(y[20:] - y[:20].mean(0)).sum()
    assert found.explained(x[20:], y[20:]) == pytest.approx(1 - missed / spread)


def test_too_few_rows_for_an_affine_map_are_announced():
    x, y = np.random.default_rng(6).normal(size=(2, 6, 5))
    with pytest.warns(UserWarning, match=r"x of shape \(6, 5\) has too few rows"):
        found = affine(x, y)
    assert found.explained(x, y) == pytest.approx(1, abs=1e-9)


def test_columns_that_are_lost_to_the_cut_are_told_and_scaled_they_are_used():
    x = np.random.default_rng(0).normal(size=(30, 2)) * [1e5, 1e-5]
    y = x[:, 1:] * 1e5
    with pytest.warns(UserWarning, match=r"\(30, 2\) varies in 1 .* scale the columns"):
        assert affine(x, y).explained(x, y) < 0.5
    turned = x @ rotation_of(2)
    with pytest.warns(UserWarning, match=r"\(30, 2\) varies in 1 .* scale the columns"):
        affine(turned, y)
    scaled = x / [1e5, 1e-5]
    assert affine(scaled, y).explained(scaled, y) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_dependent_columns_are_no_loss_wherever_the_cloud_lies(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 5)) * 10.0 ** rng.integers(-20, 20)
    x += np.abs(x).max() * 10.0 ** rng.integers(-3, 7)
    x[:, 0] = 0.1
    affine(x, rng.normal(size=(30, 2)))  # without a warning


CLOUDS = clouds(
    40, 6, columns=[9, 5, 3, 1, 0.5, 0.2], without=["identical rows", "one column", "wide"]
)


def _by_definition(fit, *, centres, remove, skip):
    """From scratch: a cluster at a time, and within it a row and a direction at a time."""
    unit = np.abs(fit).max()
    nearest = np.argmin([[np.linalg.norm((r - c) / unit) for c in centres] for r in fit], axis=1)
    out = np.empty_like(fit)
    for c in range(len(centres)):
        inside = fit[nearest == c]
        scaled = unit_scaled(inside)
        vectors = np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1][:, skip : skip + remove]
        treated = inside - inside.mean(0)
        for v in vectors.T:
            treated = np.array([row - (row @ v) * v for row in treated])
        out[nearest == c] = treated
    return out


def _close(found, expected, x):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(x - x.mean(0)).max())


@each(CLOUDS)
@pytest.mark.parametrize(("remove", "skip"), [(0, 0), (1, 0), (2, 0), (1, 1), (1, 2), (3, 0)])
def test_removal_projects_on_what_the_chosen_eigenvectors_leave(x, remove, skip):
    options = {"remove": remove, "skip": skip}
    found = principal_axes(x).treatment(**options)(x)
    _close(found, _by_definition(x, centres=x.mean(0)[None], **options), x)


@pytest.mark.parametrize(("scale", "offset"), [(1, 0), (1, 1e3), (1e-8, 0), (1e-150, 0)])
@pytest.mark.parametrize(("remove", "skip"), [(0, 0), (1, 0), (2, 0), (2, 2)])
def test_clusters_are_treated_each_by_its_own_rows(scale, offset, remove, skip):
    rng = np.random.default_rng(3)
    centres = np.array([[30.0, 0, 0, 0, 0], [0, 30, 0, 0, 0], [0, 0, -30, 0, 0]])
    x = rng.normal(size=(40, 5)) * [4, 3, 2, 1, 0.5] + centres[np.arange(40) % 3]
    x, centres = x * scale + offset, centres * scale + offset
    found = principal_axes(x, centres=centres).treatment(remove=remove, skip=skip)(x)
    _close(found, _by_definition(x, centres=centres, remove=remove, skip=skip), x)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_nearest_centre_is_found_at_any_scale_and_offset(scale):
    rng = np.random.default_rng(1)
    x, centres = rng.normal(size=(50, 4)), rng.normal(size=(6, 4))
    expected = [np.argmin([np.sum((row - c) ** 2) for c in centres]) for row in x]
    for offset in (0.0, 1e8):
        found = nearest_centre((x + offset) * scale, (centres + offset) * scale)
        assert found.tolist() == expected


def test_of_equally_near_centres_the_first_is_taken_in_whole_numbers():
    rng = np.random.default_rng(0)
    centres = 2.0 * rng.integers(-9, 9, size=(100, 2, 3))
    found = [nearest_centre(pair.mean(axis=0, keepdims=True), pair) for pair in centres]
    assert {int(c) for c in found} == {0}
