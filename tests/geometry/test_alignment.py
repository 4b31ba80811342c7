"""Alignments: planted maps are found, and nothing else of their kind comes closer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import orthogonal_procrustes

from shrink_utils.geometry import affine, procrustes
from tests.geometry.conftest import rotation_of, unit_scaled


def _clouds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 5))
    y = x @ rng.normal(size=(5, 5)) + rng.normal(size=(40, 5))
    return {
        "random": (x, y),
        "offset": (x + 1e3, y - 1e3),
        "tiny": (x * 1e-150, y * 1e-8),
        "rank-deficient": (rng.normal(size=(40, 2)) @ rng.normal(size=(2, 5)), y),
        "float32": (x.astype(np.float32), y.astype(np.float32)),
    }


CLOUDS = _clouds()
each_pair = pytest.mark.parametrize("pair", CLOUDS.values(), ids=CLOUDS.keys())


def _centre(x):
    x = np.asarray(x, dtype=np.float64)
    return x - x.mean(0)


@each_pair
def test_procrustes_is_the_rotation_that_scipy_finds(pair):
    x, y = map(unit_scaled, pair)
    expected = x @ orthogonal_procrustes(x, y)[0]
    found = procrustes(*pair)
    np.testing.assert_allclose(x @ found.matrix.numpy(), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.matrix.T @ found.matrix, np.eye(5), rtol=0, atol=1e-12)


@each_pair
def test_affine_is_least_squares_with_a_constant(pair):
    x, y = (np.asarray(z, dtype=np.float64) for z in pair)
    size_x, size_y = np.abs(_centre(x)).max(), np.abs(_centre(y)).max()
    design = np.concatenate([_centre(x) / size_x, np.ones((len(x), 1))], axis=1)
    weights = np.linalg.lstsq(design, _centre(y) / size_y, rcond=1e-10)[0]
    mapped = (affine(*pair)(x).numpy() - y.mean(0)) / size_y
    np.testing.assert_allclose(mapped, design @ weights, rtol=0, atol=1e-9)


@each_pair
def test_affine_has_the_least_norm(pair):
    x, y = map(unit_scaled, pair)
    expected = np.linalg.pinv(x, rcond=1e-10) @ y
    np.testing.assert_allclose(affine(x, y).matrix, expected, rtol=0, atol=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 50.0]))
def test_a_planted_rotation_is_found_on_rows_that_were_not_fitted(seed, shift):
    x = np.random.default_rng(seed).normal(size=(40, 4))
    y = x @ rotation_of(4, seed) + shift
    found = procrustes(x[:20], y[:20])
    np.testing.assert_allclose(found(x[20:]), y[20:], rtol=0, atol=1e-9)
    assert found.explained(x[20:], y[20:]) == pytest.approx(1, abs=1e-9)


def test_a_planted_scale_is_found_when_asked_for():
    x = np.random.default_rng(1).normal(size=(40, 4))
    y = 3 * x @ rotation_of(4) + 1
    assert procrustes(x, y, scaling=True).explained(x, y) == pytest.approx(1, abs=1e-12)
    rigid = procrustes(x, y)
    np.testing.assert_allclose(rigid.matrix, rotation_of(4), rtol=0, atol=1e-9)
    assert rigid.explained(x, y) == pytest.approx(1 - (2 / 3) ** 2, abs=1e-9)


def test_a_planted_affine_map_is_found_and_no_rotation_does_it():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 4))
    y = x @ rng.normal(size=(4, 7)) - 5
    assert affine(x[:30], y[:30]).explained(x[30:], y[30:]) == pytest.approx(1, abs=1e-9)
    assert procrustes(x[:30], y[:30]).explained(x[30:], y[30:]) < 0.9


def test_a_wide_space_goes_where_the_padded_rotation_takes_it():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(40, 6)), rng.normal(size=(40, 3))
    padded = np.concatenate([_centre(y), np.zeros((40, 3))], axis=1)
    expected = orthogonal_procrustes(_centre(x), padded)[0][:, :3]
    np.testing.assert_allclose(procrustes(x, y).matrix, expected, rtol=0, atol=1e-9)


def test_explained_is_measured_against_the_mean_of_the_fit():
    x, y = CLOUDS["random"]
    found = affine(x[:20], y[:20])
    missed = np.square(found(x[20:]).numpy() - y[20:]).sum()
    spread = np.square(y[20:] - y[:20].mean(0)).sum()
    assert found.explained(x[20:], y[20:]) == pytest.approx(1 - missed / spread)


def test_too_few_rows_for_an_affine_map_are_announced():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(6, 5)), rng.normal(size=(6, 2))
    with pytest.warns(UserWarning, match=r"x of shape \(6, 5\) has too few rows"):
        found = affine(x, y)
    assert found.explained(x, y) == pytest.approx(1, abs=1e-9)
