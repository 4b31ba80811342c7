"""Measures of one cloud against their definitions: pair by pair, by an SVD, as U-statistics."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist

from shrink_utils.geometry import (
    anisotropy,
    avg_sim,
    avg_sim_pseudo_values,
    between_share,
    effective_rank,
    elongated_directions,
    iso_score,
    mean_squared_distance,
    pair_distances,
    participation_ratio,
    partition_isotropy,
    rogue_dimensions,
    within_classes,
)
from tests.geometry.conftest import clouds, cosine, each, eigenvalues

CLOUDS = clouds(20, 6)
VARYING = clouds(20, 6, without=["identical rows"])
GROUPS = np.array(list("aabbbbcdddeeefffffgg"))


def _avg_sim(x, groups):
    """By definition, with the jackknife that leaves out a group at a time."""
    n, cosines = len(x), [[cosine(a, b) for b in x] for a in x]

    def mean(kept):
        pairs = [cosines[i][j] for i, j in combinations(kept, 2) if groups[i] != groups[j]]
        return sum(pairs) / len(pairs)

    labels = np.unique(groups)
    left_out = np.array([mean([i for i in range(n) if groups[i] != g]) for g in labels])
    return mean(range(n)), left_out


@each(CLOUDS)
@pytest.mark.parametrize("groups", [None, GROUPS])
def test_avg_sim_is_the_mean_over_pairs_of_different_groups_with_its_jackknife(x, groups):
    value, left_out = _avg_sim(x, np.arange(20) if groups is None else groups)
    g, found = len(left_out), avg_sim(x, groups=groups)
    assert found.value == pytest.approx(value, abs=1e-12)
    stderr = math.sqrt((g - 1) * np.var(left_out))
    assert found.stderr == pytest.approx(stderr, rel=1e-6, abs=1e-12)
    pseudo = g * value - (g - 1) * left_out
    np.testing.assert_allclose(avg_sim_pseudo_values(x, groups=groups), pseudo, atol=1e-10)


@each(CLOUDS)
def test_rogue_dimensions_are_the_pairs_products_dimension_by_dimension(x):
    unit = np.array([row / np.abs(row).max() for row in x])
    unit = np.array([row / math.sqrt(row @ row) for row in unit])
    products = [unit[i] * unit[j] for i, j in combinations(range(len(x)), 2)]
    np.testing.assert_allclose(rogue_dimensions(x), np.mean(products, axis=0), atol=1e-12)


@pytest.mark.parametrize("name", ["random", "rank-deficient", "wide", "one column", "duplicates"])
def test_partition_isotropy_is_the_ratio_of_partition_functions(name):
    x = CLOUDS[name]
    directions = [sign * v for v in np.linalg.svd(x, full_matrices=True)[2] for sign in (1, -1)]
    partition = [sum(math.exp(w @ c) for w in x) for c in directions]
    expected = math.log(min(partition) / max(partition))
    assert partition_isotropy(x) == pytest.approx(expected, abs=1e-9)


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


@each(clouds(20, 6, without=["huge"]))
def test_mean_squared_distance_is_the_mean_over_pairs(x):
    expected = np.mean([(x[i] - x[j]) @ (x[i] - x[j]) for i, j in combinations(range(len(x)), 2)])
    assert mean_squared_distance(x) == pytest.approx(expected, rel=1e-12, abs=0)
    assert mean_squared_distance(x[[0, 0, 0]]) == 0


def test_sampled_distances_are_distances_of_pairs_and_reach_them_all():
    x = CLOUDS["random"][:3]
    every = np.sort(pdist(x, "cosine"))
    drawn = pair_distances(x, n_pairs=6000).numpy()
    index = np.abs(drawn[:, None] - every).argmin(axis=1)
    np.testing.assert_allclose(drawn, every[index], atol=1e-12)
    np.testing.assert_allclose(np.bincount(index) / 6000, 1 / 3, atol=0.03)
    near = pair_distances([[1.0, 0.0], [1.0, 1e-9]], n_pairs=1)  # 1 − cos would be 0
    assert float(near) == pytest.approx(5e-19, rel=1e-6)


@each(VARYING)
@pytest.mark.parametrize("center", [False, True])
def test_anisotropy_and_effective_rank_are_those_of_the_singular_values(x, center):
    unit = x / np.abs(x).max()
    sigma = np.linalg.svd(unit - unit.mean(0) if center else unit, compute_uv=False)
    scores = anisotropy(x, k=min(x.shape), center=center)
    np.testing.assert_allclose(scores, sigma**2 / (sigma**2).sum(), atol=1e-9)
    assert scores.dtype == torch.float64 and float(scores.sum()) == pytest.approx(1)
    p = [s / sigma.sum() for s in sigma if s > 0]
    expected = math.exp(-sum(q * math.log(q) for q in p))
    assert effective_rank(x, center=center) == pytest.approx(expected, rel=1e-9)


@each(VARYING)
def test_participation_ratio_is_that_of_the_covariances_eigenvalues(x):
    found = eigenvalues(x)
    expected = found.sum() ** 2 / (found**2).sum()
    assert participation_ratio(x) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", ["random", "rank-deficient", "wide", "duplicates"])
def test_iso_score_is_its_authors_algorithm_in_seven_steps(name):
    d, variances = CLOUDS[name].shape[1], eigenvalues(CLOUDS[name])  # 2, 3: PCA
    normalized = math.sqrt(d) * variances / np.linalg.norm(variances)  # 4
    defect = np.linalg.norm(normalized - 1) / math.sqrt(2 * (d - math.sqrt(d)))  # 5: in [0, 1]
    used = (d - defect**2 * (d - math.sqrt(d))) ** 2 / d**2  # 6: share of dimensions
    assert iso_score(CLOUDS[name]) == pytest.approx((d * used - 1) / (d - 1), abs=1e-9)  # 7


@pytest.mark.parametrize("n", [4, 5, 6])
def test_bias_correction_is_the_ratio_of_u_statistics(n):
    """Both kernels averaged over every ordered choice of four different rows."""
    x = np.random.default_rng(n).exponential(size=(n, 3))  # far from Gaussian
    squared_trace, frobenius = [], []
    for a, b, c, e in permutations(x, 4):
        squared_trace.append(((a - b) @ (a - b)) * ((c - e) @ (c - e)) / 4)
        frobenius.append(((a - b) @ (c - e)) ** 2 / 4)
    expected = np.mean(squared_trace) / np.mean(frobenius)
    assert participation_ratio(x, bias_corrected=True) == pytest.approx(expected, rel=1e-9)
    assert iso_score(x, bias_corrected=True) == pytest.approx((expected - 1) / 2, rel=1e-9)


@pytest.mark.parametrize(
    ("x", "score"),
    [
        (torch.linspace(0, 1, 9)[:, None] * torch.tensor([1.0, 2.0, 3.0]), 0),  # a line
        (np.float16([[-0.3625, 1.824]] * 5 + [[-0.7627, 2.803]]), 0),
        (torch.cat([torch.eye(4), -torch.eye(4)]), 1),
        (torch.cat([torch.eye(9)[:3], -torch.eye(9)[:3]]), 2 / 8),  # (k − 1) / (d − 1)
    ],
)
def test_iso_score_of_k_equal_axes_is_k_minus_one_over_d_minus_one(x, score):
    assert iso_score(x) == pytest.approx(score, abs=1e-12)


LOUD = clouds(60, 20, columns=[12, 9, 6, *[1] * 17], without=["identical rows"])


@each(LOUD)
@pytest.mark.parametrize("ratio", [0.5, 2.0, 5.0])
def test_elongated_directions_are_counted_among_the_covariances_eigenvalues(x, ratio):
    found = eigenvalues(x)
    expected = sum(value > ratio * found.mean() for value in found)
    assert elongated_directions(x, ratio=ratio) == expected


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
    for unit in (1.0, 1e200, 1e-200):  # squares of the last two leave float64
        assert between_share(CLOUD.double() * unit, LABELS) == pytest.approx(72 / 92)
    assert between_share(CLOUD, LABELS.flip(0)) == pytest.approx(72 / 92)
    assert between_share(INSIDE, [0, 0, 1, 1]) == pytest.approx(0.0)  # one mean
    assert between_share(CLOUD * torch.tensor([1.0, 0, 0]), LABELS) == pytest.approx(1.0)


def test_unequal_classes_are_weighed_by_their_rows():
    x, labels = np.array([[0.0], [0.0], [0.0], [4.0]]), ["a", "a", "a", "b"]
    assert within_classes(x, labels).abs().sum() == 0
    rows = np.array([[0.0], [2.0], [1.0], [5.0]])  # mean 2, class means 1 and 5
    assert between_share(rows, labels) == pytest.approx((3 * 1 + 9) / (4 + 0 + 1 + 9))


def test_a_turn_does_not_lengthen_a_direction_that_is_on_the_border():
    rng, cross = np.random.default_rng(0), np.eye(10)[:2]  # two of ten: five means each
    turns = [np.linalg.qr(rng.normal(size=(10, 10)))[0] for _ in range(20)]
    assert {elongated_directions(np.concatenate([cross, -cross]) @ turn) for turn in turns} == {0}
