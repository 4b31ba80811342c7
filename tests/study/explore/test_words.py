"""A typed word is looked up and drawn; one that is too rare gets an answer."""

from __future__ import annotations

import pytest
import torch

from shrink_utils.study.encoders.contexts import WordContexts
from shrink_utils.study.explore.words import describe_contexts, draw_contexts, word_explorer


def _contexts(word, cosine=0.25):
    near = torch.eye(3, dtype=torch.float64)
    near[0, 1] = near[1, 0] = cosine
    snippets = [f"a {word.upper()}", f"the {word.upper()}", f"no {word.upper()}"]
    return WordContexts(word, snippets, torch.stack([torch.ones(3, 3).double(), near]), 7)


def test_heatmaps_are_sorted_by_the_last_layer():
    first, last = draw_contexts(_contexts("cat"), (0, 1)).axes[:2]
    assert [label.get_text() for label in first.get_yticklabels()][2] == "no CAT"
    cosines = last.collections[0].get_array().reshape(3, 3)
    assert cosines[0, 1] == 0.25 and cosines[0, 2] == 0


def test_the_sentence_names_the_most_and_the_least_alike():
    said = describe_contexts(_contexts("cat"), (0, 1))
    assert said.startswith("Most alike at layer 1 (+0.25): “a CAT” and “the CAT”. Least alike")


@pytest.fixture
def explorer():
    asked = []

    def find(word):
        asked.append(word)
        if word == "rare":
            raise ValueError("word: 'rare' stands in 1 of 7 texts")
        return _contexts(word, 0.75)

    made = word_explorer(_contexts("cat"), find, (0, 1))
    made.asked = asked
    return made


def test_typing_reads_the_word_once_and_draws_it(explorer):
    first = explorer.picture.value
    assert explorer.asked == []  # the first word came read
    explorer.controls["word"].value = "dog"
    assert explorer.asked == ["dog"]
    assert explorer.picture.value != first and "a DOG" in explorer.picture.value


def test_a_rare_word_gets_an_answer_and_the_next_one_is_drawn(explorer):
    explorer.controls["word"].value = "rare"
    assert "stands in 1 of 7 texts" in explorer.picture.value
    explorer.controls["word"].value = "dog"
    assert "<img" in explorer.picture.value
