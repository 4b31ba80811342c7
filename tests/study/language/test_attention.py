"""Features of attention graphs, and the regression that reads them."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from shrink_utils.models import load_encoder
from shrink_utils.study.language.attention import (
    attention_maps,
    auc,
    barcode_features,
    degree_features,
    held_out_hits,
)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_maps_are_those_of_each_text_alone_whatever_it_is_padded_to():
    encoder = load_encoder("tiny-random")
    texts = ["A short one.", "A rather longer sentence, with a comma and more words.", "Two words"]
    together = list(attention_maps(encoder, texts))
    for text, found in zip(texts, together, strict=True):
        (alone,) = attention_maps(encoder, [text])
        n_tokens = len(encoder.tokenizer(text)["input_ids"])
        assert found.shape == (2, 2, n_tokens, n_tokens)
        np.testing.assert_allclose(found, alone, atol=1e-6)
        np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-6)


def test_features_of_equal_attention_are_known():
    t = 5
    equal = np.full((1, 1, t, t), 1 / t)
    np.testing.assert_allclose(barcode_features(equal)[0, 0], [1 - 1 / t, 0, 0], atol=1e-12)
    np.testing.assert_allclose(degree_features(equal)[0, 0], [1 - 1 / t, 0, np.log(t)], atol=1e-12)


def test_a_weight_of_zero_adds_nothing_to_an_entropy():
    (itself,) = degree_features(np.eye(4)[None, None])[0]
    assert itself[2] == 0
    links = np.eye(4)[[1, 0, 1, 2]]  # bars of length 0 and 0 and 0: all tokens are linked fully
    links[3] = [0.5, 0, 0, 0.5]  # and now 0, 0 and ½
    (features,) = barcode_features(links[None, None])[0]
    np.testing.assert_allclose(features[[0, 2]], [1 / 6, np.log(3)])


def test_auc_is_that_of_scikit_learn(rng):
    features, labels = rng.integers(0, 9, size=(50, 4)).astype(float), np.arange(50) % 2
    expected = [roc_auc_score(labels, column) for column in features.T]
    np.testing.assert_allclose(auc(features, labels), expected)


def test_a_class_that_is_written_in_a_feature_is_found_and_noise_is_not(rng):
    labels = np.arange(100) % 2
    noise = rng.normal(size=(100, 5))
    told = np.column_stack([noise, labels + 0.1 * rng.normal(size=100)])
    assert held_out_hits(told, labels, seed=0).mean() > 0.95
    assert 0.3 < held_out_hits(noise, labels, seed=0).mean() < 0.7
    again = held_out_hits(told, labels, seed=0)
    np.testing.assert_array_equal(held_out_hits(told, labels, seed=0), again)
