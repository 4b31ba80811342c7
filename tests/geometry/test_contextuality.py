"""SelfSim, IntraSim and MEV against their definitions, and their nulls by all permutations."""

import math
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import pytest

from shrink_utils.geometry import intra_sim, max_explainable_variance, self_sim
from tests.geometry.conftest import clouds, cosine, each

LENGTHS = np.logspace(-150, 150, 24)[:, None]
CLOUDS = clouds(24, 6)
CLOUDS["lengths from 1e-150 to 1e150"] = CLOUDS["random"] * LENGTHS
X = CLOUDS["random"]
WORDS = list("aaabbbbccccccddeaabbbfcc")  # a and b 5 and 7 times, c 8, d 2, e and f once
SENTENCES = [7, 3, 3, 3, 1, 1, 1, 1, 7, 7, 5, 5, 9, 5, 3, 1, 7, 4, 4, 4, 5, 7, 2, 2]  # 9: one word


def _self_sim(x, words, word, contexts=None):
    contexts = range(len(words)) if contexts is None else contexts
    pairs = [
        cosine(x[i], x[j])
        for i, j in combinations(range(len(x)), 2)
        if words[i] == words[j] == word and contexts[i] != contexts[j]
    ]
    return math.fsum(pairs) / len(pairs)


def _intra_sim(x, sentences, sentence):
    rows = [row for row, s in zip(x, sentences, strict=True) if s == sentence]
    mean = [math.fsum(column) / len(rows) for column in np.transpose(rows)]
    return math.fsum(cosine(np.array(mean), row) for row in rows) / len(rows)


def _mev(x, words, word):
    rows = np.array([row for row, w in zip(x, words, strict=True) if w == word])
    squared = np.linalg.svd(rows / np.abs(rows).max(), compute_uv=False) ** 2
    return squared[0] / math.fsum(squared)


class Measure(NamedTuple):
    """A function, its definition for one word or sentence, and labels of the 24 rows."""

    call: object
    of_unit: object
    labels: list
    units: list
    per_unit: str
    pairs: dict  # options with which two rows are enough


MEASURES = {
    "SelfSim": Measure(self_sim, _self_sim, WORDS, list("abc"), "per_word", {"min_count": 2}),
    "IntraSim": Measure(intra_sim, _intra_sim, SENTENCES, [1, 2, 3, 4, 5, 7], "per_sentence", {}),
    "MEV": Measure(
        max_explainable_variance, _mev, WORDS, list("abc"), "per_word", {"min_count": 2}
    ),
}
BESIDE_NULL = [MEASURES["IntraSim"], MEASURES["MEV"]]
each_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())


@each(CLOUDS)
@each_measure
def test_each_word_or_sentence_has_the_value_of_its_definition(measure, x):
    found = measure.call(x, measure.labels)
    values = [measure.of_unit(x, measure.labels, unit) for unit in measure.units]
    expected = dict(zip(measure.units, values, strict=True))
    assert getattr(found, measure.per_unit) == pytest.approx(expected, abs=1e-12)
    assert list(getattr(found, measure.per_unit)) == measure.units  # sorted
    assert found.value == pytest.approx(np.mean(values), abs=1e-12)
    stderr = np.std(values, ddof=1) / math.sqrt(len(values))
    assert found.stderr == pytest.approx(stderr, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("measure", "n"), [(BESIDE_NULL[0], 4000), (BESIDE_NULL[1], 2000)], ids=["IntraSim", "MEV"]
)
def test_the_null_is_the_mean_over_all_ways_to_deal_the_rows(measure, n):
    x, labels = np.random.default_rng(0).normal(size=(6, 3)) + 0.5, [0, 0, 0, 1, 1, 2]
    dealt = [
        [measure.of_unit(x[list(order)], labels, unit) for unit in (0, 1)]
        for order in permutations(range(6))
    ]
    found = measure.call(x, labels, n_permutations=n, **measure.pairs)
    error = np.std(np.mean(dealt, axis=1)) / math.sqrt(n)
    assert abs(found.null - np.mean(dealt)) < 4 * error
    null = getattr(found, "null_" + measure.per_unit)
    for unit in (0, 1):
        assert null[unit] == pytest.approx(np.mean(dealt, axis=0)[unit], abs=0.02)
    assert abs(null[0] - null[1]) > 0.05  # three rows against two
    assert found.excess == pytest.approx(found.value - found.null, abs=1e-15)


@pytest.mark.parametrize(
    ("measure", "shift", "factor"), [(intra_sim, 0.3, 50), (max_explainable_variance, 0.1, 20)]
)
def test_independent_words_have_no_excess_where_the_published_correction_sees_plenty(
    measure, shift, factor
):
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(3000, 50)) + shift, rng.integers(300, size=3000)
    found = measure(x, labels)
    assert abs(found.excess) < 4 * found.stderr
    assert found.corrected > factor * found.stderr


@each(CLOUDS)
def test_with_sentences_only_pairs_of_different_sentences_count(x):
    found = self_sim(x, WORDS, sentences=SENTENCES, min_count=3)
    assert list(found.per_word) == ["a", "b", "c"]
    for word, value in found.per_word.items():
        assert value == pytest.approx(_self_sim(x, WORDS, word, SENTENCES), abs=1e-12)


def test_a_word_repeated_in_few_sentences_is_not_frequent():
    """b stands 7 times, but in 4 sentences."""
    different = {w: len({s for v, s in zip(WORDS, SENTENCES, strict=True) if v == w}) for w in "ab"}
    assert different == {"a": 3, "b": 4}
    found = self_sim(X, WORDS, sentences=SENTENCES, min_count=5)
    assert list(found.per_word) == ["c"]
    assert found.counts == {"c": 8}  # occurrences, not sentences


@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1], [0, 1, 0, 1, 0]])
def test_the_null_is_the_mean_over_all_ways_to_deal_the_words(labels):
    x = np.random.default_rng(0).normal(size=(5, 3)) + 0.5
    found = self_sim(x, labels, min_count=2)
    null = np.mean([self_sim(x, list(w), min_count=2).value for w in permutations(labels)])
    assert (found.null, found.corrected) == pytest.approx((null, found.value - null), abs=1e-12)
