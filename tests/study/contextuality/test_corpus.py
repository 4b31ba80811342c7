"""The pass over a corpus, against all its vectors held at once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from shrink_utils.geometry import (
    anisotropy,
    avg_sim,
    effective_rank,
    iso_score,
    rogue_dimensions,
    self_sim,
    similarity_grid,
)
from shrink_utils.models import load_encoder, word_batches, word_states
from shrink_utils.study import stream_corpus
from shrink_utils.study.contextuality import corpus
from shrink_utils.study.contextuality.corpus import CorpusMetrics, frequent_words
from shrink_utils.text import load_sentences

MIN_COUNT = 3


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-random")


@pytest.fixture(scope="module")
def texts():
    return [*load_sentences("all", n=90)["text"], "...", "A film, a film: the film."]


@pytest.fixture(scope="module")
def table(encoder, texts):
    return stream_corpus(encoder, texts, min_count=MIN_COUNT, batch_size=8).table()


@pytest.fixture(scope="module")
def states(encoder, texts):
    return word_states(encoder, texts)


@pytest.fixture(scope="module")
def means(states):
    """Mean word vector of each sentence that has a word, (layers, sentences, d) float64."""
    x, sentence = states.vectors.double(), states.sentence
    return torch.stack([x[:, sentence == s].mean(dim=1) for s in sentence.unique()], dim=1)


def _values(table, quantity, layer):
    rows = table[(table["quantity"] == quantity) & (table["layer"] == layer)]
    return rows.set_index("item")["value"]


@pytest.mark.parametrize("layer", range(3))
def test_similarity_of_words_is_that_of_all_vectors_at_once(table, states, layer):
    x = states.vectors[layer]
    expected = avg_sim(x, groups=states.sentence).value
    assert _values(table, "avg_sim", layer).item() == pytest.approx(expected, rel=1e-6)
    shares = _values(table, "rogue_dimension", layer)
    np.testing.assert_allclose(shares, rogue_dimensions(x), rtol=1e-4, atol=1e-8)
    assert list(shares.index) == [str(i) for i in range(32)]
    found = self_sim(x, states.word, sentences=states.sentence, min_count=MIN_COUNT)
    values = _values(table, "self_sim", layer)
    assert set(values.index) == set(found.per_word)
    for word, expected in found.per_word.items():
        assert values[word] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("layer", range(3))
def test_spectra_of_sentences_are_those_of_all_means_at_once(table, means, layer):
    x = means[layer]
    for name, expected in {
        "anisotropy": float(anisotropy(x, k=1, center=True)),
        "iso_score": iso_score(x, bias_corrected=True),
        "effective_rank": effective_rank(x),
    }.items():
        assert _values(table, name, layer).item() == pytest.approx(expected, rel=1e-5)


def test_alignment_of_layers_is_that_of_all_means_at_once(table, means):
    expected = similarity_grid("cka_debiased", means)
    found = np.stack([_values(table, "cka", layer) for layer in range(3)])
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_frequent_words_stand_in_enough_different_texts():
    texts = ["The dog", "the the cat", "THE cat's dog", "a don't, don't"]
    assert frequent_words(texts, min_count=2) == ["dog", "the"]
    assert frequent_words(texts, min_count=1) == ["a", "cat", "cat's", "dog", "don't", "the"]


def test_a_long_corpus_is_tokenized_portion_by_portion(encoder, texts, table, monkeypatch):
    asked = []

    def noted(encoder, portion, **options):
        asked.append(list(portion))
        return word_batches(encoder, portion, **options)

    monkeypatch.setattr(corpus, "PORTION", 40)
    monkeypatch.setattr(corpus, "word_batches", noted)
    found = stream_corpus(encoder, texts, min_count=MIN_COUNT, batch_size=8).table()
    assert [text for portion in asked for text in portion] == texts
    assert max(map(len, asked)) == 40
    pd.testing.assert_frame_equal(found, table, rtol=1e-4, atol=1e-6)


def test_a_batch_without_words_changes_nothing(encoder):
    metrics = CorpusMetrics(3, 32, ["film"], min_count=2)
    for batch in word_batches(encoder, ["...", "!"]):
        metrics.update(batch)
    assert not any(m.any() for m in metrics.self_sim[0].metric_state.values())
    assert not metrics.means
