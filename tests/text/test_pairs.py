"""Overlap pairs from templates, the rule-made language, and the tokenizer trained on sentences."""

import re
import string
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from shrink_utils.text import load_sentences
from shrink_utils.text.pairs import (
    HELD_OUT,
    LEXICONS,
    TEMPLATES,
    heuristic_pairs,
    load_pairs,
    train_tokenizer,
    training_pairs,
    translate,
)

WORDS = st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=8), min_size=1, max_size=9)
KNOWN, NEW = ({w for words in part.values() for w in words} for part in LEXICONS.values())


def _words(text):
    return re.findall(r"\w+", text.casefold())


def _contained(row):
    return set(_words(row["text_pair"])) <= set(_words(row["text"]))


def _side_by_side(row):
    text, pair = _words(row["text"]), _words(row["text_pair"])
    return any(text[i : i + len(pair)] == pair for i in range(len(text)))


def test_templates_have_equal_shares_their_own_label_and_their_heuristic():
    rows = heuristic_pairs(250)
    found = rows.to_pandas().groupby("template")
    assert (found.size() == 10).all() and len(found) == len(TEMPLATES)
    expected = {t.name: (t.heuristic, int(not t.entailed)) for t in TEMPLATES}
    assert {n: {*zip(g.heuristic, g.label, strict=True)} for n, g in found} == {
        name: {kind} for name, kind in expected.items()
    }
    assert min(Counter(expected.values()).values()) >= 4 and len(set(expected.values())) == 6
    for row in [*rows, *heuristic_pairs(250, lexicon="new")]:
        assert _contained(row)
        # The narrowest heuristic is named: of a lexical overlap the words stand apart.
        assert _side_by_side(row) == (row["heuristic"] != "lexical_overlap")
        people = [w for w in _words(row["text"]) if w in LEXICONS["known"]["abc"]]
        assert len(people) == len(set(people))


def test_the_lexicons_share_no_word_and_the_corpora_know_all_of_them():
    corpus = {word for text in load_sentences("all")["text"] for word in _words(text)}
    assert not KNOWN & NEW and KNOWN | NEW <= corpus


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_counter_examples_have_their_share_and_never_a_held_out_template(share):
    rows = list(training_pairs(400, counter_examples=share))
    labels = np.array([row["label"] for row in rows])
    assert labels.sum() == 200 and 120 < (np.diff(labels) != 0).sum() < 280  # in random order
    refuting = [row for row in rows if row["label"] and row["heuristic"] != "none"]
    assert len(refuting) == share * 200 and all(map(_contained, refuting))
    assert not {row["template"] for row in refuting} & {*HELD_OUT}
    for row in rows:
        text, pair = {*_words(row["text"])}, {*_words(row["text_pair"])}
        assert not NEW & (text | pair)
        assert row["heuristic"] != "none" or not KNOWN & text & pair


def test_no_pair_to_train_on_is_ever_a_pair_to_judge_by_and_a_seed_decides_everything():
    sides = []
    for split in ("train", "test"):
        planted = training_pairs(9, counter_examples=1, split=split)
        drawn = [*heuristic_pairs(900, split=split), *planted]
        sides.append({(row["text"], row["text_pair"]) for row in drawn})
    assert not sides[0] & sides[1]
    first, again = (training_pairs(60, counter_examples=0.3, seed=4) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert heuristic_pairs(60, seed=1)["text"][:] != heuristic_pairs(60, seed=2)["text"][:]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: heuristic_pairs(0), "n: 0, expected at least 1"),
        (lambda: heuristic_pairs(5, lexicon="old"), "lexicon: no lexicon 'old'"),
        (lambda: heuristic_pairs(5, split="tests"), "split: no split 'tests', did you mean 'test'"),
        (lambda: training_pairs(5, counter_examples=1.5), "counter_examples: must lie between"),
        (lambda: load_pairs("movie"), "source: no corpus 'movie', did you mean 'movies'"),
        (lambda: load_pairs("movies", n=0), "n: 0, expected at least 1"),
        (lambda: train_tokenizer("a text", vocab_size=100), "texts: a string"),
        (lambda: train_tokenizer(["a"], vocab_size=5), "vocab_size: 5, expected more than the 5"),
    ],
)
def test_what_cannot_be_made_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def _spelled(word):
    """The word rule letter by letter, in another way than the code's table."""
    rows = ("aeiou", "bcdfghjklmnpqrstvwxyz")
    return "".join(row[(row.index(x) + 1) % len(row)] for x in word for row in rows if x in row)


@given(WORDS, WORDS)
def test_neighbours_change_places_within_a_clause_and_each_word_has_one_translation(words, others):
    expected = [_spelled(word) for word in words]
    for i in range(0, len(words) - 1, 2):
        expected[i], expected[i + 1] = expected[i + 1], expected[i]
    first, second = " ".join(words), " ".join(others)
    assert translate(first).split() == expected
    assert translate(f"{first}, {second}!") == f"{translate(first)}, {translate(second)}!"


def test_translations_differ_where_words_do_and_keep_number_and_punctuation():
    assert translate("The cat sat on it, and I left.") == "dev vji up tev ov, o epf migv."
    assert translate(" :-) ") == " :-) "
    assert translate("cafe\u0301 noir") == translate("caf\u00e9 noir")
    texts = load_sentences("all", n=2000)["text"]
    words = {word for text in texts for word in re.findall(r"[a-z]+", text.lower())}
    assert len({translate(word) for word in words}) == len(words) > 3000
    for text in texts[:300]:
        translated = translate(text)
        marks, of = (Counter(re.findall(r"[^\w\s'’]", t)) for t in (translated, text))
        assert marks == of and len(translated.split()) == len(text.split())


def test_no_text_is_on_both_sides_and_about_a_tenth_is_held_out():
    rows = load_pairs("editorials")
    assert rows["train"]["translation"][:50] == [translate(t) for t in rows["train"]["text"][:50]]
    sides = [{" ".join(t.casefold().split()) for t in rows[side]["text"]} for side in rows]
    n = len(load_sentences("editorials"))
    assert not sides[0] & sides[1] and len(rows["train"]) + len(rows["held_out"]) == n
    assert 0.08 * n < len(rows["held_out"]) < 0.12 * n
    few = load_pairs("editorials", n=20)
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
