"""Every metric beside the function that sees all rows at once, and clouds that break plain sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from shrink_utils.geometry import (
    anisotropy,
    avg_sim,
    cka,
    effective_rank,
    iso_score,
    rogue_dimensions,
    self_sim,
    similarity_grid,
)
from shrink_utils.geometry.streaming import (
    CKA,
    AvgSim,
    EffectiveRank,
    IsoScore,
    LayerCKA,
    RogueDimensions,
    SelfSim,
    Spectrum,
)

N, D = 60, 6
WORDS = np.random.default_rng(1).integers(-1, 6, size=N)  # −1: outside of the vocabulary
SENTENCES = np.repeat(np.arange(20), 3)


class Case(NamedTuple):
    """A metric, its batch out of row numbers, and what all rows together must give."""

    make: Callable
    batch: Callable  # (x, rows) -> arguments of update
    expected: Callable  # x -> value
    whole_sentences: bool = False  # a split must not cut through them


def other_side(x):
    """A second representation of the same rows, of another width and with noise of its own."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(len(x), 4)) * np.abs(x - x.mean(0)).max()
    return x @ rng.normal(size=(x.shape[1], 4)) + noise


def _layers(x):
    return [x, other_side(x), x[:, :3] * 1e-3]


def _self_sim_by_id(x, *, sentences):
    known = WORDS >= 0
    contexts = SENTENCES[known] if sentences else None
    per_word = self_sim(x[known], WORDS[known], sentences=contexts, min_count=5).per_word
    return [per_word.get(word, np.nan) for word in range(6)]


def _rows(x, rows):
    return (x[rows],)


def _words(x, rows):
    return x[rows], WORDS[rows]


def _words_in_sentences(x, rows):
    return x[rows], WORDS[rows], SENTENCES[rows]


def _pair(x, rows):
    return x[rows], other_side(x)[rows]


CASES = {
    "AvgSim": Case(partial(AvgSim, D), _rows, lambda x: avg_sim(x).value),
    "AvgSim of groups": Case(
        partial(AvgSim, D),
        lambda x, rows: (x[rows], SENTENCES[rows]),
        lambda x: avg_sim(x, groups=SENTENCES).value,
        whole_sentences=True,
    ),
    "RogueDimensions": Case(partial(RogueDimensions, D), _rows, rogue_dimensions),
    "SelfSim": Case(partial(SelfSim, 6, D), _words, partial(_self_sim_by_id, sentences=False)),
    "SelfSim of sentences": Case(
        partial(SelfSim, 6, D),
        _words_in_sentences,
        partial(_self_sim_by_id, sentences=True),
        whole_sentences=True,
    ),
    "Spectrum raw": Case(partial(Spectrum, D, k=D), _rows, partial(anisotropy, k=D)),
    "Spectrum centred": Case(
        partial(Spectrum, D, center=True), _rows, partial(anisotropy, center=True)
    ),
    "IsoScore": Case(partial(IsoScore, D), _rows, iso_score),
    "IsoScore corrected": Case(
        partial(IsoScore, D, bias_corrected=True), _rows, partial(iso_score, bias_corrected=True)
    ),
    "EffectiveRank": Case(partial(EffectiveRank, D), _rows, effective_rank),
    "EffectiveRank raw": Case(
        partial(EffectiveRank, D, center=False), _rows, partial(effective_rank, center=False)
    ),
    "CKA": Case(partial(CKA, D, 4), _pair, lambda x: cka(x, other_side(x))),
    "CKA debiased": Case(
        partial(CKA, D, 4, debiased=True),
        _pair,
        lambda x: cka(x, other_side(x), debiased=True),
    ),
    "LayerCKA": Case(
        partial(LayerCKA, [D, 4, 3]),
        lambda x, rows: ([layer[rows] for layer in _layers(x)],),
        lambda x: similarity_grid("cka", _layers(x)),
    ),
    "LayerCKA debiased": Case(
        partial(LayerCKA, [D, 4, 3], debiased=True),
        lambda x, rows: ([layer[rows] for layer in _layers(x)],),
        lambda x: similarity_grid("cka_debiased", _layers(x)),
    ),
}


def _clouds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, D)) * [3, 2, 1, 1, 0.5, 0.1] + 0.3
    return {
        "random": x,
        "rank-deficient": x @ rng.normal(size=(D, 2)) @ rng.normal(size=(2, D)),
        "offset": x + 1e3,
        "small": x * 1e-8,
        "small, offset": x * 1e-8 + 1e-5,
        "tiny": x * 1e-150,
        "huge": x * 1e200,
        "growing": x * np.repeat([1e-150, 1e-20, 1], N // 3)[:, None],
        "float32": x.astype(np.float32),
    }


CLOUDS = _clouds()


def split(case, rng, n_pieces):
    """Row numbers in random order and in random pieces, sentences whole where they must be."""
    if case.whole_sentences:
        units = [np.flatnonzero(SENTENCES == s) for s in rng.permutation(20)]
    else:
        units = [np.array([row]) for row in rng.permutation(N)]
    cuts = np.sort(rng.choice(np.arange(1, len(units)), size=n_pieces - 1, replace=False))
    bounds = [0, *cuts, len(units)]
    return [np.concatenate(units[a:b]) for a, b in pairwise(bounds)]


def assert_same(value, expected):
    """1e-10 relative; next to zero what rounding leaves of sums of cosines and of shares."""
    np.testing.assert_allclose(
        np.asarray(value, float),
        np.asarray(expected, float),
        rtol=1e-10,
        atol=1e-13,
        equal_nan=True,
    )


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request):
    return request.param


@pytest.fixture(params=CLOUDS.values(), ids=CLOUDS.keys())
def cloud(request):
    return request.param
