"""Elongated directions and treatments, globally and by cluster, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from shrink_utils.geometry import (
    elongated_directions,
    nearest_centre,
    principal_axes,
)


def _samples():
    rng = np.random.default_rng(0)
    loud = rng.normal(size=(60, 20)) * np.array([12, 9, 6] + 17 * [1])
    return {
        "random": rng.normal(size=(60, 20)),
        "three loud directions": loud,
        "rank-deficient": rng.normal(size=(60, 3)) @ rng.normal(size=(3, 20)),
        "offset": loud + 1e3,
        "wide": rng.normal(size=(6, 60)),
        "tiny": loud * 1e-150,
        "small": loud * 1e-8,
        "huge": loud * 1e200,
        "two rows": rng.normal(size=(2, 20)),
    }


SAMPLES = _samples()
each_sample = pytest.mark.parametrize("x", SAMPLES.values(), ids=SAMPLES.keys())


def _eigenvalues(x):
    return np.linalg.eigvalsh(np.cov(x / np.abs(x).max(), rowvar=False))


@each_sample
@pytest.mark.parametrize("ratio", [0.5, 2.0, 5.0])
def test_elongated_directions_are_counted_among_the_covariances_eigenvalues(x, ratio):
    eigenvalues = _eigenvalues(x)
    expected = sum(value > ratio * eigenvalues.mean() for value in eigenvalues)
    assert elongated_directions(x, ratio=ratio) == expected


def _clouds():
    rng = np.random.default_rng(0)
    loud = rng.normal(size=(40, 6)) * [9, 5, 3, 1, 0.5, 0.2]
    return {
        "random": loud,
        "rank-deficient": loud[:, :3] @ rng.normal(size=(3, 6)),
        "offset": loud + 1e3,
        "wide": rng.normal(size=(9, 30)) * np.linspace(3, 0.1, 30),
        "tiny": loud * 1e-150,
        "small": loud * 1e-8,
        "huge": loud * 1e200,
        "duplicates": np.repeat(loud[:8], 3, axis=0),
    }


CLOUDS = _clouds()
each_cloud = pytest.mark.parametrize("x", CLOUDS.values(), ids=CLOUDS.keys())


def _eigenvectors(x):
    """Of the covariance, as columns by falling eigenvalue."""
    scaled = (x - x.mean(0)) / np.abs(x - x.mean(0)).max()
    return np.linalg.eigh(scaled.T @ scaled)[1][:, ::-1]


def _without(x, mean, vectors):
    """Subtract the mean, then each direction's part, one row and one direction at a time."""
    treated = []
    for row in x:
        left = row - mean
        for v in vectors.T:
            left = left - (left @ v) * v
        treated.append(left)
    return np.array(treated)


def _by_definition(fit, rows, *, centres, remove, skip=0):
    """Everything from scratch: two loops over the clusters."""
    nearest = [[np.linalg.norm(r - c) for c in centres] for r in rows]
    nearest_fit = [[np.linalg.norm(r - c) for c in centres] for r in fit]
    out = np.empty_like(rows)
    for c in range(len(centres)):
        inside = fit[np.argmin(nearest_fit, axis=1) == c]
        chosen = np.argmin(nearest, axis=1) == c
        vectors = _eigenvectors(inside)[:, skip : skip + remove]
        out[chosen] = _without(rows[chosen], inside.mean(0), vectors)
    return out


def _close(found, expected, x):
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9 * np.abs(x - x.mean(0)).max())


@each_cloud
@pytest.mark.parametrize(("remove", "skip"), [(0, 0), (1, 0), (2, 0), (1, 1), (1, 2), (3, 0)])
def test_removal_projects_on_what_the_chosen_eigenvectors_leave(x, remove, skip):
    chosen = _eigenvectors(x)[:, skip : skip + remove]
    found = principal_axes(x).treatment(remove=remove, skip=skip)(x)
    _close(found, _without(x, x.mean(0), chosen), x)


def _two_groups(scale=1.0, offset=0.0):
    rng = np.random.default_rng(3)
    shape = rng.normal(size=(40, 5)) * [4, 3, 2, 1, 0.5]
    centres = np.array([[30.0, 0, 0, 0, 0], [0, 30, 0, 0, 0], [0, 0, -30, 0, 0]])
    which = np.arange(40) % 3
    return (shape + centres[which]) * scale + offset, centres * scale + offset, which


@pytest.mark.parametrize(("scale", "offset"), [(1, 0), (1, 1e3), (1e-8, 0), (1e-150, 0)])
@pytest.mark.parametrize(("remove", "skip"), [(0, 0), (1, 0), (2, 0), (2, 2)])
def test_clusters_are_treated_each_by_its_own_rows(scale, offset, remove, skip):
    x, centres, _ = _two_groups(scale, offset)
    found = principal_axes(x, centres=centres).treatment(remove=remove, skip=skip)(x)
    _close(found, _by_definition(x, x, centres=centres, remove=remove, skip=skip), x)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
def test_the_nearest_centre_is_found_at_any_scale_and_offset(scale, offset):
    rng = np.random.default_rng(1)
    x, centres = rng.normal(size=(50, 4)), rng.normal(size=(6, 4))
    expected = [np.argmin([np.sum((row - c) ** 2) for c in centres]) for row in x]
    found = nearest_centre((x + offset) * scale, (centres + offset) * scale)
    assert found.tolist() == expected


def test_identical_rows_have_a_mean_and_no_direction():
    x = np.full((3, 4), 0.1)
    axes = principal_axes(x)
    np.testing.assert_array_equal(axes.treatment()(x), np.zeros((3, 4)))
    with pytest.raises(ValueError, match="varies in 0 direction"):
        axes.treatment(remove=1)
