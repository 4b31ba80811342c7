"""Texts and tables out of files of any form, with the lines that they stand on."""

import bz2
import gzip
import json
import lzma
import re

import pandas as pd
import pytest
from datasets import ClassLabel, Dataset, DatasetDict

from shrink_utils.text.files import empty_lines, read_columns, read_texts

LINES = [f'line {i}, "quoted"\u2028and on' for i in range(40)]
TABLE = pd.DataFrame({"label": range(40), "text": LINES})
PLAIN = "\r\n".join(LINES).encode()
FORMS = {
    "a.txt": PLAIN,
    "a.txt.bz2": bz2.compress(PLAIN),
    "a.csv": TABLE.to_csv(index=False).encode(),
    "a.tsv.xz": lzma.compress(TABLE.to_csv(index=False, sep="\t").encode()),
    "a.parquet": TABLE.to_parquet(index=False),
    "a.json": TABLE.to_json(orient="records").encode(),
    "a.jsonl": TABLE.to_json(orient="records", lines=True).encode(),
    "mark.jsonl": b"\xef\xbb\xbf" + TABLE.to_json(orient="records", lines=True).encode(),
}


@pytest.mark.parametrize("name", FORMS)
def test_texts_are_read_from_lines_and_from_tables(tmp_path, name):
    (path := tmp_path / name).write_bytes(FORMS[name])
    is_table = not name.startswith("a.txt")
    assert read_texts(path, column="text" if is_table else None) == (LINES, [])
    if is_table:
        for column, found in ((None, "label, text.*--column"), ("tex", "'tex'.*'text'")):
            with pytest.raises(ValueError, match=found):
                read_texts(path, column=column)
    else:
        with pytest.raises(ValueError, match=r"plain text.*--column"):
            read_texts(path, column="text")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        *(("a", start, "not UTF-8|a binary file") for start in (b"PK\x03\x04.", b"%PDF-1.7")),
        ("a.txt", "a dog\n".encode("utf-16"), "is not UTF-8"),
        ("a.txt.gz", gzip.compress(PLAIN)[:-20], "text: .*: Compressed file ended"),
    ],
)
def test_what_holds_no_texts_is_named_in_one_line(tmp_path, name, content, message):
    (path := tmp_path / name).write_bytes(content)
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
        ("a.jsonl", (_lines({"text": text, "id": 10**20} for text in SENTENCES), SENTENCES)),
        ("a.jsonl", (_lines([*TEXTS, {"text": None}, {}]) + "\n\n", SENTENCES)),
    ],
)
def test_a_table_gives_the_texts_that_stand_in_it(tmp_path, name, given):
    content, texts = given
    (path := tmp_path / name).write_bytes(content.encode())
    assert read_texts(path, column="text")[0] == texts


@pytest.mark.parametrize(("rows", "column"), [(SENTENCES, "0"), ([[1, t] for t in SENTENCES], "1")])
def test_columns_without_names_are_counted(tmp_path, rows, column):
    (tmp_path / "whole.json").write_text(json.dumps(rows))
    (tmp_path / "lines.jsonl").write_text(_lines(rows))
    for name in ("whole.json", "lines.jsonl"):
        assert read_texts(tmp_path / name, column=column) == (SENTENCES, [])


@pytest.mark.parametrize("column", [None, "text"])
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "id,text\n1,a\n2,b,c", "line 3 has 3 fields, the header 2"),
        ("a.csv", "id,text\n1,a\n\n2", "line 4 has 1 fields, the header 2"),
        ("a.csv", 'id,text\n1,"a\n2,b\n', "line 3: unexpected end of data"),
        ("a.csv", "id;text\n1;a", "'id;text' is one column; save the table with commas"),
        ("a.csv", 'id;text\n"a; b";1', "'id;text' is one column; save the table with commas"),
        ("a.csv", "", "nothing in it"),
        ("a.tsv", "id\ttext\n1\ta\tb", "line 2 has 3 fields, the header 2"),
        ("a.tsv", 'id\ttext\n1\t"a\n2\tb"\n3\tc', "line 2 has tabs or line ends between two"),
        ("a.json", json.dumps({"text": dict(enumerate(SENTENCES))}), "this is one JSON object"),
        ("a.jsonl", '{"text": "a"}\n{"text": "b"', "line 2 is no JSON"),
        ("a.json", "\n".join(SENTENCES), "line 1 is no JSON"),
        ("a.json", json.dumps([*TEXTS, "a"]), "a JSON list of dict, str, expected one of objects"),
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
    for first in ("{curly} braces", "[1] a note"):
        (path := tmp_path / "a.txt").write_text("\n".join([first, *SENTENCES]))
        assert read_texts(path) == ([first, *SENTENCES], [])


def test_no_file_is_told_with_the_nearest_name_and_a_folder_as_one(tmp_path):
    (tmp_path / "tickets.csv").write_text("text\na")
    with pytest.raises(FileNotFoundError, match=r"ticket\.csv, did you mean 'tickets\.csv'"):
        read_columns(tmp_path / "ticket.csv")
    with pytest.raises(FileNotFoundError, match="is a folder"):
        read_texts(tmp_path)


def test_the_folder_of_a_data_set_is_a_table(tmp_path):
    data = Dataset.from_dict({"text": SENTENCES, "label": [*range(39), -1]})
    data = data.cast_column("label", ClassLabel(names=[f"c{i}" for i in range(39)]))
    data.save_to_disk(tmp_path / "one")
    DatasetDict(train=data, test=data).save_to_disk(tmp_path / "two")
    (tmp_path / "two" / "test" / "state.json").write_text("{")
    with pytest.raises(ValueError, match=r"text: .*two/test"):
        read_columns(tmp_path / "two" / "test")
    for folder in ("one", "two/train"):
        table = read_columns(tmp_path / folder, ["label", "text"])
        assert [*table] == ["label", "text"] and table.text.tolist() == SENTENCES
        assert table.label[2] == "c1" and "lines 40" in empty_lines(table, "label")


def test_rows_have_the_lines_that_they_begin_on_and_empty_ones_are_counted(tmp_path):
    (path := tmp_path / "a.csv").write_text('text,label\n"two\nlines",1\n\n  ,2\nNA,\nnone,4\n')
    table = read_columns(path, ["text", "label"])
    assert table.index.tolist() == [2, 5, 6, 7] and table.index.name == "line"
    assert table.text.tolist()[2:] == ["NA", "none"]  # words, until somebody says otherwise
    assert empty_lines(table, "text") == "1 of 4 rows have no text (lines 5)"
    assert empty_lines(table, "label") == "1 of 4 rows have no label (lines 6)"
    texts, notes = read_texts(path, column="text")
    assert texts == ["two\nlines", "NA", "none"] and "lines 5" in notes[0]
    lines = path.with_suffix(".jsonl")
    lines.write_text('{"text": "a"}\n\n{"label": 2}\n{"text": null}\n{"text": ""}')
    table = read_columns(lines, ["text"])
    assert table.index.tolist() == [1, 3, 4, 5] and "lines 3, 4, 5" in empty_lines(table, "text")
    assert empty_lines(read_columns(path)[:0], "text") == ""


def test_a_number_is_no_text_and_names_its_line(tmp_path):
    (path := tmp_path / "a.jsonl").write_text('{"text": "a"}\n\n{"text": 2.5}')
    with pytest.raises(ValueError, match=r"column text: 2\.5 in line 3"):
        read_texts(path, column="text")


def test_columns_of_one_name_and_columns_that_are_the_index(tmp_path):
    (path := tmp_path / "a.csv").write_text("text,text,,\na,b,,\n")
    with pytest.raises(ValueError, match=r"2 columns .* named text"):
        read_texts(path, column="text")
    TABLE.set_index("text").to_parquet(path := tmp_path / "a.parquet")
    assert read_texts(path, column="text") == (LINES, [])
    TABLE.set_index(["label", "text"]).assign(k=1).to_parquet(path)
    assert read_columns(path, ["text", "label"]).shape == (40, 2)


@pytest.mark.parametrize("mark", ["1\t{}", "<p>{}</p>", "00:01 --> 00:02 {}", '{{"text": "{}"}}'])
def test_markup_and_tables_without_their_ending_are_no_sentences(tmp_path, mark):
    path = tmp_path / "a.srt"
    for marked in (15, 25):  # of 40
        texts = [mark.format(t) if i < marked else t for i, t in enumerate(SENTENCES)]
        path.write_text("\n".join(texts))
        if marked < 20:
            assert read_texts(path) == (texts, [])
        else:
            with pytest.raises(ValueError, match=f"{marked} of 40 lines"):
                read_texts(path)


def _subtitles(i, text):
    return f"{i}\n00:00:{i:02},000 --> 00:00:{i:02},900\n{text}\n{text}\n"


@pytest.mark.parametrize(
    ("first", "block"),
    [
        ("", _subtitles),
        ("WEBVTT\n", lambda i, text: f"00:{i:02}.000 --> 00:{i:02}.900 align:start\n{text}\n"),
        ("[", lambda i, text: json.dumps({"text": text, "label": i}, indent=1) + ","),
        ("", lambda i, text: f"__label__{i} {text}"),
        ("", lambda i, text: f"| {i} | {text} |"),
        ("id,label,text", lambda i, text: f'{i},good,"{text}"'),
        ("id;text", lambda i, text: f"{i};{text}"),
        ("-DOCSTART- -X- O\n", lambda i, text: text.replace(" ", " NN O\n") + " NN B-PER\n"),
        ("", lambda i, text: text.replace(" ", " NOUN 3 _\n") + " NOUN 0 _\n"),
    ],
)
def test_files_of_other_kinds_are_no_sentences_under_any_name(tmp_path, first, block):
    lines = [first, *(block(i, text) for i, text in enumerate(SENTENCES))]
    (path := tmp_path / "a.txt").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_texts(path)
