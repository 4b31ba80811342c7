"""Measures inside clusters and the count of elongated directions, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.geometry import by_cluster, effective_rank, elongated_directions, iso_score


def _clouds():
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


CLOUDS = _clouds()
each_cloud = pytest.mark.parametrize("x", CLOUDS.values(), ids=CLOUDS.keys())


def _eigenvalues(x):
    return np.linalg.eigvalsh(np.cov(x / np.abs(x).max(), rowvar=False))


@each_cloud
@pytest.mark.parametrize("ratio", [0.5, 2.0, 5.0])
def test_elongated_directions_are_counted_among_the_covariances_eigenvalues(x, ratio):
    eigenvalues = _eigenvalues(x)
    expected = sum(value > ratio * eigenvalues.mean() for value in eigenvalues)
    assert elongated_directions(x, ratio=ratio) == expected


def test_three_loud_directions_are_three():
    assert elongated_directions(CLOUDS["three loud directions"], ratio=2) == 3


def test_equal_eigenvalues_have_no_elongated_direction():
    assert elongated_directions(np.vstack([np.eye(8), -np.eye(8)]), ratio=1.01) == 0


def test_a_mean_far_from_zero_is_no_elongated_direction():
    x = CLOUDS["random"]
    assert elongated_directions(x + 1e3 * np.arange(20)) == elongated_directions(x) == 0


@given(st.integers(0, 10**6), st.sampled_from([1e-6, 1.0, 1e9]))
def test_elongated_directions_ignore_rotation_and_scale(seed, scale):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 6)) * [9, 1, 1, 1, 1, 1]
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    assert elongated_directions(scale * x @ turn, ratio=3) == elongated_directions(x, ratio=3)


@pytest.mark.parametrize(("n", "some"), [(32, True), (48, True), (96, False), (400, False)])
def test_an_isotropic_sample_has_elongated_directions_when_rows_are_fewer_than_065_d(n, some):
    rng = np.random.default_rng(0)
    counts = [elongated_directions(rng.normal(size=(n, 96))) for _ in range(5)]
    assert all((count > 0) == some for count in counts)


def test_with_few_rows_nearly_every_direction_of_an_isotropic_sample_counts():
    x = np.random.default_rng(0).normal(size=(20, 400))
    assert elongated_directions(x) == 19


@pytest.mark.parametrize("ratio", [0, -1.0, float("nan")])
def test_an_impossible_ratio_is_refused(ratio):
    with pytest.raises(ValueError, match="ratio must be above 0"):
        elongated_directions(CLOUDS["random"], ratio=ratio)


def test_identical_rows_have_no_directions_to_count():
    with pytest.raises(ValueError, match="no variance"):
        elongated_directions(np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"at least 2 row"):
        elongated_directions(np.ones((1, 3)))


def _labels(n, seed=1):
    return np.random.default_rng(seed).choice(["a", "b", "c"], p=[0.5, 0.3, 0.2], size=n)


@pytest.mark.parametrize("name", ["random", "rank-deficient", "offset", "tiny", "small"])
@pytest.mark.parametrize("measure", [iso_score, effective_rank])
def test_each_cluster_is_centred_and_the_mean_is_weighted_by_its_rows(name, measure):
    x = CLOUDS[name]
    labels = _labels(len(x))
    inside = [x[labels == c] for c in "abc"]
    values = [measure(part - part.mean(0)) for part in inside]
    found = by_cluster(measure, x, labels)
    np.testing.assert_allclose(found.per_cluster, values, atol=1e-9)
    assert found.sizes.tolist() == [len(part) for part in inside]
    expected = sum(v * len(part) for v, part in zip(values, inside, strict=True)) / len(x)
    assert found.value == pytest.approx(expected, abs=1e-9)


def test_the_measure_sees_rows_without_mean():
    labels = _labels(60)
    largest = by_cluster(lambda rows: float(rows.mean(0).abs().max()), CLOUDS["offset"], labels)
    assert largest.per_cluster.max() < 1e-10


def test_one_cluster_is_the_measure_itself():
    x = CLOUDS["random"]
    assert by_cluster(iso_score, x, np.zeros(60)).value == pytest.approx(iso_score(x), rel=1e-12)


def test_clusters_of_different_means_are_isotropic_locally_and_not_globally():
    rng = np.random.default_rng(0)
    labels = torch.arange(900) % 3
    x = rng.normal(size=(900, 4)) + 50 * np.eye(4)[labels]
    assert by_cluster(iso_score, x, labels).value > 0.95
    assert iso_score(x) < 0.5


def test_small_clusters_are_left_out_with_a_warning():
    x = CLOUDS["random"]
    labels = np.array([0] * 53 + [1] * 5 + [2] * 2)  # five are enough, two are not
    with pytest.warns(UserWarning, match=r"1 of 3 clusters have fewer than 5 rows"):
        found = by_cluster(iso_score, x, labels, min_rows=5)
    assert torch.isnan(found.per_cluster).tolist() == [False, False, True]
    expected = by_cluster(iso_score, x[:58], labels[:58]).value
    assert found.value == pytest.approx(expected, rel=1e-12)


def test_no_cluster_large_enough_is_an_error():
    with pytest.raises(ValueError, match=r"none of 3 cluster.* min_rows = 40.* the largest"):
        by_cluster(iso_score, CLOUDS["random"], _labels(60), min_rows=40)


def test_labels_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"labels needs one label a row: 60 rows"):
        by_cluster(iso_score, CLOUDS["random"], [0, 1])
