"""The diagnosis of one encoder: what it is called with, and its figure."""

import bz2
import gzip
import lzma
import re

import pandas as pd
import pytest

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


def test_a_folder_and_a_table_with_semicolons_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*; it is a folder"):
        read_texts(tmp_path)
    (path := tmp_path / "a.csv").write_text(TABLE.to_csv(index=False, sep=";"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"'label;text' is one column; save the table with commas"):
        read_texts(path, column="text")
