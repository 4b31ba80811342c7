"""Isotropy and contextuality of any encoder on any text: a table, a figure and a page by layer."""

import base64
import bz2
import csv
import gzip
import io
import json
import lzma
import platform
import re
import tempfile
from collections.abc import Sequence
from difflib import get_close_matches
from html import escape
from importlib.metadata import version
from itertools import count
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from shrink_utils.geometry import (
    anisotropy,
    avg_sim,
    effective_rank,
    intra_sim,
    iso_score,
    self_sim,
)
from shrink_utils.models import PINNED, WordBatch, load_encoder, word_states
from shrink_utils.models.states import MAX_LENGTH
from shrink_utils.names import unknown_name
from shrink_utils.paths import data_dir
from shrink_utils.study.figures import looks_of, use_house_style
from shrink_utils.study.matched_words import Layers
from shrink_utils.study.results import atomic_write
from shrink_utils.text.corpora import as_texts, stable_hash
from shrink_utils.text.sources import lines_of

LOCAL = (*PINNED, "tiny-random")  # encoders that need no hub

FEWEST_TEXTS = 30  # below this most words stand once and no self-similarity can be told
COMPRESSED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ": lzma.decompress}
BINARY = {
    b"PK\x03\x04": "an archive or an Office document",
    b"%PDF": "a PDF",
    b"ARROW1": "Arrow",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
}
SEPARATORS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
JSON_NAMES = (".json", ".jsonl", ".ndjson", ".ipynb")
# "[MASK] is a token" and "[[a page]]" begin a plain text.
LOOKS_LIKE_JSON = re.compile(r'\s*(\{\s*["}]|\[\s*["{\]]|\[\s*\[\s*("|\d+\s*,))')
ANGLES = ["AvgSim", "SelfSim − AvgSim", "IntraSim − null"]
SHARES = ["first score, raw", "first score, centred", "IsoScore"]


def check_folder(folder: Path) -> None:
    """Make a folder to write to, or raise an ``OSError`` that names it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise type(error)(f"out: {folder} cannot be written to ({error.strerror})") from error


def read_texts(path: Path, *, column: str | None = None) -> list[str]:
    """Texts of a file, or of a pipe: its lines that hold something, or a column of its table.

    Parameters
    ----------
    path
        UTF-8, one text per line; or a table: Parquet, a list in JSON, JSON lines, or CSV and TSV,
        which are told by their names. Either may be compressed by gzip, bzip2 or xz.
    column
        Where a table's texts stand; "0" is the first of a list of lists.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not UTF-8 or no such table, a line of it has more or fewer fields than its header,
        it has no such column, or holds too few texts to say anything.
    """
    if not path.exists() or path.is_dir():
        found = "is a folder: name a file in it" if path.is_dir() else "is not there"
        raise FileNotFoundError(f"text: no file {path}; it {found}")
    content, name = path.read_bytes(), path.name.lower()
    try:
        for mark, decompressed in COMPRESSED.items():
            if content.startswith(mark):
                content, name = decompressed(content), name.rpartition(".")[0]
        kind, table = _table_of(content, name)
        if table is None and column:
            raise ValueError(
                "plain text has no columns; leave out --column if every line is a text, or name a "
                "table .csv or .tsv, or save it as JSON lines"
            )
        texts = lines_of(content) if table is None else _column_of(table, kind, column)
    except UnicodeDecodeError as error:
        raise ValueError(f"text: {path} is not UTF-8 ({error}); save it as UTF-8") from error
    except Exception as error:  # of csv, json, pyarrow and three ways to compress
        raise ValueError(f"text: {path}: {' '.join(str(error).split())}") from error
    texts = [text.strip() for text in texts if text.strip()]
    if len(texts) < FEWEST_TEXTS:
        raise ValueError(
            f"text: {path} holds {len(texts)} lines with text; the measures need at least "
            f"{FEWEST_TEXTS}, one sentence per line"
        )
    return texts


def _table_of(content: bytes, name: str) -> tuple[str, pd.DataFrame | None]:
    """Which kind of table the bytes are, and the table; None of it for plain text."""
    for mark, binary in BINARY.items():
        if content.startswith(mark):
            raise ValueError(f"this is {binary}; save its sentences as UTF-8, one per line")
    if content.startswith(b"PAR1"):
        return "Parquet", pd.read_parquet(io.BytesIO(content))
    text = content.decode("utf-8-sig")
    if separator := SEPARATORS.get(Path(name).suffix):
        return ("CSV", _csv(text)) if separator == "," else ("TSV", _tsv(text))
    if name.endswith(JSON_NAMES) or LOOKS_LIKE_JSON.match(text):
        return "JSON", _json(text)
    return "plain text", None


def _csv(text: str, separator: str = ",", *, quoting: int = csv.QUOTE_MINIMAL) -> pd.DataFrame:
    """The table, all of strings; a ``ValueError`` names a line that does not have its fields."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter=separator, quoting=quoting, strict=True)
    try:
        header, *rows = [(row, reader.line_num) for row in reader if row] or [([], 0)]
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from error
    header = header[0]
    if len(header) == 1 and (wrong := set(",;|\t") & set(header[0])):
        right = "commas" if separator == "," else "tabs"
        raise ValueError(f"{header[0]!r} is one column; save the table with {right}, not {wrong}")
    for row, line in rows:
        if len(row) != len(header):
            raise ValueError(
                f"line {line} has {len(row)} fields, the header {len(header)}; a text that holds "
                'separators needs quotation marks, and those inside it doubled (""); or save the '
                "table as JSON lines"
            )
    return pd.DataFrame([row for row, _ in rows], columns=header, dtype=object)


def _tsv(text: str) -> pd.DataFrame:
    """The table, read without quotation marks unless fields are quoted as in CSV throughout."""
    try:
        table = _csv(text, "\t")
    except ValueError:
        return _csv(text, "\t", quoting=csv.QUOTE_NONE)
    for row, fields in enumerate(table.itertuples(index=False), 1):
        if any("\t" in field or "\n" in field for field in fields):
            raise ValueError(
                f"row {row} has tabs or line ends between two quotation marks, which may be one "
                "text or many; save the table as JSON lines"
            )
    return table


def _json(text: str) -> pd.DataFrame:
    """The rows of a list, or of JSON lines."""
    try:
        rows = json.loads(text)
        rows = rows if isinstance(rows, list | dict) else [rows]
    except ValueError:
        rows = [_json_line(line, i) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
    if isinstance(rows, dict):
        found = "a notebook" if "nbformat" in rows else "one JSON object"
        raise ValueError(f"this is {found}, no table; save its texts as JSON lines")
    kinds = {type(row) for row in rows}
    if len(kinds) != 1 or not kinds <= {dict, list, str}:
        found = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nothing"
        raise ValueError(f"a JSON list of {found}, expected one of objects, of lists or of strings")
    return pd.DataFrame(rows, dtype=object).rename(columns=str)


def _json_line(line: str, number: int) -> object:
    try:
        return json.loads(line)
    except ValueError as error:
        raise ValueError(
            f"line {number} is no JSON ({error}); save the table as one list, or an object per line"
        ) from error


def _column_of(table: pd.DataFrame, kind: str, column: str | None) -> list[str]:
    if column not in table:
        found = f"no column {column!r}; " if column else ""
        raise ValueError(
            f"{found}a {kind} table with the columns {', '.join(map(str, table))}: name the one of "
            "texts by --column"
        )
    return as_texts(table[column].dropna(), argument=f"column {column}")


def diagnose(
    model: str, texts: Sequence[str], *, max_length: int | None = None, min_count: int = 5
) -> pd.DataFrame:
    """How an encoder fills its space, layer by layer.

    Parameters
    ----------
    model : str
        A name of `load_encoder`, a hub id, or a local folder.
    texts : sequence of str
        Some hundred sentences.
    max_length : int or None
        Tokens read of a text; None: 128, or fewer where the encoder reads fewer.
    min_count : int
        In how many texts a word stands whose self-similarity counts.

    Returns
    -------
    DataFrame
        One row per layer, 0 the embeddings. Of words: ``AvgSim`` (pairs of different sentences),
        ``SelfSim − AvgSim`` and ``IntraSim − null`` (lengths matched); first anisotropy score
        ``raw`` and ``centred``, ``IsoScore`` (bias-corrected) and ``effective rank`` (centred).
        Its ``attrs`` hold the same of an isotropic Gaussian cloud (``null``), how many texts were
        ``cut`` at ``max_length``, and an ``identity`` of model, texts and options.

    Raises
    ------
    ValueError
        The name is nearly that of an encoder that is here: no hub is asked for it. Or there are no
        words in the texts: nothing but emoji or punctuation.
    FileNotFoundError
        See `load_encoder`.
    """
    is_typo = model not in LOCAL and get_close_matches(model.lower(), LOCAL, n=1, cutoff=0.75)
    if is_typo and "/" not in model and not Path(model).exists():
        raise unknown_name("model", "local encoder", model, LOCAL)
    encoder, texts = load_encoder(model, device="auto"), as_texts(texts)
    words = word_states(encoder, texts, max_length=max_length)
    if not words.word:
        raise ValueError(
            f"text: no word in {len(texts)} texts, such as {texts[0]!r}; the measures are of words"
        )
    rows = [_of_layer(x, words, min_count) for x in words.vectors]
    noise = torch.randn(words.vectors.shape[1:], generator=torch.Generator().manual_seed(0))
    # Neither "." nor a file's name says which model and which texts these are.
    place = Path(model).resolve() if Path(model).exists() else model
    identity = stable_hash(str(place), texts, max_length, min_count)
    max_length = max_length or min(MAX_LENGTH, encoder.max_length)
    tokens = encoder.tokenizer(texts, verbose=False)["input_ids"]
    table = pd.DataFrame(rows).rename_axis("layer")
    table.attrs["null"] = _of_layer(noise, words, min_count)
    table.attrs |= {"max_length": max_length, "cut": sum(len(ids) > max_length for ids in tokens)}
    table.attrs["identity"] = f"{identity:016x}"
    return table


def _of_layer(x: Tensor, words: WordBatch, min_count: int) -> dict[str, float]:
    """The measures of one layer's words, (n, d)."""
    of_words = self_sim(x, words.word, sentences=words.sentence, min_count=min_count)
    thinned = Layers(x[None], words.sentence).thinned().words[0]
    return {
        "AvgSim": avg_sim(x, groups=words.sentence).value,
        "SelfSim − AvgSim": of_words.corrected,
        "IntraSim − null": intra_sim(x, words.sentence).excess,
        "first score, raw": float(anisotropy(x, k=1)[0]),
        "first score, centred": float(anisotropy(x, k=1, center=True)[0]),
        "IsoScore": iso_score(thinned, bias_corrected=True),
        "effective rank": effective_rank(thinned),
    }


def diagnosis_figure(table: pd.DataFrame, *, title: str) -> Figure:
    """Two panels over the layers of `diagnose`: mean cosines, and shares of variance."""
    fig, axes = plt.subplots(1, 2, figsize=(10, 3.8), sharex=True)
    for ax, columns, label in zip(
        axes, (ANGLES, SHARES), ("mean cosine", "share of variance, or score"), strict=True
    ):
        for column, style in looks_of(columns).items():
            ax.plot(table.index, table[column], label=column, **style)
        ax.set(xlabel="layer (0: embeddings)", ylabel=label)
        ax.axhline(0, color="0.6", lw=1)
        # Above the panel: any place inside is a curve's of some encoder.
        ax.legend(fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    fig.suptitle(title, x=0.01, ha="left", fontsize="medium")
    return fig


def file_name(model: str) -> str:
    """The parts of a model's path or hub id, as the hub's cache joins them; no two share one."""
    parts = [part for part in Path(model).parts if part not in (".", "..", "/")]
    return "--".join(parts or [Path(model).resolve().name])


def write_diagnosis(
    table: pd.DataFrame, folder: Path, *, name: str, title: str, command: str = ""
) -> list[Path]:
    """Write ``diagnose-<name>.csv``, ``.png`` and a page, ``.html``; returns their paths.

    Files of that name of another diagnosis, by its title and identity, stay: a number tells the new
    ones apart.
    """
    use_house_style()
    figure, picture = diagnosis_figure(table, title=title), io.BytesIO()
    try:
        figure.savefig(picture, format="png")
    finally:
        plt.close(figure)  # else a notebook would show it
    page = diagnosis_page(table, picture.getvalue(), title=title, command=command)
    head = page.partition("</title>")[0]
    names = (f"diagnose-{name}" + (f"-{n}" if n > 1 else "") for n in count(1))
    for stem in names:
        paths = [folder / f"{stem}{suffix}" for suffix in (".csv", ".png", ".html")]
        if not paths[2].is_file() or paths[2].read_text(encoding="utf-8").startswith(head):
            break
    with (
        atomic_write(paths[0]) as csv,
        atomic_write(paths[1]) as png,
        atomic_write(paths[2]) as html,
    ):
        table.to_csv(csv, float_format="%.6f")
        png.write_bytes(picture.getvalue())
        html.write_text(page, encoding="utf-8")
    return paths


def diagnosis_page(table: pd.DataFrame, picture: bytes, *, title: str, command: str) -> str:
    """One HTML page that needs no other file: figure, measures, nulls, recorded encoders."""
    null = pd.DataFrame([{"of": "isotropic Gaussian", **table.attrs["null"]}])
    shown = [table.assign(of="this encoder").reset_index(), null]
    recorded = data_dir() / "reference" / "models" / "layers.csv"
    if recorded.is_file():
        known = pd.read_csv(recorded).rename(columns={"model": "of"})
        shown.append(known[["of", "layer", *table.columns]])
    measures = pd.concat(shown)[["of", "layer", *table.columns]]
    measures["layer"] = measures.layer.astype("Int64")
    rows = measures.to_html(index=False, border=0, float_format="{:.3f}".format, na_rep="")
    packages = ("torch", "transformers", "numpy")
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    image = base64.b64encode(picture).decode()
    return f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="diagnosis" content="{table.attrs.get("identity", "")}"><title>{escape(title)}</title>
<style>body {{font: 16px sans-serif; margin: 2em auto; max-width: 70em}} img {{max-width: 100%}}
td, th {{padding: .1em .8em; text-align: right}} code {{background: #eee}}</style>
<h1>{escape(title)}</h1><img alt="The measures by layer" src="data:image/png;base64,{image}">
<p>The isotropic Gaussian is the null: a cloud of the same size without any structure, with the same
words and sentences. The recorded encoders read 600 sentences of the study.</p>
{rows}<p><code>{escape(command)}</code></p>
<p>Python {platform.python_version()}, {versions}</p></html>
"""
