"""The rule-made language, pairs of sentences, and the tokenizer trained on them."""

from __future__ import annotations

import os
import re
import string
import subprocess
import sys
from collections import Counter

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from shrink_utils.text import load_pairs, load_sentences, train_tokenizer, translate, translation

WORDS = st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=8), min_size=1, max_size=9)


def _spelled(word):
    """The word rule letter by letter, in another way than the code's table."""
    vowels, consonants = "aeiou", "bcdfghjklmnpqrstvwxyz"
    rows = (vowels, consonants)
    return "".join(
        next((row[(row.index(x) + 1) % len(row)] for row in rows if x in row), x) for x in word
    )


def test_the_rules_on_a_sentence_worked_by_hand():
    assert translate("The cat sat on it, and I left.") == "dev vji up tev ov, o epf migv."


@given(WORDS)
def test_neighbours_change_places_and_each_word_has_one_translation(words):
    expected = [_spelled(word) for word in words]
    for i in range(0, len(words) - 1, 2):
        expected[i], expected[i + 1] = expected[i + 1], expected[i]
    assert translate(" ".join(words)).split() == expected


@given(WORDS, WORDS)
def test_a_clause_is_translated_by_itself(first, second):
    a, b = " ".join(first), " ".join(second)
    assert translate(f"{a}, {b}!") == f"{translate(a)}, {translate(b)}!"


def test_different_words_have_different_translations():
    texts = load_sentences("all", n=2000)["text"]
    words = {word for text in texts for word in re.findall(r"[a-z]+", text.lower())}
    assert len({translate(word) for word in words}) == len(words) > 3000
    assert not any(translate(word) == word for word in words)


def test_a_translation_has_as_many_words_and_the_same_punctuation():
    for text in load_sentences("all", n=300)["text"]:
        translated = translate(text)
        marks = Counter(re.findall(r"[^\w\s'’]", text))
        assert Counter(re.findall(r"[^\w\s'’]", translated)) == marks
        assert len(translated.split()) == len(text.split())


def test_what_has_no_word_stays():
    assert translate("") == ""
    assert translate(" :-) ") == " :-) "


def _key(text):
    return " ".join(text.casefold().split())


def test_a_translation_is_the_rules():
    rows = load_pairs("movies", n=50)["train"]
    assert rows["translation"] == [translate(text) for text in rows["text"]]


def test_no_text_is_on_both_sides_and_about_a_tenth_is_held_out():
    for source in ("editorials", "products"):
        rows = load_pairs(source)
        train, held_out = ({_key(t) for t in rows[side]["text"]} for side in rows)
        assert not train & held_out
        n = len(load_sentences(source))
        assert len(rows["train"]) + len(rows["held_out"]) == n
        assert 0.08 * n < len(rows["held_out"]) < 0.12 * n


def test_fewer_sentences_are_a_part_of_more_and_are_judged_by_the_same():
    few, many = load_pairs("editorials", n=20), load_pairs("editorials", n=40)
    assert many["train"]["text"][:20] == few["train"]["text"][:]
    assert len(many["train"]) == 40
    assert few["held_out"]["text"][:] == many["held_out"]["text"][:]


def test_what_is_done_to_a_set_is_not_done_to_the_next_one():
    first = load_pairs("tweets", n=5)
    texts = first["train"]["text"][:]
    first["train"].set_format("numpy")
    first.pop("held_out")
    again = load_pairs("tweets", n=5)
    assert set(again) == {"train", "held_out"}
    assert again["train"].format["type"] is None
    assert again["train"]["text"][:] == texts


def test_a_set_of_the_hub_is_read_from_english_at_its_revision(monkeypatch):
    asked = []

    def load(*path, **options):
        asked.append((path, options))
        rows = [{"de": f"Satz {i}", "en": f"sentence {i}"} for i in range(40)]
        return Dataset.from_dict({"translation": [*rows, {"de": "", "en": "no translation"}]})

    monkeypatch.setattr(translation, "load_dataset", load)
    rows = load_pairs("owner/corpus/de-en@abc", n=10)
    assert asked == [(("owner/corpus", "de-en"), {"split": "train", "revision": "abc"})]
    assert len(rows["train"]) == 10
    texts = [*rows["train"]["text"], *rows["held_out"]["text"]]
    translations = [*rows["train"]["translation"], *rows["held_out"]["translation"]]
    assert translations == [text.replace("sentence", "Satz") for text in texts]


def test_a_set_without_pairs_is_refused(monkeypatch):
    rows = Dataset.from_dict({"text": ["a"]})
    monkeypatch.setattr(translation, "load_dataset", lambda *path, **options: rows)
    with pytest.raises(ValueError, match=r"source: 'owner/texts' has columns \['text'\]"):
        load_pairs("owner/texts")


def test_without_a_hub_the_error_says_what_can_be_read():
    with pytest.raises(
        ConnectionError, match=r"source: cannot read 'owner/none/de-en'.*editorials"
    ):
        load_pairs("owner/none/de-en")


def test_unknown_corpora_and_sizes_are_refused():
    with pytest.raises(ValueError, match="source: no corpus 'movie', did you mean 'movies'"):
        load_pairs("movie")
    with pytest.raises(ValueError, match="n: 0, expected at least 1"):
        load_pairs("movies", n=0)


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
