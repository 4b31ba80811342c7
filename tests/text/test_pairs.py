"""Sentences and translations, to train on and held out."""

from __future__ import annotations

import pytest
from datasets import Dataset

from shrink_utils.text import load_pairs, load_sentences, pairs, translate


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

    monkeypatch.setattr(pairs, "load_dataset", load)
    rows = load_pairs("owner/corpus/de-en@abc", n=10)
    assert asked == [(("owner/corpus", "de-en"), {"split": "train", "revision": "abc"})]
    assert len(rows["train"]) == 10
    texts = [*rows["train"]["text"], *rows["held_out"]["text"]]
    translations = [*rows["train"]["translation"], *rows["held_out"]["translation"]]
    assert translations == [text.replace("sentence", "Satz") for text in texts]


def test_a_set_without_pairs_is_refused(monkeypatch):
    rows = Dataset.from_dict({"text": ["a"]})
    monkeypatch.setattr(pairs, "load_dataset", lambda *path, **options: rows)
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
