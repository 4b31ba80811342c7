"""The diagnosis of one encoder: what it is called with, and its figure."""

import bz2
import gzip
import json
import lzma
import re

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from shrink_utils.__main__ import main
from shrink_utils.models import load_encoder, save_classifier
from shrink_utils.study import diagnose as module
from shrink_utils.study.diagnose import ANGLES, SHARES, diagnose, read_texts, write_diagnosis


def test_a_near_name_is_named_before_a_hub_is_asked(monkeypatch):
    monkeypatch.setattr(module, "load_encoder", lambda *_, **__: pytest.fail("the hub was asked"))
    for typed, meant in (("mini-lm", "minilm"), ("tiny-randon", "tiny-random"), ("mpnt", "mpnet")):
        with pytest.raises(ValueError, match=f"no local encoder '{typed}', did you mean '{meant}'"):
            diagnose(typed, ["a text"])


def test_files_of_another_diagnosis_stay_and_the_page_needs_no_other_file(tmp_path):
    columns = [*ANGLES, *SHARES]
    table = pd.DataFrame(0.5, [0, 1, 2], columns).rename_axis("layer")
    table.attrs["null"] = dict.fromkeys(columns, 0.123)
    first = write_diagnosis(table, tmp_path, name="any", title="a < b", command="diagnose any")
    other = write_diagnosis(table + 1, tmp_path, name="any", title="other", command="")
    again = write_diagnosis(table + 2, tmp_path, name="any", title="a < b", command="diagnose any")
    assert [path.name for path in first] == [f"diagnose-any.{x}" for x in ("csv", "png", "html")]
    assert again == first and other[0].name == "diagnose-any-2.csv"
    assert pd.read_csv(first[0]).AvgSim[0] == 2.5 and pd.read_csv(other[0]).AvgSim[0] == 1.5
    page = again[2].read_text(encoding="utf-8")
    assert "a &lt; b" in page and "<code>diagnose any</code>" in page and "torch" in page
    assert page.count("0.123") == len(columns)  # a null per measure
    assert set(re.findall(r'(?:src|href)="(.*?)[,"]', page)) == {"data:image/png;base64"}
    for known in ("minilm", "mpnet"):
        assert f"<td>{known}</td>" in page


def test_texts_that_are_cut_are_counted_and_words_may_be_rarer():
    texts = ["a dog sees the house and " + f"more {'words ' * i}" for i in range(12)]
    found = diagnose("tiny-random", texts, max_length=12)
    assert found.attrs["cut"] == 8 and found.attrs["max_length"] == 12
    assert set(found.attrs["null"]) == set(found.columns)
    with pytest.raises(ValueError, match="stands in 20 different sentences or more"):
        diagnose("tiny-random", texts, min_count=20)


LINES = [f'line {i}, "quoted"\u2028and on' for i in range(40)]
TABLE = pd.DataFrame({"label": range(40), "text": LINES})
PLAIN = "\r\n".join(LINES).encode()
FORMS = {
    "a.txt": PLAIN,
    "a.txt.gz": gzip.compress(PLAIN),
    "a.bz2": bz2.compress(PLAIN),
    "a.csv": TABLE.to_csv(index=False).encode(),
    "a.tsv.xz": lzma.compress(TABLE.to_csv(index=False, sep="\t").encode()),
    "a.parquet": TABLE.to_parquet(index=False),
    "a.json": TABLE.to_json(orient="records").encode(),
    "a.jsonl": TABLE.to_json(orient="records", lines=True).encode(),
    "mark.jsonl": b"\xef\xbb\xbf" + TABLE.to_json(orient="records", lines=True).encode(),
    "stdin": gzip.compress(TABLE.to_json(orient="records", lines=True).encode()),
}


@pytest.mark.parametrize("name", FORMS)
def test_texts_are_read_from_lines_and_from_tables(tmp_path, name):
    (path := tmp_path / name).write_bytes(FORMS[name])
    is_table = name not in ("a.txt", "a.txt.gz", "a.bz2")
    assert read_texts(path, column="text" if is_table else None) == LINES
    if is_table:
        for column, found in ((None, "the columns label, text"), ("x", "no column 'x'")):
            with pytest.raises(ValueError, match=f"{found}.* by --column"):
                read_texts(path, column=column)
    else:
        with pytest.raises(ValueError, match="plain text has no columns"):
            read_texts(path, column="text")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04...", "this is an archive or an Office document; save its sentences"),
        (b"%PDF-1.7", "this is a PDF"),
        (b"\x28\xb5\x2f\xfd...", "this is compressed by zstd"),
        (gzip.compress(PLAIN)[:-20], "text: .*: Compressed file ended"),
        (b"PAR1 and no more", "text: .*: .*[Pp]arquet"),
        ("Caf\xe9\n".encode("latin-1") * 40, "is not UTF-8"),
        (b"one line\n", "holds 1 lines with text; the measures need at least 30"),
    ],
)
def test_what_holds_no_texts_is_named_in_one_line(tmp_path, content, message):
    (path := tmp_path / "given").write_bytes(content)
    with pytest.raises(ValueError, match=message) as told:
        read_texts(path)
    assert "\n" not in str(told.value)


SENTENCES = [f"the dog {i} sees a house" for i in range(40)]


TEXTS = [{"text": text} for text in SENTENCES]


def _lines(rows):
    return "\n".join(map(json.dumps, rows))


def _rows(*, mark="{}", at=range(40), header="id\ttext", separator="\t"):
    """A table of 40 rows; those `at` have their text in `mark`."""
    texts = [mark.format(text) if i in at else text for i, text in enumerate(SENTENCES)]
    return "\n".join([header, *(f"{i}{separator}{text}" for i, text in enumerate(texts))]), texts


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("a.tsv", _rows(mark='"{}', at=(9, 29))),
        ("a.tsv", _rows(mark='"{}" she said', at=(9,))),
        ("a.tab", _rows(mark="{}, well", at=(3,))),
        ("a.csv", _rows(separator=",", header="id,text")),
        (
            "a.csv",
            (
                _rows(mark='"{}, ""well"""', separator=",", header="id,text")[0],
                [f'{text}, "well"' for text in SENTENCES],
            ),
        ),
        (
            "a.csv",
            (
                f"text\r\n{'x' * 200_000}\r\n\r\n" + "\r\n".join(SENTENCES),
                ["x" * 200_000, *SENTENCES],
            ),
        ),
        ("a.json", (json.dumps(TEXTS, indent=1), SENTENCES)),
        ("a", (json.dumps(TEXTS, indent=1), SENTENCES)),
        ("a.jsonl", (_lines({"text": text, "id": 10**20} for text in SENTENCES), SENTENCES)),
        ("a.jsonl", (_lines([*TEXTS, {"text": None}, {}]) + "\n\n", SENTENCES)),
    ],
)
def test_a_table_gives_the_texts_that_stand_in_it(tmp_path, name, given):
    content, texts = given
    (path := tmp_path / name).write_bytes(content.encode())
    assert read_texts(path, column="text") == texts


@pytest.mark.parametrize(
    ("rows", "column"),
    [
        (SENTENCES, "0"),
        ([[text, 1] for text in SENTENCES], "0"),
        ([[1, t] for t in SENTENCES], "1"),
    ],
)
def test_columns_without_names_are_counted(tmp_path, rows, column):
    (tmp_path / "whole.json").write_text(json.dumps(rows))
    (tmp_path / "pretty").write_text(json.dumps(rows, indent=1))
    (tmp_path / "lines.jsonl").write_text(_lines(rows))
    for name in ("whole.json", "pretty", "lines.jsonl"):
        assert read_texts(tmp_path / name, column=column) == SENTENCES
        with pytest.raises(ValueError, match=r"a JSON table with the columns 0.*by --column"):
            read_texts(tmp_path / name)


NOTEBOOK = {"cells": [{"source": SENTENCES}], "nbformat": 4}
COLUMNS = {"text": dict(enumerate(SENTENCES))}


@pytest.mark.parametrize("column", [None, "text"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "text\nwell, a dog\nwell, a house", "line 2 has 2 fields, the header 1"),
        ("a.csv", "id,text\n1,a\n2,b,c", "line 3 has 3 fields, the header 2"),
        ("a.csv", "id,text\n1,a\n\n2", "line 4 has 1 fields, the header 2"),
        ("a.csv", 'id,text\n1,"a \\"b\\", c"\n', "line 2: ',' expected after '\"'"),
        ("a.csv", "id,text\n1,'a, b'\n", "line 2 has 3 fields"),
        ("a.csv", 'id,text\n1,"a\n2,b\n', "line 3: unexpected end of data"),
        ("a.csv", "id;text\n1;a", "'id;text' is one column; save the table with commas"),
        ("a.tsv", "id,text\n1,a", "'id,text' is one column; save the table with tabs"),
        ("a.tsv", "id\ttext\n1\ta\tb", "line 2 has 3 fields, the header 2"),
        ("a.tsv", 'id\ttext\n1\t"a\n2\tb"\n3\tc', "row 1 has tabs or line ends between two"),
        *(
            (name, json.dumps({"data": TEXTS}, indent=n), "this is one JSON object, no table; save")
            for name in ("a.json", "a", "a.txt")
            for n in (None, 1)
        ),
        ("a.json", json.dumps(COLUMNS), "this is one JSON object"),
        ("a.ipynb", json.dumps(NOTEBOOK, indent=1), "this is a notebook, no table"),
        ("a.jsonl", '{"text": "a"}\n{"text": "b"', "line 2 is no JSON"),
        ("a", "\n".join(json.dumps(row, indent=1) for row in TEXTS), "line 1 is no JSON"),
        ("a.json", "\n".join(SENTENCES), "line 1 is no JSON"),
        ("a.json", json.dumps([*TEXTS, "a"]), "a JSON list of dict, str, expected one of objects"),
        ("a.json", "[1, 2]", "a JSON list of int"),
        ("a.arrows", b"\xff\xff\xff\xff".decode("latin-1"), "is not UTF-8"),
    ],
)
def test_what_is_no_table_of_texts_is_refused_with_its_line(
    tmp_path, name, content, message, column
):
    (path := tmp_path / name).write_bytes(content.encode("latin-1"))
    with pytest.raises(ValueError, match=re.escape(message)) as told:
        read_texts(path, column=column)
    assert "\n" not in str(told.value) and "plain text" not in str(told.value)


def test_plain_text_may_begin_with_a_bracket(tmp_path):
    for first in ("[MASK] is a token", "{curly} braces", "[1] a note", "[[a page]]"):
        (path := tmp_path / "a.txt").write_text("\n".join([first, *SENTENCES]))
        assert read_texts(path) == [first, *SENTENCES]


def test_a_folder_and_a_table_with_semicolons_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*; it is a folder"):
        read_texts(tmp_path)
    (path := tmp_path / "a.csv").write_text(TABLE.to_csv(index=False, sep=";"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"'label;text' is one column; save the table with commas"):
        read_texts(path, column="text")


def test_weights_whose_scales_lie_beside_them_are_refused_by_the_command(tmp_path, capsys):
    """A full table of numbers came out: SelfSim − AvgSim of −.002 for .556."""
    encoder = load_encoder("tiny-random")
    save_classifier(encoder.model, encoder.tokenizer, tmp_path / "fp8")
    weights = load_file(file := tmp_path / "fp8" / "model.safetensors")
    for name in [name for name in weights if "encoder.layer" in name and weights[name].ndim == 2]:
        scale = weights[name].abs().max() / 448
        weights[name] = (weights[name] / scale).to(torch.float8_e4m3fn)
        weights[name.replace("weight", "weight_scale")] = scale
    save_file(weights, file, metadata={"format": "pt"})
    (path := tmp_path / "a.txt").write_text("\n".join(SENTENCES))
    given = [str(file.parent), "--text", str(path), "--out", str(tmp_path)]
    assert main(["diagnose", *given]) == 1
    error = capsys.readouterr().err
    assert "fp8" in error and "weight_scale" in error and error.count("\n") == 1
    assert not list(tmp_path.glob("diagnose-*"))
