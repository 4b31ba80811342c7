"""Overlap pairs from templates: shares, labels, and no pair on both sides."""

import re
from collections import Counter

import numpy as np
import pytest

from shrink_utils.text import load_sentences
from shrink_utils.text.pairs import (
    HELD_OUT,
    LEXICONS,
    TEMPLATES,
    heuristic_pairs,
    training_pairs,
)

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


@pytest.mark.parametrize("share", [0.0, 0.4])
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
        (lambda: heuristic_pairs(5, split="tests"), "split: no split 'tests', did you mean 'test'"),
        (lambda: training_pairs(5, counter_examples=1.5), "counter_examples: must lie between"),
    ],
)
def test_what_cannot_be_made_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
