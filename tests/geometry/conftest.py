"""Clouds and pairs of clouds that every measure meets, and definitions that several tests use."""

import math
from functools import partial

import numpy as np
import pytest

from shrink_utils import geometry
from shrink_utils.geometry.similarity import MEASURES as OF_TWO
from shrink_utils.geometry.similarity import PLACE

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


# Rows in four classes, and a second space that is much like the first.
ROWS, OTHER = np.random.default_rng(0).normal(size=(2, 40, 5)) * [[[9, 3, 1, 1, 1]], [[1] * 5]]
OTHER += ROWS / [9, 3, 1, 1, 1]
LABELS = np.repeat(np.arange(4), 10)


# Every measure of a cloud, with labels that stay, and what its docstring says that it does not see.
COSINES = ("rotation", "scale", "row lengths")
LINEAR = ("rotation", "scale")
MEASURES = {
    "avg_sim": (lambda x: geometry.avg_sim(x).value, COSINES),
    "rogue_dimensions": (geometry.rogue_dimensions, ("scale", "row lengths")),
    "pair_distances": (geometry.pair_distances, COSINES),
    "self_sim": (lambda x: geometry.self_sim(x, LABELS).value, COSINES),
    "intra_sim": (lambda x: geometry.intra_sim(x, LABELS).value, LINEAR),
    "max_explainable_variance": (
        lambda x: geometry.max_explainable_variance(x, LABELS).value,
        LINEAR,
    ),
    "anisotropy": (geometry.anisotropy, LINEAR),
    "anisotropy, center": (partial(geometry.anisotropy, center=True), PLACE),
    "elongated_directions": (partial(geometry.elongated_directions, ratio=1.0), PLACE),
    "effective_rank": (geometry.effective_rank, PLACE),
    "effective_rank, raw": (partial(geometry.effective_rank, center=False), LINEAR),
    "participation_ratio": (geometry.participation_ratio, PLACE),
    "participation_ratio, corrected": (
        partial(geometry.participation_ratio, bias_corrected=True),
        PLACE,
    ),
    "iso_score": (geometry.iso_score, PLACE),
    "iso_score, corrected": (partial(geometry.iso_score, bias_corrected=True), PLACE),
    "partition_isotropy": (geometry.partition_isotropy, ("rotation",)),
    "mean_squared_distance": (geometry.mean_squared_distance, ("shift", "rotation")),
    "intrinsic_dimension": (geometry.intrinsic_dimension, PLACE),
    # It draws from rows in lexicographic order.
    "intrinsic_dimension, ph": (
        partial(geometry.intrinsic_dimension, method="ph"),
        ("shift", "scale"),
    ),
    "between_share": (lambda x: geometry.between_share(x, LABELS), PLACE),
}
# And those of two clouds, of which the second stays.
MEASURES |= {
    name: (lambda x, measure=measure: measure(x, OTHER), measure.ignores)
    for name, measure in OF_TWO.items()
}


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
