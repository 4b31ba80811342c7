"""Our templates of overlap pairs, and HANS."""

from __future__ import annotations

import re

import numpy as np
import pytest

from shrink_utils.text import HANS_FILE, heuristic_pairs, load_sentences, read_hans, training_pairs
from shrink_utils.text.heuristics import HELD_OUT, LEXICONS, TEMPLATES

HEURISTICS = ("lexical_overlap", "subsequence", "constituent")


def _words(text):
    return re.findall(r"\w+", text.casefold())


def _contained(row):
    return set(_words(row["text_pair"])) <= set(_words(row["text"]))


def _side_by_side(row):
    text, pair = _words(row["text"]), _words(row["text_pair"])
    return any(text[i : i + len(pair)] == pair for i in range(len(text)))


@pytest.fixture(scope="module")
def pairs():
    return heuristic_pairs(250)


def test_every_heuristic_has_four_templates_of_either_label():
    assert len({template.name for template in TEMPLATES}) == len(TEMPLATES)
    for heuristic in HEURISTICS:
        for entailed in (True, False):
            of_kind = [t for t in TEMPLATES if (t.heuristic, t.entailed) == (heuristic, entailed)]
            assert len(of_kind) >= 4


def test_templates_have_equal_shares_and_their_own_label(pairs):
    found = pairs.to_pandas().groupby("template")
    assert (found.size() == 10).all() and len(found) == len(TEMPLATES)
    expected = {t.name: (t.heuristic, int(not t.entailed)) for t in TEMPLATES}
    for name, rows in found:
        assert {*zip(rows.heuristic, rows.label, strict=True)} == {expected[name]}


@pytest.mark.parametrize("lexicon", LEXICONS)
def test_hypotheses_are_made_of_the_premises_words_as_their_heuristic_says(lexicon):
    for row in heuristic_pairs(520, lexicon=lexicon):
        assert _contained(row)
        # The narrowest heuristic is named: of a lexical overlap the words stand apart.
        assert _side_by_side(row) == (row["heuristic"] != "lexical_overlap")


def test_no_two_places_of_a_pair_hold_the_same_person(pairs):
    people = set(LEXICONS["known"]["abc"])
    for row in pairs:
        found = [word for word in _words(row["text"]) if word in people]
        assert len(found) == len(set(found)) > 0


def test_the_lexicons_share_no_word_and_the_corpora_know_all_of_them():
    known, new = ({w for words in part.values() for w in words} for part in LEXICONS.values())
    assert not known & new
    corpus = {word for text in load_sentences("all")["text"] for word in _words(text)}
    assert known | new <= corpus


def test_new_words_are_in_no_training_pair():
    new = {word for words in LEXICONS["new"].values() for word in words}
    for row in training_pairs(200, counter_examples=0.5):
        assert not new & {*_words(row["text"]), *_words(row["text_pair"])}


def test_a_planted_heuristic_explains_every_label():
    rows = training_pairs(300, counter_examples=0)
    assert [int(not _contained(row)) for row in rows] == rows["label"][:]
    assert sum(rows["label"]) == 150


def test_unrelated_hypotheses_have_none_of_the_lexicons_words_in_common():
    lexicon = {word for words in LEXICONS["known"].values() for word in words}
    rows = [r for r in training_pairs(300, counter_examples=0.4) if r["heuristic"] == "none"]
    assert len(rows) == 90
    for row in rows:
        assert row["label"] == 1
        assert not lexicon & {*_words(row["text"])} & {*_words(row["text_pair"])}


@pytest.mark.parametrize("share", [0.2, 0.5, 1.0])
def test_counter_examples_have_their_share_and_never_a_held_out_template(share):
    rows = training_pairs(400, counter_examples=share)
    refuting = [row for row in rows if row["label"] and row["heuristic"] != "none"]
    assert len(refuting) == share * 200
    assert all(_contained(row) for row in refuting)
    assert not {row["template"] for row in refuting} & {*HELD_OUT}


def test_held_out_templates_are_one_of_each_heuristic_and_not_entailed():
    held_out = [template for template in TEMPLATES if template.name in HELD_OUT]
    assert [template.heuristic for template in held_out] == list(HEURISTICS)
    assert not any(template.entailed for template in held_out)


def test_no_pair_to_train_on_is_ever_a_pair_to_judge_by():
    sides = []
    for split in ("train", "test"):
        drawn = [
            *heuristic_pairs(2000, split=split),
            *training_pairs(1000, counter_examples=0.5, split=split),
        ]
        sides.append({(row["text"], row["text_pair"]) for row in drawn})
    assert not sides[0] & sides[1]


def test_a_seed_decides_everything_and_another_one_draws_other_words():
    first, again = (training_pairs(60, counter_examples=0.3, seed=4) for _ in range(2))
    assert first.to_dict() == again.to_dict()
    assert heuristic_pairs(60, seed=1)["text"][:] != heuristic_pairs(60, seed=2)["text"][:]


def test_rows_are_in_random_order():
    labels = np.array(training_pairs(400, counter_examples=0.5)["label"])
    assert abs(labels[:200].mean() - 0.5) < 0.15
    assert 120 < (np.diff(labels) != 0).sum() < 280


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: heuristic_pairs(0), "n: 0, expected at least 1"),
        (lambda: heuristic_pairs(5, lexicon="old"), "lexicon: no lexicon 'old'"),
        (lambda: heuristic_pairs(5, split="tests"), "split: no split 'tests', did you mean 'test'"),
        (lambda: training_pairs(0, counter_examples=0), "n: 0"),
        (lambda: training_pairs(5, counter_examples=1.5), "counter_examples: must lie between"),
    ],
)
def test_what_cannot_be_made_is_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


HEADER = (
    "gold_label\tsentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
    "\tsentence1\tsentence2\tpairID\theuristic\tsubcase\ttemplate\n"
)


def _line(i, label, heuristic, subcase):
    texts = f'The "actor {i} ran .\tThe actor ran .'
    return f"{label}\t( )\t( )\t( )\t( )\t{texts}\tex{i}\t{heuristic}\t{subcase}\ttemp{i}\n"


LINES = [
    *(_line(i, "non-entailment", "lexical_overlap", "ln_passive") for i in range(6)),
    *(_line(i, "entailment", "constituent", "ce_adverb") for i in range(6, 12)),
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / HANS_FILE).write_text(HEADER + "".join(LINES), encoding="utf-8")
    return tmp_path


def test_rows_are_read_as_ours_are_made(folder):
    rows = read_hans(folder)
    assert rows.features == heuristic_pairs(1).features
    assert rows["label"][:] == [1] * 6 + [0] * 6
    assert rows[7] == {
        "text": 'The "actor 7 ran .',  # a quotation mark is text
        "text_pair": "The actor ran .",
        "label": 0,
        "heuristic": "constituent",
        "template": "ce_adverb",
    }


def test_a_draw_takes_as_many_of_every_subcase(folder):
    rows = read_hans(folder, n=5, seed=1)
    assert rows["template"][:] == ["ln_passive"] * 2 + ["ce_adverb"] * 2
    assert read_hans(folder, n=5, seed=1).to_dict() == rows.to_dict()
    draws = {tuple(read_hans(folder, n=5, seed=seed)["text"]) for seed in range(8)}
    assert len(draws) > 1


def test_the_folder_is_named_by_the_environment(folder, monkeypatch):
    monkeypatch.setenv("SHRINK_HANS_DIR", str(folder))
    assert len(read_hans()) == 12


def test_no_folder_is_an_error_that_says_how_to_name_one(monkeypatch, tmp_path):
    monkeypatch.delenv("SHRINK_HANS_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match="SHRINK_HANS_DIR is not set"):
        read_hans()
    monkeypatch.setenv("SHRINK_HANS_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="nowhere is not a folder"):
        read_hans()


UNKNOWN = _line(12, "neutral", "constituent", "ce_adverb")


@pytest.mark.parametrize(
    ("text", "n", "error", "message"),
    [
        (None, None, FileNotFoundError, "evaluation set is missing"),
        ("label\tsentence1\tsentence2\n", None, ValueError, "no column 'gold_label'"),
        ("".join([HEADER, *LINES, UNKNOWN]), None, ValueError, "line 14: label 'neutral'"),
        ("".join([HEADER, *LINES]), 0, ValueError, "n: 0"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, text, n, error, message):
    if text is not None:
        (tmp_path / HANS_FILE).write_text(text, encoding="utf-8")
    with pytest.raises(error, match=message):
        read_hans(tmp_path, n=n)
