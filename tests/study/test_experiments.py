"""Probes of fine-tuned vectors, and layers of two encoders compared."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from shrink_utils.models import hidden_states, load_encoder
from shrink_utils.models.states import WordBatch
from shrink_utils.study.experiments import (
    REMOVED,
    _cluster_axes,
    _deal_folds,
    _equal_layers,
    _Target,
    _treatments,
    compared_rows,
    frequency_target,
    probed,
    shuffled,
    text_states,
    thinned,
    treated_accuracies,
    type_target,
)
from shrink_utils.text import load_task


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_one_pass_gives_both_vectors_of_the_texts_in_their_order(pooling):
    encoder = load_encoder("tiny-random")
    rows = load_task("sentiment_movies", max_eval=20)["validation"]
    found = text_states(encoder, rows, max_length=16)[pooling]
    expected = hidden_states(encoder, list(rows["text"]), pooling=pooling, max_length=16)
    torch.testing.assert_close(found, expected)


def _cloud(n=400, d=30, loud=8.0):
    """The longest direction tells the class; the others are noise."""
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[:, 3] *= loud
    return x, (x[:, 3] > 0).numpy()


def test_removing_the_direction_of_the_class_loses_it_and_the_next_or_the_mean_nothing():
    found = treated_accuracies(*_cloud()).set_index(["treatment", "removed", "skipped"])
    accuracy = found.value
    for k in REMOVED:
        assert accuracy["global", k, 0] < 0.65
        assert accuracy["global", k, k] > 0.85
    assert accuracy["global", 0, 0] == accuracy["untreated", 0, 0] > 0.85


def test_clusters_are_treated_each_by_itself():
    x, _ = _cloud()
    own = _cluster_axes(x, rank=2 * max(REMOVED))
    assert len(own.means) > 1
    for k in (0, *REMOVED):
        assert torch.equal(_treatments(x)["clusters", k, 0](x), own.treatment(remove=k)(x))


def test_a_tight_small_cluster_is_merged_and_not_fitted_alone():
    x = torch.cat([_cloud(n=100)[0], 1e3 + _cloud(n=3)[0]])
    assert len(_cluster_axes(x, rank=9, most=2).means) == 1


def test_folds_are_of_equal_size_and_rows_of_one_group_share_theirs():
    assert sorted(np.bincount(_deal_folds(np.arange(103), n_folds=4))) == [25, 26, 26, 26]
    groups = np.random.default_rng(0).integers(0, 30, size=300)
    folds = _deal_folds(groups, n_folds=2)
    assert all(len(set(folds[groups == g])) == 1 for g in set(groups))


def test_a_held_out_row_never_helps_to_predict_itself():
    """A column that names each row: a probe that saw the row would read its label off it."""
    every, labels = np.arange(40), np.arange(40) % 2
    assert probed(torch.eye(40), _Target("type", every, labels, every))["value"] < 0.7


def test_chance_is_the_commonest_class_of_the_other_half():
    halves = _deal_folds(np.arange(16), n_folds=2)
    labels = np.where(halves == 0, "a", "b")
    labels[np.flatnonzero(halves == 0)[0]] = "b"  # two classes to fit on
    labels[np.flatnonzero(halves == 1)[0]] = "a"
    target = _Target("type", np.arange(16), labels, np.arange(16))
    assert probed(torch.randn(16, 2), target)["chance"] == 2 / 16


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
    assert probed(x, type_target(words))["value"] == 1.0


def test_a_frequency_in_the_vectors_is_read_off_for_words_held_out():
    sentences = [[f"w{i}" for i in range(s, s + 5)] for s in range(0, 200, 5)]
    counts = Counter({f"w{i}": i + 1 for i in range(200)})
    words = _words(sentences)
    x = torch.randn(200, 3, dtype=torch.float64)
    x[:, 1] = torch.tensor([math.log(counts[w]) for w in words.word])
    target = frequency_target(words, counts)
    assert probed(x, target)["value"] > 0.99
    assert probed(x, target.shuffled())["value"] < 0.1


def _batch(vectors, sentence):
    """Words of these vectors, (layers, n, d), of these sentences."""
    n = len(sentence)
    return WordBatch(vectors, sentence, torch.zeros(n), ["w"] * n, n_texts=n)


def test_many_words_are_thinned_evenly_and_few_are_kept():
    sentence = torch.arange(5000) // 10
    many = _batch(torch.arange(5000.0).reshape(1, 5000, 1), sentence)
    kept = thinned(many)
    assert kept.shape == (1, 2000, 1)
    assert kept[0, :4, 0].tolist() == [0, 2, 5, 7]
    few = _batch(many.vectors[:, :30], sentence[:30])
    assert torch.equal(compared_rows(few, "cka"), few.vectors)
    assert compared_rows(few, "rsa")[0, :, 0].tolist() == [4.5, 14.5, 24.5]  # of three sentences


def test_equal_layers_are_compared_in_order_and_shuffled_rows_are_the_same_rows():
    words = torch.randn(3, 60, 4, generator=torch.Generator().manual_seed(0))
    x = _batch(words, torch.arange(60) // 5)
    y = _batch(words.flip(0), x.sentence)
    rows = _equal_layers(x, y, ("cka",))
    assert [row[:3] for row in rows] == [("cka", i, i) for i in range(3)]
    assert [row[3] > 0.999 for row in rows] == [False, True, False]  # the middle one is its own
    mixed = shuffled(words[0])
    assert not torch.equal(mixed, words[0])
    assert torch.equal(mixed[mixed[:, 0].argsort()], words[0][words[0][:, 0].argsort()])
