"""Maximum explainable variance against an SVD, and its null by all permutations."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.geometry import anisotropy, max_explainable_variance


def _by_definition(x, words, word):
    rows = np.array([row for row, w in zip(x, words, strict=True) if w == word])
    squared = np.linalg.svd(rows / np.abs(rows).max(), compute_uv=False) ** 2
    return squared[0] / math.fsum(squared)


def test_each_word_has_the_share_of_its_first_singular_direction(cloud, words):
    found = max_explainable_variance(cloud, words)
    assert list(found.per_word) == ["a", "b", "c"]
    assert found.counts == {"a": 5, "b": 7, "c": 8}
    for word, value in found.per_word.items():
        assert value == pytest.approx(_by_definition(cloud, words, word), abs=1e-12)


def test_words_with_more_occurrences_than_dimensions_are_no_exception():
    x = np.random.default_rng(0).normal(size=(40, 3))
    found = max_explainable_variance(x, [0] * 20 + [1] * 20)
    for word, value in found.per_word.items():
        assert value == pytest.approx(_by_definition(x, [0] * 20 + [1] * 20, word), abs=1e-12)


def test_vectors_are_neither_centred_nor_scaled():
    shifted = np.array([[9.0, 1.0], [9.0, -1.0]])
    found = max_explainable_variance(shifted, [0, 0], min_count=2)
    assert found.value == pytest.approx(2 * 81 / (2 * 81 + 2))  # centred: 1
    unequal = np.array([[3.0, 0.0], [0.0, 1.0]])
    found = max_explainable_variance(unequal, [0, 0], min_count=2)
    assert found.value == pytest.approx(9 / 10)  # of unit vectors: 1/2


def test_orthogonal_vectors_have_the_floor_of_their_number():
    found = max_explainable_variance(np.eye(9), [0] * 5 + [1] * 4, min_count=4)
    assert found.per_word == pytest.approx({0: 1 / 5, 1: 1 / 4})
    assert found.null_per_word == pytest.approx({0: 1 / 5, 1: 1 / 4})
    assert found.excess == pytest.approx(0, abs=1e-12)


def test_a_static_vector_explains_everything():
    x = np.repeat(np.random.default_rng(0).normal(size=(4, 9)), 6, axis=0)
    assert max_explainable_variance(x, np.arange(24) // 6).value == pytest.approx(1, abs=1e-12)


def test_the_value_is_the_mean_over_words_whatever_their_frequency(random_cloud, words):
    found = max_explainable_variance(random_cloud, words)
    values = [_by_definition(random_cloud, words, w) for w in "abc"]
    assert found.value == pytest.approx(np.mean(values), abs=1e-12)
    assert found.stderr == pytest.approx(np.std(values, ddof=1) / math.sqrt(3), rel=1e-9)


def test_the_baseline_is_the_share_of_all_rows_together(random_cloud, words):
    found = max_explainable_variance(random_cloud, words)
    assert found.baseline == float(anisotropy(random_cloud, k=1))
    assert found.corrected == pytest.approx(found.value - found.baseline, abs=1e-15)


def test_the_null_is_the_mean_over_all_ways_to_deal_the_words():
    x, labels = np.random.default_rng(0).normal(size=(6, 3)) + 0.5, [0, 0, 0, 1, 1, 2]
    dealt = [
        [_by_definition(x[list(order)], labels, word) for word in (0, 1)]
        for order in permutations(range(6))
    ]
    found = max_explainable_variance(x, labels, min_count=2, n_permutations=2000)
    assert abs(found.null - np.mean(dealt)) < 4 * found.null_stderr
    assert found.null_stderr == pytest.approx(
        np.std(np.mean(dealt, axis=1)) / math.sqrt(2000), rel=0.1
    )
    for word in (0, 1):
        assert found.null_per_word[word] == pytest.approx(np.mean(dealt, axis=0)[word], abs=0.02)
    assert found.null_per_word[1] - found.null_per_word[0] > 0.05  # two rows against three
    assert found.excess == pytest.approx(found.value - found.null, abs=1e-15)


def test_random_words_have_no_excess_where_the_published_correction_sees_plenty():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(3000, 50)) + 0.1, rng.integers(300, size=3000)
    found = max_explainable_variance(x, labels)
    assert abs(found.excess) < 4 * found.stderr
    assert found.corrected > 20 * found.stderr


def test_words_with_a_direction_of_their_own_exceed_the_null():
    rng = np.random.default_rng(0)
    own = rng.normal(size=(100, 30)).repeat(8, axis=0)
    found = max_explainable_variance(own + rng.normal(size=(800, 30)), np.arange(800) // 8)
    assert found.excess > 0.2


def test_the_null_depends_on_its_seed_alone(random_cloud, words):
    found = max_explainable_variance(random_cloud, words)
    assert max_explainable_variance(random_cloud, words, seed=0) == found
    other = max_explainable_variance(random_cloud, words, seed=1)
    assert other.null != found.null
    assert other.per_word == found.per_word


def test_one_word_has_no_standard_error_and_one_dealing_none_either(random_cloud, words):
    found = max_explainable_variance(random_cloud, words, min_count=8, n_permutations=1)
    assert math.isnan(found.stderr) and math.isnan(found.null_stderr)


@given(st.integers(0, 10**6), st.sampled_from([1e-100, 3.0, 1e100]))
def test_rotation_scale_and_the_order_of_rows_change_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    x, labels = rng.normal(size=(30, 4)), rng.integers(4, size=30)
    rotation, order = np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.permutation(30)
    options = {"min_count": 2, "n_permutations": 1}
    turned = max_explainable_variance(scale * (x @ rotation)[order], labels[order], **options)
    expected = max_explainable_variance(x, labels, **options)
    assert turned.per_word == pytest.approx(expected.per_word, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_input_is_computed_in_float64(random_cloud, words, dtype):
    x = (torch.from_numpy(random_cloud) * 100 + 1e3).to(dtype)
    assert max_explainable_variance(x, words) == max_explainable_variance(x.double(), words)


def test_a_zero_row_has_no_variance_and_does_no_harm():
    found = max_explainable_variance([[0.0, 0.0], [3.0, 4.0]], [0, 0], min_count=2)
    assert found.value == pytest.approx(1)


def test_a_word_of_zeros_is_refused(random_cloud, words):
    x = random_cloud.copy()
    x[[word == "b" for word in words]] = 0
    with pytest.raises(ValueError, match="vectors, its own or dealt ones, are all zero"):
        max_explainable_variance(x, words)


def test_no_frequent_word_is_refused_with_the_most_frequent_one(random_cloud, words):
    with pytest.raises(ValueError, match="none of 6 stands in 9 rows or more, 'c' in 8; lower"):
        max_explainable_variance(random_cloud, words, min_count=9)


@pytest.mark.parametrize("option", ["min_count", "n_permutations"])
def test_impossible_counts_are_refused(random_cloud, words, option):
    with pytest.raises(ValueError, match=rf"{option} must be at least"):
        max_explainable_variance(random_cloud, words, **{option: 0})


def test_labels_that_do_not_fit_are_refused(random_cloud):
    with pytest.raises(ValueError, match=r"words needs one label a row: 24 rows, got shape"):
        max_explainable_variance(random_cloud, ["a", "b"])
