"""The table of similarities, on runs of a tiny encoder; words of two encoders, matched."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.geometry import affine, cka, rsa, svcca
from shrink_utils.models import WordBatch, load_encoder, word_states
from shrink_utils.study import run_encoder, run_grid, similarity
from shrink_utils.study.similarity import (
    ALIGNMENTS,
    SIMILARITIES,
    Layers,
    _alignments,
    matched_layers,
    measure_similarity,
    similarity_texts,
)


@pytest.fixture
def table(finished, monkeypatch):
    monkeypatch.setattr(similarity, "ARMS", ("none", "all"))  # those of the tiny grid
    return measure_similarity(finished)  # kept by the profile: measured once


@pytest.fixture
def layers(finished):
    """The pretrained encoder and the run of arm none and seed 0, on the same words."""
    texts = similarity_texts(finished)
    run = next(run for run in run_grid(finished) if run.config.arm == "none")
    encoders = load_encoder(finished.models[0]), run_encoder(run)
    return matched_layers(*(word_states(encoder, texts) for encoder in encoders))


def _value(table, pair, measure, layer, other, arm="", seed=-1):
    keys = ["pair", "measure", "layer", "other", "arm", "seed"]
    return table.set_index(keys).value[pair, measure, layer, other, arm, seed]


def test_the_encoder_is_compared_with_itself_by_every_measure(table):
    itself = table[table.pair == "itself"]
    assert set(itself.measure) == set(SIMILARITIES)
    assert len(itself) == len(SIMILARITIES) * 9
    np.testing.assert_allclose(itself[itself.layer == itself.other].value, 1, atol=1e-12)


def test_values_are_those_of_the_measures(table, layers):
    before, after = layers
    words, tuned = before.thinned().words, after.thinned().words
    found = _value(table, "itself", "svcca", 0, 2)
    assert found == pytest.approx(svcca(words[0], words[2]))
    found = _value(table, "finetuned", "cka_debiased", 1, 2, arm="none", seed=0)
    assert found == pytest.approx(cka(words[1], tuned[2], debiased=True))
    found = _value(table, "finetuned", "rsa", 2, 2, arm="none", seed=0)
    assert found == pytest.approx(rsa(before.sentences()[2], after.sentences()[2]))
    found = _value(table, "within", "cka_debiased", 0, 2, arm="none", seed=0)
    assert found == pytest.approx(cka(tuned[0], tuned[2], debiased=True))


def test_fine_tuning_moves_the_encoder_less_than_new_weights_do(table):
    tuned = _value(table, "finetuned", "cka_debiased", 2, 2, arm="none", seed=0)
    assert _value(table, "random", "cka_debiased", 2, 2) < tuned < 1


def test_shuffled_rows_have_no_debiased_alignment(table):
    null = table[table.pair == "null"].groupby("measure").value.mean()
    assert abs(null["cka_debiased"]) < 0.03 < null["cka"]


def test_neighbours_shared_with_random_weights_are_those_beyond_the_search(table):
    rows = table[table.pair == "neighbours"]
    assert set(rows.arm) == {"none"} and set(rows.seed) == {0, 1}
    wide = rows.pivot(index="seed", columns="measure", values="value")
    beyond = (wide.mutual_knn - wide.null) / (1 - wide.null)
    np.testing.assert_allclose(wide.calibrated, beyond)
    assert (wide.null < wide.mutual_knn).all()


def test_alignments_are_judged_on_sentences_that_were_not_fitted(table, layers):
    before, after = layers
    fit = before.sentence % 2 == 0
    fitted = affine(before.words[1][fit], after.words[1][fit])
    expected = fitted.explained(before.words[1][~fit], after.words[1][~fit])
    found = _value(table, "finetuned", "affine", 1, 1, arm="none", seed=0)
    assert found == pytest.approx(expected)


def test_a_planted_rotation_is_told_from_staying_put():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(2, 60, 4)))
    turned = 2 * x @ torch.from_numpy(np.linalg.qr(rng.normal(size=(4, 4)))[0]) + 5
    sentence = torch.arange(60) // 3
    found = {
        name: value
        for name, *_, value in _alignments(Layers(x, sentence), Layers(turned, sentence))
    }
    assert set(found) == set(ALIGNMENTS)
    assert found["procrustes"] == pytest.approx(1) and found["affine"] == pytest.approx(1)
    assert found["identity"] < 0.9


def _states(names):
    """A vector that tells its sentence and position, in two layers."""
    sentence, position = torch.tensor(names).T
    vectors = torch.stack([sentence, position], dim=1).float()
    return WordBatch(
        vectors=torch.stack([vectors, vectors + 100]),
        sentence=sentence,
        position=position,
        word=["w"] * len(names),
        n_texts=3,
    )


def test_words_are_matched_by_sentence_and_position():
    first = _states([(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)])
    second = _states([(2, 1), (0, 0), (0, 2), (1, 0)])
    x, y = matched_layers(first, second)
    assert x.words[0].tolist() == [[0, 0], [0, 2], [2, 1]]
    assert torch.equal(x.words, y.words)
    assert x.sentence.tolist() == y.sentence.tolist() == [0, 0, 2]


def test_many_words_are_thinned_evenly_and_few_are_kept():
    many = Layers(torch.arange(5000.0).reshape(1, 5000, 1), torch.arange(5000) // 10)
    kept = many.thinned()
    assert kept.words.shape == (1, 2000, 1)
    assert kept.words[0, :4, 0].tolist() == [0, 2, 5, 7]
    assert kept.sentence.tolist() == (kept.words[0, :, 0].long() // 10).tolist()
    few = Layers(many.words[:, :30], many.sentence[:30])
    assert torch.equal(few.rows("cka"), few.words)
