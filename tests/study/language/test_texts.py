"""Texts of three kinds have one length; lives of neighbourhoods in an encoder's layers."""

from __future__ import annotations

import numpy as np
import pytest

from shrink_utils.models import hidden_states, load_encoder, token_states
from shrink_utils.study.language.lifetimes import edge_intervals, lives, neighbour_graphs
from shrink_utils.study.language.texts import PIECES, texts_of_kinds
from shrink_utils.text import load_sentences


@pytest.fixture
def encoder():
    return load_encoder("tiny-random")


def test_kinds_of_text_have_equal_length_and_the_shuffled_one_the_same_words(encoder):
    kinds = texts_of_kinds(encoder, 3)
    for text, shuffled in zip(kinds["text"], kinds["shuffled"], strict=True):
        assert text != shuffled and sorted(text.split()) == sorted(shuffled.split())
    for texts in kinds.values():
        states = token_states(encoder, texts, layers=[0], max_length=PIECES + 2)
        assert states.sentence.bincount().tolist() == [PIECES] * 3


def test_lifetimes_are_mean_stays_of_a_sentences_edges_and_outlive_shuffled_ones(encoder):
    texts = load_sentences("all", n=40)["text"][:]
    layers = hidden_states(encoder, texts, pooling="mean").double().numpy()
    intervals = edge_intervals(neighbour_graphs(layers))
    mine = intervals[(intervals[:, :2] == 3).any(axis=1)]
    table = lives(layers).query("measure == 'lifetime'").set_index("item").value
    assert len(table) == len(texts)
    assert table[3] == pytest.approx((mine[:, 3] - mine[:, 2]).mean())
    rng = np.random.default_rng(0)
    shuffled = lives(np.stack([rng.permutation(layer) for layer in layers]))
    assert 1 <= shuffled.query("measure == 'lifetime'").value.mean() < table.mean()
