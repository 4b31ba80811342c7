"""Clouds that break careless sums, with a word and a sentence for each of their rows."""

from __future__ import annotations

import numpy as np
import pytest

RNG = np.random.default_rng(0)
CLOUDS = {
    "random": RNG.normal(size=(24, 6)),
    "rank-deficient": RNG.normal(size=(24, 2)) @ RNG.normal(size=(2, 6)),
    "offset": RNG.normal(size=(24, 6)) + 1e3,
    "wide": RNG.normal(size=(24, 40)),
    "one column": np.abs(RNG.normal(size=(24, 1))),
    "identical rows": np.tile(RNG.normal(size=6), (24, 1)),
    "tiny": RNG.normal(size=(24, 6)) * 1e-150,
    "small": RNG.normal(size=(24, 6)) * 1e-8,
    "huge": RNG.normal(size=(24, 6)) * 1e200,
    "lengths from 1e-150 to 1e150": RNG.normal(size=(24, 6)) * np.logspace(-150, 150, 24)[:, None],
}
WORDS = list("aaabbbbccccccddeaabbbfcc")  # a and b 5 and 7 times, c 8, d 2, e and f once
SENTENCES = [7, 3, 3, 3, 1, 1, 1, 1, 7, 7, 5, 5, 9, 5, 3, 1, 7, 4, 4, 4, 5, 7, 2, 2]  # 9: one word


@pytest.fixture(params=CLOUDS.values(), ids=CLOUDS.keys())
def cloud(request):
    return request.param


@pytest.fixture
def random_cloud():
    return CLOUDS["random"]


@pytest.fixture
def words():
    return list(WORDS)


@pytest.fixture
def sentences():
    return list(SENTENCES)
