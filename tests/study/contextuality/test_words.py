"""A word's contexts: which are read, what is shown of them, and what cannot be shown."""

from __future__ import annotations

import pytest
import torch

from shrink_utils.models import load_encoder, word_states
from shrink_utils.study.contextuality.words import word_contexts

TEXTS = [
    "The bank of the river was steep, and we rested there a while.",
    "A bank lends money.",
    "Nobody was there.",
    "The bank closed.",
    "The bank closed.",
    "He went to the bank, and the bank was shut.",
]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-random")


def test_each_text_gives_one_context_and_a_repeated_text_counts_once(encoder):
    found = word_contexts(encoder, TEXTS, "bank")
    assert found.snippets == [
        "the BANK of the river …",
        "a BANK lends money",
        "the BANK closed",
        "… went to the BANK and the bank …",
    ]
    assert found.n_texts == 4


def test_similarity_is_the_cosine_of_the_words_first_vectors(encoder):
    found = word_contexts(encoder, TEXTS, "bank")
    twice = "He went to the bank, and the bank was"
    states = word_states(encoder, [TEXTS[1], twice])
    first = [1, len("a bank lends money".split()) + 4]
    assert [states.word[row] for row in first] == ["bank", "bank"]
    a, b = states.vectors[2, first].double()
    shorter = word_contexts(encoder, [TEXTS[1], twice, TEXTS[3]], "bank")
    expected = torch.nn.functional.cosine_similarity(a, b, dim=0)
    assert float(shorter.similarity[2, 0, 1]) == pytest.approx(float(expected), abs=1e-5)
    assert found.similarity.shape == (3, 4, 4)
    torch.testing.assert_close(found.similarity, found.similarity.mT)
