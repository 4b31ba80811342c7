"""Self-similarity against its definition, pair by pair, and its null by all permutations."""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.geometry import avg_sim, self_sim


def _cosine(a, b):
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    return a @ b / math.sqrt(a @ a) / math.sqrt(b @ b)


def _by_definition(x, words, contexts, word):
    pairs = [
        _cosine(x[i], x[j])
        for i, j in combinations(range(len(x)), 2)
        if words[i] == words[j] == word and contexts[i] != contexts[j]
    ]
    return math.fsum(pairs) / len(pairs)


def test_each_word_has_the_mean_cosine_of_its_pairs(cloud, words):
    found = self_sim(cloud, words)
    assert list(found.per_word) == ["a", "b", "c"]
    for word, value in found.per_word.items():
        expected = _by_definition(cloud, words, range(len(words)), word)
        assert value == pytest.approx(expected, abs=1e-12)


def test_with_sentences_only_pairs_of_different_sentences_count(cloud, words, sentences):
    found = self_sim(cloud, words, sentences=sentences, min_count=3)
    assert list(found.per_word) == ["a", "b", "c"]
    for word, value in found.per_word.items():
        expected = _by_definition(cloud, words, sentences, word)
        assert value == pytest.approx(expected, abs=1e-12)


def test_a_word_repeated_in_few_sentences_is_not_frequent(random_cloud, words, sentences):
    """b stands 7 times, but in 4 sentences."""
    found = self_sim(random_cloud, words, sentences=sentences, min_count=5)
    different = {w: len({s for v, s in zip(words, sentences, strict=True) if v == w}) for w in "ab"}
    assert different == {"a": 3, "b": 4}
    assert list(found.per_word) == ["c"]
    assert found.counts == {"c": 8}  # occurrences, not sentences


def test_the_value_is_the_mean_over_words_whatever_their_frequency(random_cloud, words):
    found = self_sim(random_cloud, words)
    values = list(found.per_word.values())
    assert found.counts == {"a": 5, "b": 7, "c": 8}
    assert found.value == pytest.approx(sum(values) / 3, abs=1e-15)
    assert found.stderr == pytest.approx(np.std(values, ddof=1) / math.sqrt(3), rel=1e-12)


def test_one_word_has_no_standard_error(random_cloud, words):
    assert math.isnan(self_sim(random_cloud, words, min_count=8).stderr)


@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1], [0, 1, 0, 1, 0]])
def test_the_null_is_the_mean_over_all_ways_to_deal_the_words(labels):
    x = np.random.default_rng(0).normal(size=(5, 3)) + 0.5
    found = self_sim(x, labels, min_count=2)
    dealt = [self_sim(x, list(w), min_count=2).value for w in permutations(labels)]
    assert found.null == pytest.approx(np.mean(dealt), abs=1e-12)
    assert found.corrected == pytest.approx(found.value - np.mean(dealt), abs=1e-12)


def test_with_sentences_the_null_is_avg_sim_between_sentences(random_cloud, words, sentences):
    found = self_sim(random_cloud, words, sentences=sentences, min_count=3)
    assert found.null == avg_sim(random_cloud, groups=sentences).value
    assert found.null != avg_sim(random_cloud).value


def test_a_vector_that_ignores_its_context_has_self_similarity_one():
    x = np.repeat(np.random.default_rng(0).normal(size=(4, 9)), 6, axis=0)
    assert self_sim(x, np.repeat(np.arange(4), 6)).value == pytest.approx(1, abs=1e-12)


def test_a_vector_that_ignores_its_word_has_corrected_self_similarity_zero():
    rng = np.random.default_rng(0)
    found = self_sim(rng.normal(size=(4000, 20)) + 0.3, rng.integers(300, size=4000))
    assert abs(found.corrected) < 4 * found.stderr
    assert found.null > 0.05


@given(st.integers(0, 10**6), st.sampled_from([1e-100, 3.0, 1e100]))
def test_rotation_scale_and_the_order_of_rows_change_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    x, labels = rng.normal(size=(30, 4)), rng.integers(4, size=30)
    rotation, order = np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.permutation(30)
    turned = self_sim(scale * (x @ rotation)[order], labels[order], min_count=2)
    assert turned.per_word == pytest.approx(self_sim(x, labels, min_count=2).per_word, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_input_is_computed_in_float64(random_cloud, words, dtype):
    x = (torch.from_numpy(random_cloud) * 100).to(dtype)
    assert self_sim(x, words) == self_sim(x.double(), words)


def test_labels_of_every_kind_name_the_same_words(random_cloud, words):
    expected = self_sim(random_cloud, words)
    assert self_sim(random_cloud, np.array(words)) == expected
    assert self_sim(random_cloud, pd.Series(words)) == expected
    numbers = torch.tensor([ord(word) for word in words])
    found = self_sim(random_cloud, numbers)
    assert {chr(word): value for word, value in found.per_word.items()} == expected.per_word


def test_no_frequent_word_is_refused_with_the_most_frequent_one(random_cloud, words, sentences):
    with pytest.raises(ValueError, match="none of 6 stands in 9 rows or more, 'c' in 8; lower"):
        self_sim(random_cloud, words, min_count=9)
    with pytest.raises(ValueError, match="in 8 different sentences or more, 'c' in 5; lower"):
        self_sim(random_cloud, words, sentences=sentences, min_count=8)


@pytest.mark.parametrize("min_count", [1, 0, -3])
def test_a_single_context_is_no_pair(random_cloud, words, min_count):
    with pytest.raises(ValueError, match=rf"min_count must be at least 2.* got {min_count}"):
        self_sim(random_cloud, words, min_count=min_count)


def test_zero_rows_are_refused(random_cloud, words):
    x = random_cloud.copy()
    x[3] = 0
    with pytest.raises(ValueError, match="1 zero row"):
        self_sim(x, words)


def test_labels_that_do_not_fit_are_refused(random_cloud, words):
    with pytest.raises(ValueError, match=r"words needs one label a row: 24 rows, got shape \(23,"):
        self_sim(random_cloud, words[1:])
    with pytest.raises(ValueError, match="sentences needs one label a row"):
        self_sim(random_cloud, words, sentences=[1, 2])
    with pytest.raises(ValueError, match="words mixes labels that cannot be ordered"):
        self_sim(random_cloud, pd.Series(["a", 1] * 12, dtype=object))
    with pytest.raises(ValueError, match=r"sentences of shape .* NaN"):
        self_sim(random_cloud, words, sentences=[math.nan] * 24)
