"""GLUE's files with their oddities, and the hub's columns."""

import os
from pathlib import Path

import datasets
import pytest

from shrink_utils.sources import hub_revisions
from shrink_utils.text import load_task
from shrink_utils.text.tasks import GLUE, _read_glue

MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"


@pytest.fixture
def glue(tmp_path, monkeypatch):
    """Write the two files of a task, and read GLUE from there."""
    monkeypatch.setenv("SHRINK_GLUE_DIR", str(tmp_path))

    def write(name: str, train: str, validation: str | None = None) -> Path:
        folder = tmp_path / GLUE[name].folder
        folder.mkdir()
        (folder / "train.tsv").write_bytes(train.encode())
        validation = train if validation is None else validation
        (folder / "dev.tsv").write_bytes(validation.encode())
        return folder

    return write


COLA = "gj04\t1\t\tThey sang.\ncj99\t0\t*\tThey sang \u2028 it.\n"
LONG = "very " * 400_000
STSB = "index\tsentence1\tsentence2\tscore\n"


@pytest.mark.parametrize(
    ("name", "text", "rows"),
    [
        # A byte order mark, carriage returns and unbalanced quotes.
        (
            "mrpc",
            MRPC + '1\t7\t8\tHe said " no .\tHe said no .\r\n0\t9\t10\ta "\tb\r\n',
            [('He said " no .', "He said no .", 1), ('a "', "b", 0)],
        ),
        # Empty sentences, and two megabytes in one line.
        (
            "mrpc",
            f"{MRPC}1\t1\t2\t\tHe sang.\r\n0\t1\t2\t\t\r\n1\t1\t2\t{LONG}\tshort\r\n",
            [("", "He sang.", 1), ("", "", 0), (LONG, "short", 1)],
        ),
        ("cola", COLA, [("They sang.", None, 1), ("They sang \u2028 it.", None, 0)]),
        # Scores, not classes.
        ("stsb", STSB + "0\ta\tb\t3.750\n1\tb\tc\t0\n", [("a", "b", 3.75), ("b", "c", 0.0)]),
    ],
)
def test_a_file_is_read_with_its_oddities(glue, name, text, rows):
    glue(name, text)
    fields = ("text", "text_pair", "label")
    columns = {field: [row[i] for row in rows] for i, field in enumerate(fields)}
    assert _read_glue(name) == {"train": columns, "validation": columns}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        # Lines are counted from 1 where there is no header, too.
        ("cola", "gj04\t1\t\tThey sang.\ngj04\t1\n", "line 2: 2 fields"),
        *(
            ("mrpc", f"{MRPC}{label}\t7\t8\ta\tb\r\n", f"line 2: label '{label}', expected 0, 1")
            for label in ("2", "")
        ),
        ("stsb", f"{STSB}0\ta\tb\thigh\n", "label 'high', expected a number"),
        ("mrpc", "Quality\tA\tB\n1\ta\tb\n", "has no column #1 String, #2 String"),
    ],
)
def test_what_a_file_of_glue_cannot_hold_is_named(glue, name, text, message):
    glue(name, text)
    with pytest.raises(ValueError, match=rf"train\.tsv.*{message}"):
        load_task(name)


def test_without_a_folder_the_rows_come_from_the_hub(monkeypatch, tmp_path):
    asked = []

    def load_dataset(*where, revision):
        asked.append((*where, revision))
        rows = {"sentence1": ["p"], "sentence2": ["h"], "label": [1], "idx": [0]}
        return {s: datasets.Dataset.from_dict(rows) for s in ("train", "validation", "test")}

    monkeypatch.setenv("SHRINK_GLUE_DIR", str(tmp_path))
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    row = {"text": ["p"], "text_pair": ["h"], "label": [1]}
    assert _read_glue("mrpc") == {"train": row, "validation": row}
    assert asked == [("nyu-mll/glue", "mrpc", hub_revisions()["nyu-mll/glue"])]


@pytest.mark.skipif("SHRINK_GLUE_DIR" not in os.environ, reason="SHRINK_GLUE_DIR is not set")
def test_real_glue_has_its_published_number_of_rows():
    found = {name: tuple(map(len, load_task(name).values())) for name in ("cola", "mrpc", "stsb")}
    assert found["cola"] == (8_551, 1_043) and found["stsb"] == (5_749, 1_500)
    assert found["mrpc"] in {(3_667, 408), (3_668, 408)}  # it goes round with both
