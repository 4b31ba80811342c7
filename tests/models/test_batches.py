"""What the encoder is given, batch by batch."""

from __future__ import annotations

import pytest
import torch

from shrink_utils.models import load_encoder, state_batches

TEXTS = ["One.", "A text of more words than the others have.", "Two words", "..."]


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("tiny-random")


@pytest.mark.parametrize("pairs", [None, TEXTS[::-1]])
def test_batches_are_what_the_tokenizer_would_pad(encoder, pairs):
    for batch in state_batches(encoder, TEXTS, text_pairs=pairs, batch_size=3, max_length=9):
        texts = [TEXTS[row] for row in batch.rows]
        second = None if pairs is None else [pairs[row] for row in batch.rows]
        expected = encoder.tokenizer(
            texts, second, padding=True, truncation=True, max_length=9, return_tensors="pt"
        )
        assert set(batch.tokens) == set(expected)
        for name, ids in batch.tokens.items():
            torch.testing.assert_close(ids, expected[name], rtol=0, atol=0)
        assert batch.mask is batch.tokens["attention_mask"]


def test_special_tokens_and_padding_are_told_from_pieces(encoder):
    (batch,) = state_batches(encoder, TEXTS)
    for row, special in zip(batch.rows, batch.special, strict=True):
        n_pieces = len(encoder.tokenizer.tokenize(TEXTS[row]))
        expected = [True, *[False] * n_pieces, *[True] * (len(special) - n_pieces - 1)]
        assert special.tolist() == expected


def test_modules_in_evaluation_mode_inside_a_model_in_training_stay_so():
    model = (encoder := load_encoder("tiny-random")).model
    model.train()
    model.encoder.layer[0].eval()
    modes = [module.training for module in model.modules()]
    (batch,) = state_batches(encoder, TEXTS)
    assert [module.training for module in model.modules()] == modes
    model.eval()
    for state, again in zip(batch.states, next(state_batches(encoder, TEXTS)).states, strict=True):
        assert torch.equal(state, again)
