"""Corpora: what the files hold, counted independently of the reader."""

from __future__ import annotations

import csv
import hashlib
import html

import pytest

from shrink_utils.text import CORPORA, corpora, load_sentences, read_snippets, source_path
from shrink_utils.text.corpora import hash_order, stable_hash

COUNTS = {"movies": 10_605, "products": 3_708, "editorials": 5_190, "tweets": 4_200}


@pytest.mark.parametrize(("source", "count"), COUNTS.items())
def test_each_corpus_has_the_number_of_snippets_its_authors_state(source, count):
    assert len(read_snippets(source)) == count


@pytest.mark.parametrize("source", CORPORA)
def test_snippets_are_the_fields_of_the_file(source):
    path = source_path("vader_sentiment") / CORPORA[source]
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    snippets = read_snippets(source)
    assert [html.unescape(row[2]).strip() for row in rows] == [s.text for s in snippets]
    assert [float(row[1]) for row in rows] == [s.rating for s in snippets]
    numbered = source in ("products", "editorials")
    ids = [f"{s.document}_{s.position}" if numbered else s.document for s in snippets]
    assert [f"{source}/{row[0]}" for row in rows] == ids


def test_html_entities_of_tweets_become_characters():
    third = read_snippets("tweets")[2].text
    assert third.startswith("We were 17 deep last night & the love was so strong")
    assert not any("&amp;" in s.text or "&lt;" in s.text for s in read_snippets("tweets"))


def test_ratings_lie_between_minus_four_and_four():
    assert all(-4 <= s.rating <= 4 for source in CORPORA for s in read_snippets(source))


def test_a_line_without_three_fields_is_named(tmp_path, monkeypatch):
    (tmp_path / CORPORA["tweets"]).write_bytes(b"1\t0.5\tgood\r\n2\t-1\r\n")
    monkeypatch.setattr(corpora, "fetch", lambda name: tmp_path)
    with pytest.raises(ValueError, match=r"tweets_GroundTruth\.txt, line 2: 2 fields"):
        read_snippets("tweets")


def test_an_unknown_corpus_gets_the_nearest_name():
    with pytest.raises(ValueError, match="no corpus 'editorial', did you mean 'editorials'"):
        load_sentences("editorial")


def test_all_sentences_are_the_four_corpora_in_turn():
    sentences = load_sentences("all")
    assert len(sentences) == sum(COUNTS.values())
    assert sentences.column_names == ["text", "document", "source"]
    assert sentences["source"][:] == [name for name, n in COUNTS.items() for _ in range(n)]


def test_a_draw_of_sentences_is_without_replacement_and_in_the_order_of_the_file():
    everything = load_sentences("editorials")["text"][:]
    drawn = load_sentences("editorials", n=300, seed=4)["text"][:]
    assert len(drawn) == 300
    remaining = iter(everything)
    assert all(text in remaining for text in drawn)  # a subsequence


def test_the_draw_depends_on_the_seed_alone():
    draws = [load_sentences("movies", n=40, seed=seed)["text"][:] for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]


def test_more_sentences_than_there_are_means_all():
    assert len(load_sentences("products", n=10**6)) == COUNTS["products"]


@pytest.mark.parametrize("n", [0, -3])
def test_a_draw_of_no_sentences_is_an_error(n):
    with pytest.raises(ValueError, match=f"n: {n}"):
        load_sentences("movies", n=n)


def test_hash_order_is_a_permutation_that_looks_random():
    order = hash_order(1000, "salt")
    assert sorted(order) == list(range(1000))
    assert abs(sum(order[:500]) / 500 - 499.5) < 50  # mean of 500 of 0..999, s.d. 9


def test_a_hash_is_that_of_sha256_and_so_the_same_in_every_process():
    assert stable_hash("a", 1) == int(hashlib.sha256(b"('a', 1)").hexdigest()[:16], 16)
    assert stable_hash("a", 1) == 0x391D545B6971354E
