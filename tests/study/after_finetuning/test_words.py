"""Word frequency and word type, read off vectors in which they were put or were not."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import torch

from shrink_utils.models import WordBatch
from shrink_utils.study.after_finetuning.words import (
    frequency_target,
    type_target,
)

SENTENCES = [["the", "cat", "sat"], ["the", "dog", "sat"], ["a", "cat"], ["the", "end"]] * 10
COUNTS = Counter({"the": 900, "cat": 20, "sat": 7, "dog": 20, "a": 400, "end": 1})


def _words(sentences=SENTENCES):
    word = [w for sentence in sentences for w in sentence]
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return WordBatch(
        vectors=torch.randn(1, len(word), 4),
        sentence=torch.arange(len(sentences)).repeat_interleave(lengths),
        position=torch.zeros(len(word), dtype=torch.long),
        word=word,
        n_texts=len(sentences),
    )


def test_frequency_is_the_logarithm_of_the_count_at_a_words_first_occurrence():
    target = frequency_target(_words(), COUNTS)
    assert target.rows.tolist() == [0, 1, 2, 4, 6, 9]  # the cat sat dog a end
    assert target.values.tolist() == [math.log(n) for n in (900, 20, 7, 20, 400, 1)]
    assert len(set(target.groups)) == 6  # no word is in both folds


def test_what_is_in_the_vectors_is_read_off():
    words, rng = _words(), np.random.default_rng(0)
    names = {word: vector for word, vector in zip(COUNTS, np.eye(6), strict=True)}
    x = torch.from_numpy(np.array([names[w] for w in words.word]) + rng.normal(size=(100, 6)) / 9)
    assert type_target(words).probed(x)["value"] == 1.0


def test_a_frequency_in_the_vectors_is_read_off_for_words_held_out():
    sentences = [[f"w{i}" for i in range(s, s + 5)] for s in range(0, 200, 5)]
    counts = Counter({f"w{i}": i + 1 for i in range(200)})
    words = _words(sentences)
    x = torch.randn(200, 3, dtype=torch.float64)
    x[:, 1] = torch.tensor([math.log(counts[w]) for w in words.word])
    target = frequency_target(words, counts)
    assert target.probed(x)["value"] > 0.99
    assert target.shuffled().probed(x)["value"] < 0.1
