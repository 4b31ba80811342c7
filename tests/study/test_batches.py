"""Rows of a task become tokens and labels, in their order, and batches that are padded alike."""

import pytest
from datasets import Dataset

from shrink_utils.models import load_encoder
from shrink_utils.study.finetuning import _second_texts, _tokenized

TEXTS = ["a film", "a much longer film about a dog and a cat", "dull", "no", "a good one"]


def _rows(pairs=None):
    pairs = pairs or [None] * len(TEXTS)
    return Dataset.from_dict({"text": TEXTS, "text_pair": pairs, "label": [0, 1, 1, 0, 1]})


@pytest.fixture(scope="module")
def tokenizer():
    return load_encoder("tiny-random").tokenizer


def test_second_texts_stand_behind_the_first(tokenizer):
    pairs = ["one", "two", "three", "four", "five"]
    rows = _rows(pairs)
    assert _second_texts(rows) == pairs and _second_texts(_rows()) is None
    together = [tokenizer(a, b).input_ids for a, b in zip(TEXTS, pairs, strict=True)]
    assert [list(ids) for ids in _tokenized(rows, tokenizer)["input_ids"]] == together


@pytest.mark.parametrize(("pairs", "least"), [(None, 3), (["x"] * 5, 5)])
def test_a_length_that_leaves_no_token_of_a_text_is_refused(tokenizer, pairs, least):
    """Below the number of special tokens a tokenizer would cut nothing at all."""
    assert (
        max(map(len, _tokenized(_rows(pairs), tokenizer, max_length=least)["input_ids"])) == least
    )
    for length in (1, least - 1):
        with pytest.raises(ValueError, match=f"max_length: {length} tokens, expected at least"):
            _tokenized(_rows(pairs), tokenizer, max_length=length)
