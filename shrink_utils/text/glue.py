"""GLUE from a folder in its own layout, or from the hub.

References
----------
Wang et al. (2018), *GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language
Understanding*.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shrink_utils.paths import data_dir
from shrink_utils.sources import hub_revisions, lines_of

HUB_ID = "nyu-mll/glue"
PAIR = ("sentence1", "sentence2")
ENTAILED = ("entailment", "not_entailment")


@dataclass(frozen=True)
class _GlueFormat:
    """Where a task's fields stand in GLUE's files and on the hub."""

    folder: str
    columns: tuple[str | int, ...]  # in the file: text, pair (if any), label; places if no header
    hub_columns: tuple[str, ...] = ()  # of the texts; () where they are called as in the file
    labels: tuple[str, ...] = ("0", "1")  # the file's words for 0, 1, …; () for a regression
    matched: str = ""  # what the names of the validation split end in
    skip_short_rows: bool = False


GLUE = {
    "cola": _GlueFormat("CoLA", (3, 1), ("sentence",)),
    "sst2": _GlueFormat("SST-2", ("sentence", "label")),
    "mrpc": _GlueFormat("MRPC", ("#1 String", "#2 String", "Quality"), PAIR),
    # QQP's train.tsv has some broken rows, which its readers leave out.
    "qqp": _GlueFormat("QQP", ("question1", "question2", "is_duplicate"), skip_short_rows=True),
    "stsb": _GlueFormat("STS-B", (*PAIR, "score"), labels=()),
    "mnli": _GlueFormat(
        "MNLI",
        (*PAIR, "gold_label"),
        ("premise", "hypothesis"),
        labels=("entailment", "neutral", "contradiction"),
        matched="_matched",
    ),
    "qnli": _GlueFormat("QNLI", ("question", "sentence", "label"), labels=ENTAILED),
    "rte": _GlueFormat("RTE", (*PAIR, "label"), labels=ENTAILED),
    "wnli": _GlueFormat("WNLI", (*PAIR, "label")),
}


def glue_dir() -> Path | None:
    """Folder in GLUE's layout: ``SHRINK_GLUE_DIR``, else ``<data>/raw/glue``; None without one.

    Raises ``FileNotFoundError`` if ``SHRINK_GLUE_DIR`` is set and is not a folder.
    """
    configured = os.environ.get("SHRINK_GLUE_DIR")
    folder = Path(configured) if configured else data_dir() / "raw" / "glue"
    if configured and not folder.is_dir():
        raise FileNotFoundError(f"SHRINK_GLUE_DIR: {configured} is not a folder")
    return folder if folder.is_dir() else None


def read_glue(name: str) -> dict[str, dict[str, list]]:
    """Training and validation rows of a GLUE task, one of `GLUE`.

    Returns
    -------
    dict
        ``{"train": columns, "validation": columns}``, each with the lists ``text``, ``text_pair``
        (None in every row of a single-sentence task) and ``label`` (int; float for ``stsb``).
        MNLI's validation split is the matched one.

    Raises
    ------
    FileNotFoundError
        The task's folder lacks a file.
    ValueError
        A row of a file is short or its label is not one of the task's; the message names the line.
    ConnectionError
        There is no local folder of the task and the hub cannot be reached.
    """
    form, root = GLUE[name], glue_dir()
    if root is None or not (root / form.folder).is_dir():
        return _from_hub(name, form)
    return {
        "train": _read_tsv(form, root / form.folder / "train.tsv"),
        "validation": _read_tsv(form, root / form.folder / f"dev{form.matched}.tsv"),
    }


def _read_tsv(form: _GlueFormat, path: Path) -> dict[str, list]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: GLUE's file is missing")
    # Quotation marks are text in GLUE's files and often unbalanced: split at tabs, nothing more.
    header, *lines = [line.split("\t") for line in lines_of(path.read_bytes())]
    places, first = form.columns, 2
    if isinstance(places[0], int):  # there is no header
        lines, first = [header, *lines], 1
    elif absent := [column for column in places if column not in header]:
        raise ValueError(f"{path}: the header {header} has no column {', '.join(absent)}")
    else:
        places = [header.index(column) for column in places]
    rows = []
    for number, fields in enumerate(lines, first):
        where, needed = f"{path}, line {number}", max(places) + 1
        if len(fields) >= needed:
            *texts, label = (fields[place] for place in places)
            rows.append((*texts, _label(form, label, where)))
        elif not form.skip_short_rows:
            raise ValueError(f"{where}: {len(fields)} fields, expected at least {needed}")
    return labelled_columns(rows)


def _label(form: _GlueFormat, word: str, where: str) -> int | float:
    try:
        return form.labels.index(word) if form.labels else float(word)
    except ValueError:
        expected = ", ".join(form.labels) or "a number"
        raise ValueError(f"{where}: label {word!r}, expected {expected}") from None


def _from_hub(name: str, form: _GlueFormat) -> dict[str, dict[str, list]]:
    try:
        import datasets

        hub = datasets.load_dataset(HUB_ID, name, revision=hub_revisions().get(HUB_ID))
    except Exception as error:  # the hub's client raises errors of several libraries
        raise ConnectionError(
            f"could not read GLUE task {name!r} from the hub ({type(error).__name__}). Set "
            f"SHRINK_GLUE_DIR to a folder that holds {form.folder}/train.tsv, or run profile quick "
            "or smoke, which need no hub"
        ) from error
    splits = {"train": hub["train"], "validation": hub[f"validation{form.matched}"]}
    columns = {
        k: [v[c] for c in (*(form.hub_columns or form.columns[:-1]), "label")]
        for k, v in splits.items()
    }
    return {k: labelled_columns(list(zip(*v, strict=True))) for k, v in columns.items()}


def labelled_columns(rows: Sequence[tuple]) -> dict[str, list]:
    """The columns of rows (text, label) or (text, second text, label)."""
    return {
        "text": [row[0] for row in rows],
        "text_pair": [row[1] if len(row) == 3 else None for row in rows],
        "label": [row[-1] for row in rows],
    }
