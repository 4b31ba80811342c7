"""Clouds and pairs of clouds that every measure meets, and definitions that several tests use."""

import math

import numpy as np
import pytest

from shrink_utils import geometry

ROW_FUNCTIONS = [
    geometry.avg_sim,
    geometry.anisotropy,
    geometry.partition_isotropy,
    geometry.participation_ratio,
    geometry.iso_score,
    geometry.effective_rank,
    geometry.rogue_dimensions,
    geometry.intrinsic_dimension,
    geometry.mean_squared_distance,
    geometry.pair_distances,
]


def cosine(a, b):
    """Of two vectors whose squares may leave float64."""
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    return a @ b / math.sqrt(a @ a) / math.sqrt(b @ b)


def unit_scaled(x):
    """Centred rows whose largest entry is one."""
    x = np.asarray(x, dtype=np.float64)
    x = x - x.mean(axis=0)
    return x / np.abs(x).max()


def eigenvalues(x):
    """Of the covariance, in the unit of its largest entry."""
    return np.linalg.eigvalsh(np.atleast_2d(np.cov(x / np.abs(x).max(), rowvar=False)))


def rotation_of(d, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def clouds(n, d, *, columns=1.0, without=()):
    """Clouds of n rows and, as a rule, d columns, whose lengths are as `columns`."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) * columns
    found = {
        "random": x,
        "rank-deficient": x[:, :3] @ rng.normal(size=(3, d)),
        "offset": x + 1e3,
        "wide": rng.normal(size=(n, 2 * n)),
        "one column": x[:, :1],
        "identical rows": np.tile(x[0], (n, 1)),
        "duplicates": np.repeat(x, 3, axis=0)[:n],
        "tiny": x * 1e-150,
        "small": x * 1e-8,
        "huge": x * 1e200,
    }
    return {name: cloud for name, cloud in found.items() if name not in without}


def each(found):
    """Parametrize a test by clouds."""
    return pytest.mark.parametrize("x", found.values(), ids=found.keys())


def _pairs():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 5))
    y = x[:, :3] @ rng.normal(size=(3, 4)) + rng.normal(size=(30, 4))
    low = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 5))
    flat = x.copy()
    flat[:, 2] = 7.0
    return {
        "random": (x, y),
        "offset": (x + 1e3, y - 1e3),
        "tiny": (x * 1e-150, y * 1e-8),
        "huge": (x * 1e150, y * 1e8),
        "rank-deficient": (low, y),
        "constant column": (flat, y),
        "wide": (rng.normal(size=(8, 20)), rng.normal(size=(8, 3))),
        "one column": (x[:, :1], y[:, :1]),
        "uneven columns": (x * np.logspace(0, 4, 5), y),
        "float32": (x.astype(np.float32), y.astype(np.float32)),
    }


PAIRS = _pairs()


@pytest.fixture(params=PAIRS.values(), ids=PAIRS.keys())
def pair(request):
    return request.param


@pytest.fixture(params=[name for name in PAIRS if name != "wide"])
def tall_pair(request):
    """Without the pair whose ranks exceed its rows, where correlations of 1 coincide."""
    return PAIRS[request.param]


@pytest.fixture
def random_pair():
    return PAIRS["random"]
