"""HANS's file as its authors lay it out."""

from __future__ import annotations

import pytest

from shrink_utils.text import heuristic_pairs, read_hans
from shrink_utils.text.hans import FILE

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
    (tmp_path / FILE).write_text(HEADER + "".join(LINES), encoding="utf-8")
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


def test_a_folder_without_the_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="evaluation set is missing"):
        read_hans(tmp_path)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / FILE).write_text("label\tsentence1\tsentence2\n", encoding="utf-8")
    with pytest.raises(ValueError, match="no column 'gold_label'"):
        read_hans(tmp_path)


def test_an_unknown_label_is_named_with_its_line(folder):
    with open(folder / FILE, "a", encoding="utf-8") as file:
        file.write(_line(12, "neutral", "constituent", "ce_adverb"))
    with pytest.raises(ValueError, match="line 14: label 'neutral'"):
        read_hans(folder)


def test_no_rows_cannot_be_asked_for(folder):
    with pytest.raises(ValueError, match="n: 0"):
        read_hans(folder, n=0)
