"""Elongated directions and treatments, globally and by cluster, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from shrink_utils.geometry import elongated_directions, nearest_centre, principal_axes
from tests.geometry.conftest import clouds, each, eigenvalues, unit_scaled

LOUD = clouds(60, 20, columns=[12, 9, 6, *[1] * 17], without=["identical rows"])
CLOUDS = clouds(
    40, 6, columns=[9, 5, 3, 1, 0.5, 0.2], without=["identical rows", "one column", "wide"]
)


@each(LOUD)
@pytest.mark.parametrize("ratio", [0.5, 2.0, 5.0])
def test_elongated_directions_are_counted_among_the_covariances_eigenvalues(x, ratio):
    found = eigenvalues(x)
    expected = sum(value > ratio * found.mean() for value in found)
    assert elongated_directions(x, ratio=ratio) == expected


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
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e8])
def test_the_nearest_centre_is_found_at_any_scale_and_offset(scale, offset):
    rng = np.random.default_rng(1)
    x, centres = rng.normal(size=(50, 4)), rng.normal(size=(6, 4))
    expected = [np.argmin([np.sum((row - c) ** 2) for c in centres]) for row in x]
    found = nearest_centre((x + offset) * scale, (centres + offset) * scale)
    assert found.tolist() == expected


def test_identical_rows_have_a_mean_to_subtract():
    x = np.full((3, 4), 0.1)
    np.testing.assert_array_equal(principal_axes(x).treatment()(x), np.zeros((3, 4)))
