"""The four tables of the chapter, on a tiny encoder."""

from __future__ import annotations

import numpy as np
import pytest

from shrink_utils.geometry import cka, effective_rank, intrinsic_dimension
from shrink_utils.models import hidden_states, load_encoder, random_encoder, token_states
from shrink_utils.study.language.experiment import (
    PIECES,
    _texts_of_kinds,
    language_sentences,
    measure_dimension,
    measure_divergence,
    measure_lifetimes,
)
from shrink_utils.study.language.lifetimes import edge_intervals, neighbour_graphs
from shrink_utils.study.language.trees import rtd_lite


@pytest.fixture
def tables(finished):
    measures = {  # kept by the profile: measured once
        "dimension": measure_dimension,
        "divergence": measure_divergence,
        "lifetimes": measure_lifetimes,
    }
    return {name: measure(finished) for name, measure in measures.items()}


def test_kinds_of_text_have_equal_length_and_the_shuffled_one_the_same_words(finished):
    encoder = load_encoder(finished.models[0])
    kinds = _texts_of_kinds(encoder, finished)
    for text, shuffled in zip(kinds["text"], kinds["shuffled"], strict=True):
        assert text != shuffled and sorted(text.split()) == sorted(shuffled.split())
    for texts in kinds.values():
        states = token_states(encoder, texts, layers=[0], max_length=PIECES[-1] + 2)
        assert states.sentence.bincount().tolist() == [PIECES[-1]] * len(texts)


def test_dimensions_are_those_of_the_measures(tables, finished):
    encoder = load_encoder(finished.models[0])
    text = _texts_of_kinds(encoder, finished)["sampled"][1]
    vectors = token_states(encoder, [text], max_length=PIECES[-1] + 2).vectors.double()
    keys = ["kind", "item", "pieces", "layer", "measure"]
    table = tables["dimension"].set_index(keys).sort_index()
    found = table.loc["sampled", 1]
    value, error = intrinsic_dimension(vectors[2], method="ph", return_error=True)
    assert found.value[200, 2, "ph"] == pytest.approx(value, rel=1e-3)
    assert found.stderr[200, 2, "ph"] == pytest.approx(error, rel=1e-2)
    assert found.value[200, 1, "twonn"] == pytest.approx(intrinsic_dimension(vectors[1]), rel=1e-3)
    assert found.value[200, 1, "rank"] == pytest.approx(effective_rank(vectors[1]), rel=1e-3)
    short = intrinsic_dimension(vectors[2, :50], method="ph")
    assert found.value[50, 2, "ph"] == pytest.approx(short, rel=1e-3)


def test_divergences_are_those_of_the_layers(tables, finished):
    texts = language_sentences(finished)
    x = hidden_states(load_encoder(finished.models[0]), texts, pooling="mean").double()
    table = tables["divergence"].set_index(["pair", "layer", "other", "measure"])
    assert table.value["itself", 0, 2, "rtd"] == pytest.approx(rtd_lite(x[0], x[2]), rel=1e-4)
    matched = rtd_lite(x[0], x[2], matched=True)
    assert table.value["itself", 0, 2, "rtd_matched"] == pytest.approx(matched, rel=1e-4)
    expected = 1 - cka(x[1], x[2], debiased=True)
    assert table.value["itself", 1, 2, "cka"] == pytest.approx(expected, rel=1e-4)


def test_lifetimes_are_mean_stays_of_a_sentences_edges(tables, finished):
    texts = language_sentences(finished)
    random = random_encoder(finished.models[0], seed=finished.base_seed + 1)
    states = hidden_states(random, texts, pooling="mean").double().numpy()
    intervals = edge_intervals(neighbour_graphs(states))
    mine = intervals[(intervals[:, :2] == 3).any(axis=1)]
    table = tables["lifetimes"].query("cloud == 'random' and measure == 'lifetime'")
    assert len(table) == len(texts)
    found = table.set_index("item").value[3]
    assert found == pytest.approx((mine[:, 3] - mine[:, 2]).mean())


def test_neighbourhoods_outlive_shuffled_ones(tables):
    table = tables["lifetimes"]
    lifetime = table[table.measure == "lifetime"].groupby("cloud").value.mean()
    assert 1 <= lifetime["shuffled"] < min(lifetime["encoder"], lifetime["random"])
    stays = table[table.measure == "stays"].set_index(["cloud", "layer"]).value
    assert np.isfinite(stays).all() and stays["shuffled", 1] > stays["encoder", 1]
