"""The offline tasks: built as they are described, and nothing of one side on the other."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from shrink_utils.text import CORPORA, read_snippets
from shrink_utils.text.offline import (
    _split,
    coherence,
    sentiment,
    word_order,
)

# Snippets with |mean rating| ≥ 0.5, and the share of them that is positive.
SENTIMENT = {
    "movies": (10_072, 0.496),
    "products": (2_985, 0.586),
    "editorials": (2_970, 0.400),
    "tweets": (3_432, 0.683),
}


def _normal(text: str) -> str:
    return " ".join(text.lower().split())


def _all(columns: dict, field: str) -> list:
    return columns["train"][field] + columns["validation"][field]


@pytest.fixture(scope="module", params=CORPORA)
def rated(request):
    """A corpus and its sentiment task."""
    return request.param, sentiment(request.param)


def test_sentiment_has_the_known_number_of_rows_a_share_of_positives_and_a_fifth_held_out(rated):
    source, columns = rated
    labels = _all(columns, "label")
    count, positive = SENTIMENT[source]
    assert len(labels) == count
    assert np.mean(labels) == pytest.approx(positive, abs=5e-4)
    assert len(columns["validation"]["label"]) / count == pytest.approx(0.2, abs=0.005)


def test_sentiment_is_the_sign_of_ratings_of_at_least_one_half(rated):
    source, columns = rated
    expected = Counter(
        (s.text, int(s.rating > 0)) for s in read_snippets(source) if abs(s.rating) >= 0.5
    )
    assert Counter(zip(_all(columns, "text"), _all(columns, "label"), strict=True)) == expected


def test_no_sentiment_text_stands_on_both_sides(rated):
    _, columns = rated
    sides = [{_normal(text) for text in columns[side]["text"]} for side in columns]
    assert not sides[0] & sides[1]


@pytest.mark.parametrize("source", ["products", "editorials"])
def test_no_document_stands_on_both_sides(source):
    sides = _split(read_snippets(source))
    documents = [{s.document for s in rows} for rows, _ in sides.values()]
    assert not documents[0] & documents[1]
    assert sum(len(rows) for rows, _ in sides.values()) == len(read_snippets(source))


@pytest.mark.parametrize("build", [word_order, coherence])
def test_classes_are_balanced_on_each_side(build):
    for columns in build().values():
        labels = columns["label"]
        assert abs(2 * sum(labels) - len(labels)) <= 1


def test_word_order_swaps_two_neighbouring_inner_words_or_none():
    originals = [s.text.split() for s in read_snippets("editorials")]
    whole = {" ".join(words) for words in originals}
    by_bag: dict[tuple, list] = {}
    for words in originals:
        by_bag.setdefault(tuple(sorted(words)), []).append(words)
    for columns in word_order().values():
        for text, label in zip(columns["text"], columns["label"], strict=True):
            words = text.split()
            assert len(words) >= 5
            if label == 1:
                assert text in whole
                continue
            assert any(_is_swap(words, original) for original in by_bag[tuple(sorted(words))]), text


def _is_swap(words: list[str], original: list[str]) -> bool:
    differ = [i for i, (a, b) in enumerate(zip(words, original, strict=True)) if a != b]
    return (
        len(differ) == 2
        and differ[1] == differ[0] + 1
        and 0 < differ[0]
        and differ[1] < len(words) - 1
        and words[differ[0]].lower() != words[differ[1]].lower()
    )


def test_coherence_pairs_follow_each_other_exactly_when_they_say_so():
    documents: dict[str, dict[int, str]] = {}
    where: dict[str, set[str]] = {}
    for s in read_snippets("editorials"):
        documents.setdefault(s.document, {})[s.position] = s.text
        where.setdefault(s.text, set()).add(s.document)
    following = {
        (sentences[i], sentences[i + 1])
        for sentences in documents.values()
        for i in sentences
        if i + 1 in sentences
    }
    for columns in coherence().values():
        rows = zip(columns["text"], columns["text_pair"], columns["label"], strict=True)
        for first, second, label in rows:
            if label == 1:
                assert (first, second) in following
            else:
                assert not where[first] & where[second]


def test_no_sentence_of_a_coherence_pair_stands_on_both_sides():
    columns = coherence()
    sides = [{*columns[side]["text"], *columns[side]["text_pair"]} for side in columns]
    assert not sides[0] & sides[1]
