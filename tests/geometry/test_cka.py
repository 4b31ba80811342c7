"""CKA against n × n kernel matrices, and HSIC₁ against exact rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from shrink_utils.geometry import cka, cka_distance
from tests.geometry.conftest import unit_scaled


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
