"""Somebody's texts and labels out of a file, as they stand there, with the lines they stand on."""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import pandas as pd

from shrink_utils.names import unknown_name
from shrink_utils.sources import lines_of

DECOMPRESSED = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
JSON_ENDINGS = (".json", ".jsonl", ".ndjson")
NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]|\A%PDF")
LOOKED_AT = 4096  # bytes
# Markup, JSON, the row of a table, subtitles and their numbers, a label; a word with its tags.
NO_SENTENCE = re.compile(
    r"\s*([<{\[|]|__label__|\"\w+\":|\d+[,;|][^\s\d]|[\d\s:.,}\]]*\Z)|.*(\t|-->)"
    r"|\S+ .*\b(O|_|[BIES]-[A-Z]+)\Z"
)
LINES_NAMED = 5


def read_columns(path: Path, columns: Sequence[str] = ()) -> pd.DataFrame:
    """Columns of a table, as strings or as the file has them, with the lines of their rows.

    Parameters
    ----------
    path
        CSV, TSV or JSON (a list, or lines), told by their names; Parquet; each plain or compressed
        by gzip, bzip2 or xz; or the folder that a data set of Hugging Face was saved to.
    columns
        Their names, in the order wanted; all columns when empty. Of a list of lists they are "0",
        "1", …

    Returns
    -------
    DataFrame
        Its index, ``line``, says where a row begins in the file: a line of CSV, TSV and JSON lines,
        else a row, both counted from 1. What is missing or empty is NaN: see `empty_lines`.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It is no table, or not UTF-8; a line has more or fewer fields than the header; or a column
        is not there, or there twice.
    """
    return _chosen(_read_file(path), path, columns)


def read_texts(path: Path, *, column: str | None = None) -> tuple[list[str], list[str]]:
    """Texts of a file or of a pipe without the empty ones, and notes on what was read.

    Parameters
    ----------
    path
        UTF-8, one text per line; or a table of `read_columns`, whose errors it raises.
    column
        Where a table's texts stand.
    """
    found = _read_file(path)
    if isinstance(found, list) and not column:
        texts = [t.strip() for t in found if t.strip()]
        marked = (
            len(texts) if _have_header(texts) else sum(map(bool, map(NO_SENTENCE.match, texts)))
        )
        if 5 * marked > 2 * len(texts):  # of subtitles every second line, or every third, is text
            raise ValueError(
                f"text: {marked} of {len(texts)} lines of {path} are of a table, markup, JSON or "
                "subtitles: no sentences; name a table .csv, .tsv or .jsonl, or save its sentences"
            )
        return texts, []
    if not column:
        names = ", ".join(map(str, found.columns))
        raise ValueError(f"text: {path} has the columns {names}; name that of texts by --column")
    table = _chosen(found, path, [column])
    texts = table[column].dropna()
    for line, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"column {column}: {text!r} in line {line} of {path} is no text")
    empty = empty_lines(table, column)
    return texts.str.strip().tolist(), [f"{empty}: left out"] * bool(empty)


def _have_header(lines: list[str]) -> bool:
    """Whether lines begin with names of columns, or of subtitles, which all of them follow."""
    first = lines[0] if lines else ""
    counts = [(separator, first.count(separator)) for separator in ",;|" if " " not in first]
    table = any(n and all(t.count(by) >= n for t in lines) for by, n in counts)
    return table or first.startswith("WEBVTT")


def empty_lines(table: pd.DataFrame, column: str) -> str:
    """How many rows of `read_columns` have nothing in a column, and on which lines; or ""."""
    lines = table.index[table[column].isna()].tolist()
    named = ", ".join(map(str, lines[:LINES_NAMED])) + ", …" * (len(lines) > LINES_NAMED)
    return f"{len(lines)} of {len(table)} rows have no {column} (lines {named})" if lines else ""


def _chosen(table: pd.DataFrame | list[str], path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Columns by their names, with NaN where nothing stands."""
    if isinstance(table, list):
        told = (
            f"text: {path} is plain text, which has no columns; name a table .csv, .tsv or .jsonl"
        )
        raise ValueError(told + ", or leave out --column if every line is a text" * bool(columns))
    names = [str(name) for name in table.columns]
    for column in columns:
        if column not in names:
            raise unknown_name("column", "column", column, names)
        if names.count(column) > 1:
            raise ValueError(f"column: {names.count(column)} columns of {path} are named {column}")
    chosen = table.set_axis(names, axis=1)[[*columns] or names]
    return chosen.mask(chosen.map(lambda cell: isinstance(cell, str) and not cell.strip()))


def _read_file(path: Path) -> pd.DataFrame | list[str]:
    """A file's table, or its lines where it is plain text."""
    if path.is_dir():
        return _of_folder(path)
    if not path.exists():
        near = [p.name for p in path.parent.glob("*")] if path.parent.is_dir() else []
        near = [f", did you mean {name!r}?" for name in get_close_matches(path.name, near, n=1)]
        raise FileNotFoundError(f"text: no file {path}{''.join(near)}")
    content, ending = path.read_bytes(), path.suffix.lower()
    try:
        if ending in DECOMPRESSED:
            content, ending = DECOMPRESSED[ending](content), Path(path.stem).suffix.lower()
        if ending == ".parquet":
            table = pd.read_parquet(io.BytesIO(content))
            named = any(level is not None for level in table.index.names)
            return _numbered(table.reset_index() if named else table)
        text = content.decode("utf-8-sig")
        if NO_TEXT.search(content[:LOOKED_AT]):
            raise ValueError("this is a binary file; give text, CSV, TSV, JSON lines or Parquet")
        if separator := SEPARATORS.get(ending):
            return _csv(text) if separator == "," else _tsv(text)
        return _json(text) if ending in JSON_ENDINGS else lines_of(content)
    except UnicodeDecodeError as error:
        told = "save it as UTF-8; Parquet or a compressed file ends in .parquet, .gz, .bz2 or .xz"
        raise ValueError(f"text: {path} is not UTF-8 ({error}); {told}") from error
    except Exception as error:  # of csv, json, pyarrow and three ways to compress
        raise ValueError(f"text: {path}: {' '.join(str(error).split())}") from error


def _of_folder(path: Path) -> pd.DataFrame:
    """The rows of a data set that was saved to a folder."""
    if not (path / "state.json").is_file():
        raise FileNotFoundError(
            f"text: no file {path}; it is a folder: name a file in it, or one split of a data set"
        )
    from datasets import ClassLabel, Dataset  # seconds

    try:
        data = Dataset.load_from_disk(str(path))
    except Exception as error:  # of json, of pyarrow, of files that are not there
        raise ValueError(f"text: {path}: {' '.join(str(error).split())}") from error
    table = _numbered(data.to_pandas())
    for name, feature in data.features.items():
        if isinstance(feature, ClassLabel):  # numbers of names; -1 is no label
            table[name] = table[name].map(dict(enumerate(feature.names)))
    return table


def _numbered(table: pd.DataFrame, lines: Sequence[int] | None = None) -> pd.DataFrame:
    lines = range(1, len(table) + 1) if lines is None else lines
    return table.set_axis(pd.Index(lines, name="line"), axis=0)


def _csv(text: str, separator: str = ",", *, quoting: int = csv.QUOTE_MINIMAL) -> pd.DataFrame:
    """The table, all of strings; a ``ValueError`` names a line that does not have its fields."""
    first = text.strip().partition("\n")[0].strip()
    if not first:
        raise ValueError("there is nothing in it")
    if separator not in first and (wrong := set(",;|\t") & set(first)):
        right = "commas" if separator == "," else "tabs"
        wrong = " ".join(map(repr, sorted(wrong)))
        raise ValueError(f"{first!r} is one column; save the table with {right}, not {wrong}")
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    rows, before = [], 0  # each with the line that it begins on
    try:
        for row in reader:
            if row:
                rows.append((row, before + 1))
            before = reader.line_num
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error
    (header, _), *rows = rows
    for row, line in rows:
        if len(row) != len(header):
            raise ValueError(
                f"line {line} has {len(row)} fields, the header {len(header)}; a text that holds "
                'separators needs quotation marks, and those inside it doubled (""); or save the '
                "table as JSON lines"
            )
    table = pd.DataFrame([row for row, _ in rows], columns=header, dtype=object)
    return _numbered(table, [line for _, line in rows])


def _tsv(text: str) -> pd.DataFrame:
    """The table, read without quotation marks unless fields are quoted as in CSV throughout."""
    try:
        table = _csv(text, "\t")
    except ValueError:
        return _csv(text, "\t", quoting=csv.QUOTE_NONE)
    for line, *fields in table.itertuples(name=None):
        if any("\t" in field or "\n" in field for field in fields):
            raise ValueError(
                f"line {line} has tabs or line ends between two quotation marks, which may be one "
                "text or many; save the table as JSON lines"
            )
    return table


def _json(text: str) -> pd.DataFrame:
    """The rows of a list, or of JSON lines."""
    lines = None
    try:
        rows = json.loads(text)
        rows = rows if isinstance(rows, list | dict) else [rows]
    except ValueError:
        kept = {i: line for i, line in enumerate(text.split("\n"), 1) if line.strip()}
        rows, lines = [_json_line(line, i) for i, line in kept.items()], [*kept]
    if isinstance(rows, dict):
        raise ValueError("this is one JSON object, no table; save its texts as JSON lines")
    kinds = {type(row) for row in rows}
    if len(kinds) != 1 or not kinds <= {dict, list, str}:
        found = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nothing"
        raise ValueError(f"a JSON list of {found}, expected one of objects, of lists or of strings")
    return _numbered(pd.DataFrame(rows, dtype=object), lines)


def _json_line(line: str, number: int) -> object:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(
            f"line {number} is no JSON ({error}); save the table as one list, or an object per line"
        ) from error
