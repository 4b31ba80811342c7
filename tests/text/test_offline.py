"""The offline tasks: built as they are described, and nothing of one side on the other."""

from collections import Counter, defaultdict

import numpy as np
import pytest

from shrink_utils.text import CORPORA, TASKS, load_task, read_snippets
from shrink_utils.text.tasks import _coherence, _sentiment, _split, _word_order

# Snippets with |mean rating| ≥ 0.5, and the share of them that is positive.
SENTIMENT = {
    "movies": (10_072, 0.496),
    "products": (2_985, 0.586),
    "editorials": (2_970, 0.400),
    "tweets": (3_432, 0.683),
}
OFFLINE = [name for name, spec in TASKS.items() if spec.offline]


@pytest.mark.parametrize("source", CORPORA)
def test_sentiment_is_the_sign_of_ratings_of_at_least_one_half_a_fifth_held_out(source):
    columns, (count, positive) = _sentiment(source), SENTIMENT[source]
    texts, labels = (
        columns["train"][field] + columns["validation"][field] for field in ("text", "label")
    )
    assert len(labels) == count and np.mean(labels) == pytest.approx(positive, abs=5e-4)
    assert len(columns["validation"]["label"]) / count == pytest.approx(0.2, abs=0.005)
    rated = [s for s in read_snippets(source) if abs(s.rating) >= 0.5]
    expected = Counter((s.text, int(s.rating > 0)) for s in rated)
    assert Counter(zip(texts, labels, strict=True)) == expected
    sides = [{" ".join(t.lower().split()) for t in columns[side]["text"]} for side in columns]
    assert not sides[0] & sides[1]


@pytest.mark.parametrize("source", ["products", "editorials"])
def test_no_document_stands_on_both_sides(source):
    sides = _split(read_snippets(source))
    documents = [{s.document for s in rows} for rows, _ in sides.values()]
    assert not documents[0] & documents[1]
    assert sum(len(rows) for rows, _ in sides.values()) == len(read_snippets(source))


def test_word_order_swaps_two_neighbouring_inner_words_or_none():
    originals = [s.text.split() for s in read_snippets("editorials")]
    by_bag = defaultdict(list)
    for words in originals:
        by_bag[tuple(sorted(words))].append(words)
    for columns in _word_order().values():
        assert abs(2 * sum(columns["label"]) - len(columns["label"])) <= 1  # balanced
        for text, label in zip(columns["text"], columns["label"], strict=True):
            words = text.split()
            same_words = by_bag[tuple(sorted(words))]
            assert len(words) >= 5
            assert words in same_words if label else any(_is_swap(words, o) for o in same_words)


def _is_swap(words: list[str], original: list[str]) -> bool:
    differ = [i for i, (a, b) in enumerate(zip(words, original, strict=True)) if a != b]
    neighbours = len(differ) == 2 and differ[1] == differ[0] + 1
    inner = neighbours and 0 < differ[0] and differ[1] < len(words) - 1
    return inner and words[differ[0]].lower() != words[differ[1]].lower()


def test_coherence_pairs_follow_each_other_exactly_when_they_say_so():
    documents, where = defaultdict(dict), defaultdict(set)
    for s in read_snippets("editorials"):
        documents[s.document][s.position] = s.text
        where[s.text].add(s.document)
    following = {
        (sentences[i], sentences[i + 1])
        for sentences in documents.values()
        for i in sentences
        if i + 1 in sentences
    }
    columns = _coherence()
    for side in columns.values():
        assert abs(2 * sum(side["label"]) - len(side["label"])) <= 1  # balanced
        for first, second, label in zip(*side.values(), strict=True):
            follows = (first, second) in following
            assert follows if label else not where[first] & where[second]
    sides = [{*columns[side]["text"], *columns[side]["text_pair"]} for side in columns]
    assert not sides[0] & sides[1]


@pytest.mark.parametrize("name", OFFLINE)
def test_a_task_has_the_columns_and_labels_of_its_spec_and_its_subsample_repeats_no_row(name):
    spec, whole, task = TASKS[name], load_task(name), load_task(name, max_train=64, max_eval=32)
    assert {split: len(rows) for split, rows in task.items()} == {"train": 64, "validation": 32}
    for split, rows in task.items():
        assert rows.column_names == ["text", "text_pair", "label"]
        assert rows.features["label"].names == list(spec.label_names)
        assert all(isinstance(text, str) and text for text in rows["text"])
        assert all((pair is not None) == spec.is_pair for pair in rows["text_pair"])
        assert set(rows["label"]) == set(range(spec.n_labels))
        drawn, everything = (Counter(map(str, d.to_list())) for d in (rows, whole[split]))
        assert drawn <= everything
