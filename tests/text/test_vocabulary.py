"""A tokenizer trained here."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from transformers import AutoTokenizer

from shrink_utils.text import load_sentences, train_tokenizer

SCRIPT = """
from shrink_utils.text import load_sentences, train_tokenizer
print(sorted(train_tokenizer(load_sentences("all", n=300)["text"], vocab_size=400).vocab.items()))
"""


@pytest.fixture(scope="module")
def texts():
    return list(load_sentences("all", n=300)["text"])


@pytest.fixture(scope="module")
def tokenizer(texts):
    return train_tokenizer(texts, vocab_size=400)


def test_a_text_stands_between_start_and_end(tokenizer):
    tokens = tokenizer.convert_ids_to_tokens(tokenizer("The movie").input_ids)
    assert (tokens[0], tokens[-1]) == ("[CLS]", "[SEP]")
    assert "".join(tokens[1:-1]).replace("##", "") == "themovie"


def test_the_special_tokens_come_first_and_the_size_is_kept(tokenizer):
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizer.convert_tokens_to_ids(names) == [0, 1, 2, 3, 4]
    assert len(tokenizer) == 400


def test_every_training_text_is_spelled_without_unknowns(texts, tokenizer):
    assert all(1 not in ids for ids in tokenizer(texts).input_ids)


def test_it_pads_on_the_right_and_tells_where_a_piece_stands(tokenizer):
    batch = tokenizer(["a", "a longer text"], padding=True)
    assert tokenizer.is_fast
    assert batch.attention_mask[0] == sorted(batch.attention_mask[0], reverse=True)
    assert "a longer text"[slice(*batch.encodings[1].offsets[1])] == "a"
    assert set(batch) == {"input_ids", "attention_mask"}


def test_equal_texts_give_an_equal_tokenizer_in_another_process(tokenizer):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": "1"},
    )
    assert done.stdout.strip() == str(sorted(tokenizer.vocab.items()))


def test_a_saved_tokenizer_reads_alike(tokenizer, texts, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again(texts).input_ids == tokenizer(texts).input_ids


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(ValueError, match="texts: empty"):
        train_tokenizer([], vocab_size=100)
    with pytest.raises(ValueError, match="vocab_size: 5, expected more than the 5"):
        train_tokenizer(["a"], vocab_size=5)
