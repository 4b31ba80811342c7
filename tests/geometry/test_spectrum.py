"""Quantities of the singular values, against an SVD, brute-force U-statistics and known clouds."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch

from shrink_utils.geometry import anisotropy, effective_rank, iso_score, participation_ratio


def _clouds():
    rng = np.random.default_rng(0)
    return {
        "random": rng.normal(size=(20, 6)),
        "batch of [CLS] vectors": rng.normal(size=(64, 384)) * rng.uniform(0.1, 9, size=384) + 0.3,
        "rank-deficient": rng.normal(size=(20, 2)) @ rng.normal(size=(2, 6)),
        "offset": rng.normal(size=(20, 6)) + 1e3,
        "wide": rng.normal(size=(5, 40)),
        "two rows": rng.normal(size=(2, 2)),
        "tiny numbers": rng.normal(size=(6, 3)) * 1e-200,
        "huge numbers": rng.normal(size=(6, 3)) * 1e200,
        "duplicates": np.repeat(rng.normal(size=(3, 4)), 4, axis=0),
    }


CLOUDS = _clouds()
each_cloud = pytest.mark.parametrize("x", CLOUDS.values(), ids=CLOUDS.keys())


def _singular_values(x, center):
    x = x / np.abs(x).max()
    return np.linalg.svd(x - x.mean(0) if center else x, compute_uv=False)


@each_cloud
@pytest.mark.parametrize("center", [False, True])
def test_anisotropy_is_the_share_of_squared_singular_values(x, center):
    k = min(x.shape)
    squared = _singular_values(x, center) ** 2
    scores = anisotropy(x, k=k, center=center)
    np.testing.assert_allclose(scores, squared / squared.sum(), atol=1e-9)
    assert scores.dtype == torch.float64
    assert float(scores.sum()) == pytest.approx(1)


@each_cloud
def test_participation_ratio_is_that_of_the_covariances_eigenvalues(x):
    eigenvalues = np.linalg.eigvalsh(np.cov(x / np.abs(x).max(), rowvar=False))
    expected = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()
    assert participation_ratio(x) == pytest.approx(expected, rel=1e-6)


def _iso_score_by_its_authors_seven_steps(x):
    d = x.shape[1]
    eigenvalues = np.linalg.eigvalsh(np.cov(x, rowvar=False))  # 2, 3: PCA and its variances
    normalized = math.sqrt(d) * eigenvalues / np.linalg.norm(eigenvalues)  # 4
    defect = np.linalg.norm(normalized - 1) / math.sqrt(2 * (d - math.sqrt(d)))  # 5: in [0, 1]
    used = (d - defect**2 * (d - math.sqrt(d))) ** 2 / d**2  # 6: share of dimensions
    return (d * used - 1) / (d - 1)  # 7: to [0, 1]


@pytest.mark.parametrize("name", ["random", "rank-deficient", "wide", "two rows", "duplicates"])
def test_iso_score_is_its_authors_algorithm(name):
    x = CLOUDS[name]
    assert iso_score(x) == pytest.approx(_iso_score_by_its_authors_seven_steps(x), abs=1e-9)


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


@each_cloud
@pytest.mark.parametrize("center", [False, True])
def test_effective_rank_is_the_exponential_of_the_entropy(x, center):
    sigma = _singular_values(x, center)
    p = [s / sigma.sum() for s in sigma if s > 0]
    expected = math.exp(-sum(q * math.log(q) for q in p))
    assert effective_rank(x, center=center) == pytest.approx(expected, rel=1e-9)


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
