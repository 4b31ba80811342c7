"""Cosines, partition function and pair distances against their definitions, pair by pair."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist

from shrink_utils.geometry import (
    avg_sim,
    avg_sim_pseudo_values,
    mean_squared_distance,
    pair_distances,
    partition_isotropy,
    rogue_dimensions,
)
from tests.geometry.conftest import cosine


def _clouds():
    rng = np.random.default_rng(0)
    return {
        "random": rng.normal(size=(20, 6)),
        "rank-deficient": rng.normal(size=(20, 2)) @ rng.normal(size=(2, 6)),
        "offset": rng.normal(size=(20, 6)) + 1e3,
        "wide": rng.normal(size=(5, 40)),
        "three rows": rng.normal(size=(3, 2)),
        "one column": rng.normal(size=(9, 1)),
        "identical rows": np.tile(rng.normal(size=6), (8, 1)),
        "huge": rng.normal(size=(6, 3)) * 1e200,
    }


CLOUDS = _clouds()
each_cloud = pytest.mark.parametrize("x", CLOUDS.values(), ids=CLOUDS.keys())


def _avg_sim_by_definition(x, groups):
    pairs = [
        cosine(x[i], x[j]) for i, j in combinations(range(len(x)), 2) if groups[i] != groups[j]
    ]
    return sum(pairs) / len(pairs)


def _jackknife_by_definition(x, groups):
    labels = np.unique(groups)
    left_out = [_avg_sim_by_definition(x[groups != g], groups[groups != g]) for g in labels]
    return math.sqrt((len(labels) - 1) * np.var(left_out))


@each_cloud
def test_avg_sim_is_the_mean_over_pairs(x):
    expected = _avg_sim_by_definition(x, np.arange(len(x)))
    assert avg_sim(x).value == pytest.approx(expected, abs=1e-12)


@each_cloud
def test_avg_sim_stderr_is_the_delete_one_jackknife(x):
    expected = _jackknife_by_definition(x, np.arange(len(x)))
    assert avg_sim(x).stderr == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_avg_sim_of_groups_takes_pairs_of_different_groups_only():
    x, groups = CLOUDS["random"], np.array(list("aabbbbcdddeeefffffgg"))
    value, stderr = avg_sim(x, groups=groups)
    assert value == pytest.approx(_avg_sim_by_definition(x, groups), abs=1e-12)
    assert stderr == pytest.approx(_jackknife_by_definition(x, groups), rel=1e-9)


def _shifted(n=11, d=4):
    return torch.randn(n, d, dtype=torch.float64) + 0.5


SENTENCE = torch.tensor([5, 5, 2, 2, 2, 9, 9, 0, 5, 0, 7])


def test_pseudo_values_are_made_of_avg_sim_without_each_sentence():
    x = _shifted()
    whole, expected = avg_sim(x, groups=SENTENCE).value, []
    for sentence in (0, 2, 5, 7, 9):
        others = sentence != SENTENCE
        expected.append(5 * whole - 4 * avg_sim(x[others], groups=SENTENCE[others]).value)
    np.testing.assert_allclose(avg_sim_pseudo_values(x, groups=SENTENCE), expected, atol=1e-12)


@each_cloud
def test_rogue_dimensions_are_the_pairs_products_dimension_by_dimension(x):
    unit = np.array([row / np.abs(row).max() for row in x])
    unit = np.array([row / math.sqrt(row @ row) for row in unit])
    products = [unit[i] * unit[j] for i, j in combinations(range(len(x)), 2)]
    np.testing.assert_allclose(rogue_dimensions(x), np.mean(products, axis=0), atol=1e-12)


def _log_isotropy_by_definition(x):
    eigenvectors = np.linalg.svd(x, full_matrices=True)[2]
    directions = [sign * v for v in eigenvectors for sign in (1, -1)]
    partition = [sum(math.exp(w @ c) for w in x) for c in directions]
    return math.log(min(partition) / max(partition))


@pytest.mark.parametrize("name", ["random", "rank-deficient", "wide", "three rows", "one column"])
def test_partition_isotropy_is_the_ratio_of_partition_functions(name):
    x = CLOUDS[name]
    assert partition_isotropy(x) == pytest.approx(_log_isotropy_by_definition(x), abs=1e-9)


@pytest.mark.parametrize("name", sorted(set(CLOUDS) - {"huge"}))
def test_mean_squared_distance_is_the_mean_over_pairs(name):
    x = CLOUDS[name]
    expected = np.mean([(x[i] - x[j]) @ (x[i] - x[j]) for i, j in combinations(range(len(x)), 2)])
    assert mean_squared_distance(x) == pytest.approx(expected, rel=1e-12)
    assert mean_squared_distance(x[[0, 0, 0]]) == 0


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_sampled_distances_are_distances_of_pairs_and_reach_them_all(metric):
    x = CLOUDS["three rows"]
    every = np.sort(pdist(x, metric))
    drawn = pair_distances(x, metric=metric, n_pairs=6000).numpy()
    index = np.abs(drawn[:, None] - every).argmin(axis=1)
    np.testing.assert_allclose(drawn, every[index], atol=1e-12)
    np.testing.assert_allclose(np.bincount(index) / 6000, 1 / 3, atol=0.03)


def test_near_parallel_rows_keep_their_cosine_distance():
    angle = 1e-9
    distances = pair_distances([[1.0, 0.0], [1.0, angle]], n_pairs=1)
    assert float(distances) == pytest.approx(angle**2 / 2, rel=1e-6)


@pytest.mark.parametrize(
    ("x", "isotropy"),
    [
        (torch.full((4, 9), 1e3), -6000),  # ‖w‖ = 3000: F(c) is 4·e^3000 and 4·e^−3000
        (torch.cat([torch.eye(5), -torch.eye(5)]), 0),
        (torch.zeros(3, 4), 0),
    ],
)
def test_partition_isotropy_of_known_clouds(x, isotropy):
    assert partition_isotropy(x) == pytest.approx(isotropy, rel=1e-12, abs=1e-12)
