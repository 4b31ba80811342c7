"""SelfSim: what it does beside merging."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.geometry.streaming import Occurrences, SelfSim


def test_words_outside_of_the_vocabulary_change_nothing():
    x, words = torch.randn(12, 4), np.array([0, 1] * 6)
    small, large = SelfSim(2, 4, min_count=2), SelfSim(2, 4, min_count=2)
    small.update(x, words)
    large.update(torch.cat([x, torch.randn(3, 4)]), [*words, -1, -1, -1])
    assert torch.equal(small.compute(), large.compute())


def test_a_batch_without_a_known_word_is_taken():
    metric = SelfSim(2, 4)
    metric.update(torch.randn(3, 4), [-1, -1, -1])
    assert metric.counts[:2].sum() == 0


def test_a_word_in_fewer_contexts_has_no_value():
    metric = SelfSim(3, 2, min_count=3)
    metric.update(np.ones((6, 2)), [0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 0, 2])
    np.testing.assert_allclose(metric.compute(), [1, np.nan, np.nan])


def test_pairs_within_a_sentence_do_not_count():
    x = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    metric = SelfSim(1, 2, min_count=2)
    metric.update(x, [0, 0, 0], [5, 5, 8])
    assert metric.compute() == 0


def test_no_frequent_word_is_refused():
    metric = SelfSim(3, 2)
    metric.update(np.ones((4, 2)), [0, 0, 0, 1])
    with pytest.raises(ValueError, match=r"none of 3 stands in 5 contexts or more, 0 in 3; lower"):
        metric.compute()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ([0, 1], r"words needs one label a row: 3 rows, got shape \(2,\)"),
        ([[0], [1], [2]], r"words must be whole numbers, one a row, .* shape \(3, 1\)"),
        ([0.0, 1.0, 2.0], "words must be whole numbers, one a row, got dtype torch.float32"),
        ([0, 1, 3], "words must be −1 … 2, got 0 … 3"),
        ([0, 1, -2], "words must be −1 … 2, got -2 … 1"),
    ],
)
def test_numbers_that_name_no_word_are_refused(words, match):
    with pytest.raises(ValueError, match=match):
        SelfSim(3, 2).update(np.ones((3, 2)), words)


def test_sentences_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"sentences needs one label a row: 3 rows, .* \(2,\)"):
        SelfSim(3, 2).update(np.ones((3, 2)), [0, 1, 2], ["a", "b"])


def test_occurrences_read_once_do_for_several_layers():
    x, words, sentences = torch.randn(2, 30, 4), np.arange(30) % 3, np.arange(30) // 5
    found = Occurrences(words, sentences)
    for layer in x:
        once, twice = SelfSim(3, 4), SelfSim(3, 4)
        once.update(layer, words, sentences)
        twice.update(layer, found)
        assert torch.equal(once.compute(), twice.compute())


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_words": 0}, "n_words must be at least 1, got 0"),
        ({"n_words": 3, "min_count": 1}, "min_count must be at least 2, .*; got 1"),
    ],
)
def test_a_vocabulary_that_has_no_pairs_is_refused(options, match):
    with pytest.raises(ValueError, match=match):
        SelfSim(n_features=2, **options)
