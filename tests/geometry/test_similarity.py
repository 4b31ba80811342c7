"""Similarities against their definitions: by column spaces, ranks, kernels, exact fractions."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from shrink_utils.geometry import (
    calibrated_maximum,
    cca,
    cka,
    cka_distance,
    mutual_knn,
    pwcca,
    rsa,
    similarity_grid,
    svcca,
)
from shrink_utils.geometry.similarity import MEASURES, SimilarityMeasure
from tests.geometry.conftest import cosine, unit_scaled

# The pairs of conftest include matrices with too few directions; the warnings have their own tests.
few_directions = pytest.mark.filterwarnings("ignore:. of shape .* linearly independent")
few_rows = pytest.mark.filterwarnings("ignore:x and y have .* by counting alone")


def _projection(x):
    return x @ np.linalg.pinv(x, rcond=1e-10)  # (n, n), whose trace is the rank


def _correlations(x, y):
    """cos of the angles between the two column spaces: singular values of P_x P_y."""
    x, y = unit_scaled(x), unit_scaled(y)
    p, q = _projection(x), _projection(y)
    return np.linalg.svd(p @ q)[1][: round(min(np.trace(p), np.trace(q)))]


def _pwcca(x, y):
    """Canonical variates of x are eigenvectors of P_x P_y P_x, ρ² their eigenvalues."""
    x, y = unit_scaled(x), unit_scaled(y)
    p, q = _projection(x), _projection(y)
    squared, variates = np.linalg.eigh((p @ q @ p + p.T @ q.T @ p.T) / 2)
    top = np.argsort(squared)[::-1][: round(min(np.trace(p), np.trace(q)))]
    weights = np.abs(variates[:, top].T @ x).sum(axis=1)
    return float(weights @ np.sqrt(squared[top]) / weights.sum())


def _leading(x, variance):
    x = unit_scaled(x)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    share = np.cumsum(s**2) / np.sum(s**2)
    k = next(i for i, value in enumerate(share, start=1) if value >= variance - 1e-15)
    return u[:, :k] * s[:k]


def _cosine_distances(x):
    x = np.asarray(x, dtype=np.float64)
    return pdist(x / np.abs(x).max(axis=1, keepdims=True), "cosine").round(12)


@few_directions
@few_rows
def test_cca_is_of_column_spaces_svcca_of_leading_directions_rsa_spearmans(pair):
    x, y = pair
    np.testing.assert_allclose(cca(x, y).numpy(), _correlations(x, y), rtol=0, atol=1e-9)
    for variance in (0.5, 0.9, 0.99):
        expected = _correlations(_leading(x, variance), _leading(y, variance)).mean()
        assert svcca(x, y, variance=variance) == pytest.approx(expected, abs=1e-9)
    expected = spearmanr(_cosine_distances(x), _cosine_distances(y)).statistic
    assert rsa(x, y) == pytest.approx(expected, abs=1e-9)


@few_directions
def test_pwcca_weighs_by_the_projections_of_the_columns_of_x_or_of_both_sides(tall_pair):
    x, y = tall_pair
    assert pwcca(x, y) == pytest.approx(_pwcca(x, y), abs=1e-9)
    assert pwcca(y, x) == pytest.approx(_pwcca(y, x), abs=1e-9)
    both = (_pwcca(x, y) + _pwcca(y, x)) / 2
    assert pwcca(x, y, symmetric=True) == pytest.approx(both, abs=1e-9)


def test_rsa_of_three_pairs_by_hand_and_of_ties_that_rounding_breaks():
    """Distances 1, 1 − √½, 1 − √½ against 2, 1, 1: the tied pairs share rank 1.5 in both."""
    x = [[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]
    y = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]
    assert rsa(x, y) == pytest.approx(1)
    assert rsa(x, [y[1], y[2], y[0]]) == pytest.approx(-0.5)
    # Rows along three directions: distances take few values, all of them many times.
    rng = np.random.default_rng(0)
    directions = np.array([[1.0, 2.0, 2.0], [0.3, -0.1, 0.7], [-1.0, 0.5, 0.1]])
    which = rng.integers(3, size=40)
    scaled = directions[which] * rng.uniform(0.1, 9, size=(40, 1))
    assert rsa(directions[which], scaled) == pytest.approx(1, abs=1e-12)


def _biased(x, y):
    """Kernel matrices, centred from both sides by H."""
    n = len(x)
    h = np.eye(n) - 1 / n
    k, m = (h @ unit_scaled(z) @ unit_scaled(z).T @ h for z in (x, y))
    return (k * m).sum() / math.sqrt((k * k).sum() * (m * m).sum())


def _hsic_1(k, m):
    """Song et al. 2012, equation 5, letter by letter; kernels as nested lists."""
    n = len(k)
    k, m = (
        [[row[j] if i != j else 0 for j in range(n)] for i, row in enumerate(z)] for z in (k, m)
    )
    k_sums, m_sums = [sum(row) for row in k], [sum(row) for row in m]
    trace = sum(k[i][j] * m[j][i] for i in range(n) for j in range(n))
    middle = sum(k_sums) * sum(m_sums) / ((n - 1) * (n - 2))
    last = 2 * sum(a * b for a, b in zip(k_sums, m_sums, strict=True)) / (n - 2)
    return (trace + middle - last) / (n * (n - 3))


def _debiased(x, y):
    k, m = (unit_scaled(z) @ unit_scaled(z).T for z in (x, y))
    return _hsic_1(k, m) / math.sqrt(_hsic_1(k, k) * _hsic_1(m, m))


def test_cka_is_the_cosine_between_centred_kernels_debiased_the_ratio_of_song_s_estimates(pair):
    assert cka(*pair) == pytest.approx(_biased(*pair), abs=1e-9)
    assert cka(*pair, debiased=True) == pytest.approx(_debiased(*pair), abs=1e-9)
    for debiased in (False, True):
        assert abs(cka(pair[0], pair[0], debiased=debiased) - 1) < 1e-13


@pytest.mark.parametrize("offset", [0, 10**3])
def test_debiased_cka_is_exact_whatever_the_shift(offset):
    """Rational arithmetic on the uncentred integers: no rounding at all until the last root."""
    rng = np.random.default_rng(5)
    x, y = rng.integers(-9, 9, size=(7, 3)), rng.integers(-9, 9, size=(7, 2))
    y[:, 0] += x[:, 0]
    x = x + offset
    kernels = [
        [[sum(Fraction(int(a)) * int(b) for a, b in zip(p, q, strict=True)) for q in z] for p in z]
        for z in (x, y)
    ]
    xy, xx, yy = (_hsic_1(kernels[i], kernels[j]) for i, j in ((0, 1), (0, 0), (1, 1)))
    assert cka(x, y, debiased=True) == pytest.approx(float(xy) / math.sqrt(xx * yy), abs=1e-12)


def test_equidistant_rows_have_no_debiased_cka():
    x = np.random.default_rng(0).normal(size=(6, 3))
    with pytest.warns(UserWarning, match="CKA is NaN: the unbiased HSIC of y with itself is 0"):
        assert math.isnan(cka(x, np.eye(6), debiased=True))
    assert 0 < cka(x, np.eye(6)) < 1


def test_the_distance_is_the_length_of_the_vector_of_angles():
    assert cka_distance([1.0, 0.5, 0.0]) == pytest.approx(math.hypot(math.pi / 3, math.pi / 2))
    assert cka_distance(torch.tensor([1.0, 1.0])) == 0
    read_only = np.array([0.5, 0.0])
    read_only.flags.writeable = False
    assert cka_distance(read_only) == pytest.approx(math.hypot(math.pi / 3, math.pi / 2))


def test_a_planted_measure_is_in_grids_and_calibration_and_keeps_its_sides(monkeypatch):
    """One entry, nothing else: the share of x's variance in its first column, whatever y is."""

    def prepare(x, name="x"):
        x = np.asarray(x, dtype=float)
        return x - x.mean(axis=0)

    def compare(x, y):
        return float(np.square(x[:, 0]).sum() / np.square(x).sum())

    planted = SimilarityMeasure(prepare, compare, ("shift", "scale"), symmetric=False)
    monkeypatch.setitem(MEASURES, "planted", planted)
    xs = list(np.random.default_rng(0).normal(size=(3, 20, 4)))
    expected = [planted(x, xs[0]) for x in xs]
    np.testing.assert_allclose(similarity_grid("planted", xs), np.transpose([expected] * 3))
    found = calibrated_maximum("planted", xs, xs, permutations=3)
    assert found.value == found.null == max(expected)  # shuffled rows have the same variance


@pytest.mark.parametrize("function", [cca, svcca, pwcca])
def test_dependent_and_constant_columns_add_nothing_but_a_warning(function, random_pair):
    x, y = random_pair
    with pytest.warns(UserWarning, match=r"y of shape \(30, 5\) has 4 linearly independent"):
        function(x, np.concatenate([y, y[:, :1]], axis=1))
    with pytest.warns(UserWarning, match=r"x of shape \(30, 6\) has 5 linearly independent"):
        found = function(np.concatenate([x, np.full((30, 1), 3.0)], axis=1), y)
    np.testing.assert_allclose(found, function(x, y), rtol=0, atol=1e-12)


@pytest.mark.parametrize("function", [cca, pwcca])
@pytest.mark.parametrize(("d_x", "d_y", "forced"), [(6, 5, 2), (5, 5, 1)])
def test_correlations_that_are_one_by_counting_are_announced(function, d_x, d_y, forced):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(10, d_x)), rng.normal(size=(10, d_y))
    with pytest.warns(UserWarning, match=rf"{d_x} and {d_y} .* 10 rows: {forced} canonical"):
        function(x, y)


def _nearest(x, k):
    """Sets of the k nearest rows of every row, by definition."""
    near = []
    for i, row in enumerate(x):
        others = sorted(set(range(len(x))) - {i}, key=lambda j: -cosine(row, x[j]))
        near.append(set(others[:k]))
    return near


def test_mutual_knn_counts_shared_neighbours():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(25, 4))
    y = x[:, :3] + 0.5 * rng.normal(size=(25, 3))
    shared = [len(a & b) / 5 for a, b in zip(_nearest(x, 5), _nearest(y, 5), strict=True)]
    assert mutual_knn(x, y, k=5) == pytest.approx(np.mean(shared))


def _unrelated(seed, n=60, d=20):
    return list(np.random.default_rng(seed).normal(size=(2, 4, n, d)))


@pytest.mark.parametrize("measure", ["mutual_knn", "cka"])
def test_a_calibrated_maximum_is_1_for_equal_layers_and_0_for_unrelated_models(measure):
    xs, ys = _unrelated(0)
    same = calibrated_maximum(measure, xs, [ys[0], xs[3]], permutations=19)
    assert (same.value, same.calibrated) == pytest.approx((1, 1))
    assert (same.layers, same.p) == ((3, 1), 1 / 20)
    found = [calibrated_maximum(measure, *_unrelated(s), permutations=19) for s in range(8)]
    single = [similarity_grid(measure, *_unrelated(s)).mean() for s in range(8)]
    assert np.mean([f.calibrated for f in found]) == pytest.approx(0, abs=0.02)
    # The search alone lifts the raw value above that of any one pair of layers.
    assert np.mean([f.value for f in found]) > np.mean(single) + 0.02
    assert np.mean([f.p for f in found]) == pytest.approx(0.5, abs=0.3)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="of 12 rows, take more"):
        calibrated_maximum("cca", *_unrelated(0, n=12, d=11), permutations=2)


def _exact_distances(x):
    """1 − cos to 60 digits, (n, n)."""
    with localcontext(prec=60):
        rows = [[Decimal(float(value)) for value in row] for row in x]
        norms = [sum(a * a for a in row).sqrt() for row in rows]
        units = [[a / norm for a in row] for row, norm in zip(rows, norms, strict=True)]
        dots = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in units] for x in units]
        return np.array([[float(1 - dot) for dot in row] for row in dots])


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
def test_cosines_near_one_keep_their_order(offset):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(30, 6)) + offset, rng.normal(size=(30, 6))
    near, own = _exact_distances(x), _exact_distances(y)
    pairs = np.triu_indices(30, 1)
    assert rsa(x, y) == pytest.approx(spearmanr(near[pairs], own[pairs])[0], abs=1e-14)
    both = []
    for distances in (near, own):
        np.fill_diagonal(distances, np.inf)
        both.append(distances.argsort(axis=1)[:, :10])
    shared = [len(set(a) & set(b)) / 10 for a, b in zip(*both, strict=True)]
    assert mutual_knn(x, y) == pytest.approx(np.mean(shared), abs=1e-14)


def test_copies_of_other_lengths_tie_where_cosines_are_near_one():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(20, 6)) + 1e6, rng.normal(size=(20, 6))
    longer = x * rng.uniform(0.1, 10, size=(20, 1))
    both = np.concatenate([x, longer])
    twice = np.concatenate([x, x])
    other = rng.normal(size=(40, 6))
    assert rsa(both, other) == pytest.approx(rsa(twice, other), abs=1e-4)
    assert rsa(x, y) == pytest.approx(rsa(longer, y), abs=1e-4)


def test_tied_neighbours_count_in_parts_so_that_chance_is_exact():
    few = np.eye(3)[[0, 0, 1, 1, 2, 2]], np.eye(3)[[0, 1, 2, 0, 1, 2]]
    of_orders = [mutual_knn(few[0], few[1][list(o)], k=2) for o in permutations(range(6))]
    assert np.mean(of_orders) == pytest.approx(2 / 5, abs=1e-12)  # k / (n − 1)


@pytest.mark.parametrize("name", ["rsa", "mutual_knn"])
def test_what_ranks_heeds_no_order_of_tied_rows(name):
    rng = np.random.default_rng(1)
    x, y = (rng.integers(2, size=(60, 4)) * 2.0 - 1 for _ in range(2))  # codes of four bits
    order = rng.permutation(60)
    again = MEASURES[name](x[order], y[order])
    assert again == pytest.approx(MEASURES[name](x, y), abs=1e-12)


def test_no_p_value_stands_beside_a_similarity_that_is_undefined():
    x = np.random.default_rng(0).normal(size=(12, 3))
    with pytest.warns(UserWarning, match="NaN"), pytest.raises(ValueError, match=r"xs\[1\]"):
        calibrated_maximum("cka_debiased", [x, np.eye(12)], [x], permutations=9)


def test_svcca_keeps_directions_whose_share_is_met_but_for_rounding():
    rng = np.random.default_rng(0)
    whole, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 1))
    basis = np.linalg.qr(whole - whole.mean(axis=0))[0]
    cloud = basis * np.sqrt([8, 1, 1])  # shares .8, .1, .1
    turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(20)]
    found = [svcca(cloud @ turn, y, variance=0.8) for turn in turns]
    np.testing.assert_allclose(found, cca(cloud[:, :1], y)[0], atol=1e-9)
