"""The rule-made language: a fixed word for a word, neighbours exchanged."""

from __future__ import annotations

import re
import string
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.text import load_sentences, translate

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
