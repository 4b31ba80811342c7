"""Elongated directions, treatments by cluster, shares within and between classes."""

import numpy as np
import pytest
import torch

from shrink_utils.geometry import (
    anisotropy,
    between_share,
    elongated_directions,
    nearest_centre,
    principal_axes,
    within_classes,
)
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


# Two classes of four rows, at ±3 on the first axis; inside, ±1 on the second and ±2 on the third.
INSIDE = torch.tensor([[0.0, 1, 0], [0, -1, 0], [0, 0, 2], [0, 0, -2]])
CLOUD = torch.cat([INSIDE + torch.tensor([3.0, 0, 0]), INSIDE - torch.tensor([3.0, 0, 0])])
LABELS = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1])


def test_the_score_within_classes_does_not_see_how_far_they_lie_apart():
    """Sums of squares inside: 4 on the second axis, 16 on the third."""
    for apart in (1.0, 100.0):
        x = CLOUD * torch.tensor([apart, 1.0, 1.0])
        assert anisotropy(within_classes(x, LABELS), k=1).item() == pytest.approx(16 / 20)
    assert anisotropy(CLOUD, k=1, center=True).item() == pytest.approx(72 / 92)


def test_the_share_between_classes_is_that_of_their_means():
    """8 · 3² = 72 between the means, 20 inside."""
    assert between_share(CLOUD, LABELS) == pytest.approx(72 / 92)
    assert between_share(CLOUD, LABELS.flip(0)) == pytest.approx(72 / 92)
    assert between_share(INSIDE, [0, 0, 1, 1]) == pytest.approx(0.0)  # one mean
    assert between_share(CLOUD * torch.tensor([1.0, 0, 0]), LABELS) == pytest.approx(1.0)


def test_unequal_classes_are_weighed_by_their_rows():
    x, labels = np.array([[0.0], [0.0], [0.0], [4.0]]), ["a", "a", "a", "b"]
    assert within_classes(x, labels).abs().sum() == 0
    rows = np.array([[0.0], [2.0], [1.0], [5.0]])  # mean 2, class means 1 and 5
    assert between_share(rows, labels) == pytest.approx((3 * 1 + 9) / (4 + 0 + 1 + 9))
