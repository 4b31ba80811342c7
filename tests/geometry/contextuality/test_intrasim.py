"""Intra-sentence similarity against its definition, and its null by all permutations."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.geometry import avg_sim, intra_sim


def _cosine(a, b):
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    return a @ b / math.sqrt(a @ a) / math.sqrt(b @ b)


def _by_definition(x, sentences, sentence):
    rows = [row for row, s in zip(x, sentences, strict=True) if s == sentence]
    mean = [math.fsum(column) / len(rows) for column in np.transpose(rows)]
    return math.fsum(_cosine(np.array(mean), row) for row in rows) / len(rows)


def test_each_sentence_has_the_mean_cosine_of_its_words_to_their_mean(cloud, sentences):
    found = intra_sim(cloud, sentences)
    assert list(found.per_sentence) == [1, 2, 3, 4, 5, 7]
    for sentence, value in found.per_sentence.items():
        expected = _by_definition(cloud, sentences, sentence)
        assert value == pytest.approx(expected, abs=1e-12)


def test_the_mean_is_that_of_the_raw_vectors():
    """The long vector draws the mean to itself; the mean of unit vectors would lie between."""
    found = intra_sim([[3.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0]], [0, 0, 1, 1])
    assert found.per_sentence[0] == pytest.approx((3 + 1) / math.sqrt(10) / 2)
    assert found.per_sentence[0] != pytest.approx(math.sqrt(0.5))


def test_the_value_is_the_mean_over_sentences_whatever_their_length(random_cloud, sentences):
    found = intra_sim(random_cloud, sentences)
    values = [_by_definition(random_cloud, sentences, s) for s in (1, 2, 3, 4, 5, 7)]
    assert found.value == pytest.approx(np.mean(values), abs=1e-12)
    assert found.stderr == pytest.approx(np.std(values, ddof=1) / math.sqrt(6), rel=1e-9)


def test_one_word_sentences_are_left_out(random_cloud, sentences):
    assert 9 in sentences
    found = intra_sim(random_cloud, sentences)
    assert 9 not in found.per_sentence and 9 not in found.null_per_sentence


def test_the_baseline_is_avg_sim_between_sentences(random_cloud, sentences):
    found = intra_sim(random_cloud, sentences)
    assert found.baseline == avg_sim(random_cloud, groups=sentences).value
    assert found.corrected == pytest.approx(found.value - found.baseline, abs=1e-15)


def test_the_null_is_the_mean_over_all_ways_to_deal_the_rows():
    x, labels = np.random.default_rng(0).normal(size=(6, 3)) + 0.5, [0, 0, 0, 1, 1, 2]
    dealt = [
        [_by_definition(x[list(order)], labels, sentence) for sentence in (0, 1)]
        for order in permutations(range(6))
    ]
    found = intra_sim(x, labels, n_permutations=4000)
    assert abs(found.null - np.mean(dealt)) < 4 * found.null_stderr
    assert found.null_stderr == pytest.approx(
        np.std(np.mean(dealt, axis=1)) / math.sqrt(4000), rel=0.1
    )
    for sentence in (0, 1):
        expected = np.mean(dealt, axis=0)[sentence]
        assert found.null_per_sentence[sentence] == pytest.approx(expected, abs=0.02)
    assert found.null_per_sentence[0] != pytest.approx(found.null_per_sentence[1], abs=0.05)
    assert found.excess == pytest.approx(found.value - found.null, abs=1e-15)


def test_independent_words_have_no_excess_where_the_published_correction_sees_plenty():
    rng = np.random.default_rng(0)
    x, sentences = rng.normal(size=(3000, 50)) + 0.3, rng.integers(300, size=3000)
    found = intra_sim(x, sentences)
    assert abs(found.excess) < 4 * found.stderr
    assert found.corrected > 50 * found.stderr


@pytest.mark.parametrize("length", [2, 5, 20])
def test_the_null_follows_the_length_as_the_notes_say(length):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200 * length, 400)) + 0.5
    found = intra_sim(x, np.repeat(np.arange(200), length))
    expected = math.sqrt((1 + (length - 1) * found.baseline) / length)
    assert found.null == pytest.approx(expected, rel=0.01)


def test_words_of_a_topic_exceed_the_null():
    rng = np.random.default_rng(0)
    topics = rng.normal(size=(100, 30)).repeat(8, axis=0)
    found = intra_sim(topics + rng.normal(size=(800, 30)), np.arange(800) // 8)
    assert found.excess > 0.2


def test_the_null_depends_on_its_seed_alone(random_cloud, sentences):
    found = intra_sim(random_cloud, sentences)
    assert intra_sim(random_cloud, sentences, seed=0) == found
    assert intra_sim(random_cloud, sentences, seed=1).null != found.null
    assert intra_sim(random_cloud, sentences, seed=1).per_sentence == found.per_sentence


def test_one_dealing_has_no_standard_error(random_cloud, sentences):
    assert math.isnan(intra_sim(random_cloud, sentences, n_permutations=1).null_stderr)


def test_one_long_sentence_has_no_standard_error():
    found = intra_sim(np.eye(3), [0, 0, 1])
    assert found.per_sentence == pytest.approx({0: math.sqrt(0.5)})
    assert math.isnan(found.stderr)


@given(st.integers(0, 10**6), st.sampled_from([1e-100, 3.0, 1e100]))
def test_rotation_scale_and_the_order_of_rows_change_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    x, labels = rng.normal(size=(30, 4)), rng.integers(4, size=30)
    rotation, order = np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.permutation(30)
    turned = intra_sim(scale * (x @ rotation)[order], labels[order])
    assert turned.per_sentence == pytest.approx(intra_sim(x, labels).per_sentence, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_input_is_computed_in_float64(random_cloud, sentences, dtype):
    x = (torch.from_numpy(random_cloud) * 100 + 1e3).to(dtype)
    assert intra_sim(x, sentences) == intra_sim(x.double(), sentences)


def test_a_sum_at_the_end_of_the_range_does_not_overflow():
    found = intra_sim([[1.5e308, 0.0], [1.5e308, 0.0], [0.0, 1.0]], [0, 0, 1])
    assert found.per_sentence == {0: pytest.approx(1)}


def _thirds_of_a_circle():
    angle = 2 * np.pi * np.arange(3) / 3
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_a_sentence_whose_vectors_cancel_is_refused():
    x = np.concatenate([[[1.0, 0.0]], _thirds_of_a_circle()])  # the three cancel up to rounding
    with pytest.raises(ValueError, match="the vectors of sentence 'b' have mean zero"):
        intra_sim(x, ["a", "b", "b", "b"])


def test_a_dealt_sentence_whose_vectors_cancel_is_refused():
    x = [[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]]
    with pytest.raises(ValueError, match="rows dealt at random to a sentence have mean zero"):
        intra_sim(x, [0, 0, 1, 1])


@pytest.mark.parametrize(
    ("labels", "found"), [([0, 0, 0], r"got 1 of at most 3"), ([0, 1, 2], r"got 3 of at most 1")]
)
def test_too_few_sentences_or_words_are_refused(labels, found):
    with pytest.raises(ValueError, match=rf"at least 2 sentences, one of them of 2 .*{found}"):
        intra_sim(np.eye(3), labels)


def test_zero_rows_are_refused(random_cloud, sentences):
    x = random_cloud.copy()
    x[3] = 0
    with pytest.raises(ValueError, match="1 zero row"):
        intra_sim(x, sentences)


def test_no_dealing_is_refused(random_cloud, sentences):
    with pytest.raises(ValueError, match="n_permutations must be at least 1, got 0"):
        intra_sim(random_cloud, sentences, n_permutations=0)


def test_labels_that_do_not_fit_are_refused(random_cloud):
    with pytest.raises(ValueError, match=r"sentences needs one label a row: 24 rows, got shape"):
        intra_sim(random_cloud, [1, 2])
