"""Sentences to train on and to judge by, and the tokenizer trained on sentences."""

import re

import pytest
from transformers import AutoTokenizer

from shrink_utils.text import load_sentences
from shrink_utils.text.corpora import split_sentences, train_tokenizer


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_sentences("movie"), "source: no corpus 'movie', did you mean 'movies'"),
        (lambda: split_sentences("movies", n=0), "n: 0, expected at least 1"),
        (lambda: train_tokenizer("a text", vocab_size=100), "texts: a string"),
        (lambda: train_tokenizer(["a"], vocab_size=5), "vocab_size: 5, expected more than the 5"),
    ],
)
def test_what_cannot_be_read_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_no_text_is_on_both_sides_and_about_a_tenth_is_held_out():
    rows = split_sentences("editorials")
    sides = [{" ".join(t.casefold().split()) for t in rows[side]["text"]} for side in rows]
    n = len(load_sentences("editorials"))
    assert not sides[0] & sides[1] and len(rows["train"]) + len(rows["held_out"]) == n
    assert 0.08 * n < len(rows["held_out"]) < 0.12 * n
    few = split_sentences("editorials", n=20)
    assert few["train"]["text"][:] == rows["train"]["text"][:20]
    assert few["held_out"]["text"][:] == rows["held_out"]["text"][:]


def test_a_trained_tokenizer_spells_its_texts_and_survives_a_folder(tmp_path):
    texts = load_sentences("all", n=300)["text"][:]
    tokenizer = train_tokenizer(texts, vocab_size=400)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert tokenizer.convert_tokens_to_ids(names) == [0, 1, 2, 3, 4] and len(tokenizer) == 400
    assert all(ids[0] == 2 and ids[-1] == 3 and 1 not in ids for ids in tokenizer(texts).input_ids)
    batch = tokenizer(["a", "a longer text"], padding=True)
    assert batch.attention_mask[0] == sorted(batch.attention_mask[0], reverse=True)
    assert set(batch) == {"input_ids", "attention_mask"}
    inner = [token for token in tokenizer.get_vocab() if len(token) == 3 and token[:2] == "##"]
    by_id = tokenizer.convert_ids_to_tokens(range(5, 5 + len(inner)))
    assert by_id == sorted(inner)  # named before the training, which numbers them by chance
    tokenizer.save_pretrained(tmp_path)
    assert AutoTokenizer.from_pretrained(tmp_path)(texts).input_ids == tokenizer(texts).input_ids
