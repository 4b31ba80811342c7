"""GLUE from a folder in its own layout, or from the hub.

References
----------
Wang et al. (2018), *GLUE: A Multi-Task Benchmark and Analysis Platform for Natural Language
Understanding*.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shrink_utils.paths import data_dir
from shrink_utils.text.corpora import labelled_columns, lines_of
from shrink_utils.text.sources import configured_folder, hub_revision

HUB_ID = "nyu-mll/glue"
PAIR = ("sentence1", "sentence2")
ENTAILED = ("entailment", "not_entailment")


@dataclass(frozen=True)
class GlueFormat:
    """Where a task's fields stand in GLUE's files and on the hub."""

    folder: str
    columns: tuple[str, ...]  # in the file: text, pair (if any), label; numbers when no header
    hub_columns: tuple[str, ...]
    labels: tuple[str, ...] = ()  # the file's words for the labels 0, 1, …; () when it has numbers
    validation: str = "dev"
    hub_validation: str = "validation"
    skip_short_rows: bool = False

    @property
    def has_header(self) -> bool:
        return not self.columns[0].isdigit()


GLUE = {
    "cola": GlueFormat("CoLA", ("3", "1"), ("sentence",)),
    "sst2": GlueFormat("SST-2", ("sentence", "label"), ("sentence",)),
    "mrpc": GlueFormat("MRPC", ("#1 String", "#2 String", "Quality"), PAIR),
    "qqp": GlueFormat(
        "QQP",
        ("question1", "question2", "is_duplicate"),
        ("question1", "question2"),
        skip_short_rows=True,  # QQP's train.tsv has some broken rows, which its readers leave out
    ),
    "stsb": GlueFormat("STS-B", (*PAIR, "score"), PAIR),
    "mnli": GlueFormat(
        "MNLI",
        (*PAIR, "gold_label"),
        ("premise", "hypothesis"),
        labels=("entailment", "neutral", "contradiction"),
        validation="dev_matched",
        hub_validation="validation_matched",
    ),
    "qnli": GlueFormat(
        "QNLI", ("question", "sentence", "label"), ("question", "sentence"), labels=ENTAILED
    ),
    "rte": GlueFormat("RTE", (*PAIR, "label"), PAIR, labels=ENTAILED),
    "wnli": GlueFormat("WNLI", (*PAIR, "label"), PAIR),
}


def glue_dir() -> Path | None:
    """Folder in GLUE's layout: ``SHRINK_GLUE_DIR``, else ``<data>/raw/glue``; None without one.

    Raises ``FileNotFoundError`` if ``SHRINK_GLUE_DIR`` is set and is not a folder.
    """
    if configured := configured_folder("SHRINK_GLUE_DIR"):
        return configured
    local = data_dir() / "raw" / "glue"
    return local if local.is_dir() else None


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
        "train": _read_tsv(name, form, root / form.folder / "train.tsv"),
        "validation": _read_tsv(name, form, root / form.folder / f"{form.validation}.tsv"),
    }


def _read_tsv(name: str, form: GlueFormat, path: Path) -> dict[str, list]:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: GLUE's file for task {name!r} is missing")
    # Quotation marks are text in GLUE's files and often unbalanced: split at tabs, nothing more.
    lines = lines_of(path.read_bytes())
    places = _places(form, lines[0].split("\t"), path)
    needed, first, rows = max(places) + 1, int(form.has_header), []
    for number, line in enumerate(lines[first:], first + 1):
        fields, where = line.split("\t"), f"{path}, line {number}"
        if len(fields) >= needed:
            *texts, label = (fields[place] for place in places)
            rows.append((*texts, _label(name, form, label, where)))
        elif not form.skip_short_rows:
            raise ValueError(f"{where}: {len(fields)} fields, expected at least {needed}")
    return labelled_columns(rows)


def _places(form: GlueFormat, header: list[str], path: Path) -> list[int]:
    """Where the columns of ``form`` stand in a row."""
    if not form.has_header:
        return [int(column) for column in form.columns]
    if absent := [column for column in form.columns if column not in header]:
        raise ValueError(f"{path}: the header {header} has no column {', '.join(absent)}")
    return [header.index(column) for column in form.columns]


def _label(name: str, form: GlueFormat, word: str, where: str) -> int | float:
    try:
        if name == "stsb":
            return float(word)
        return form.labels.index(word) if form.labels else ("0", "1").index(word)
    except ValueError:
        expected = "a number" if name == "stsb" else ", ".join(form.labels or ("0", "1"))
        raise ValueError(f"{where}: label {word!r}, expected {expected}") from None


def _from_hub(name: str, form: GlueFormat) -> dict[str, dict[str, list]]:
    try:
        import datasets

        hub = datasets.load_dataset(HUB_ID, name, revision=hub_revision(HUB_ID))
    except Exception as error:  # the hub's client raises errors of several libraries
        raise ConnectionError(
            f"could not read GLUE task {name!r} from the hub ({type(error).__name__}). Set "
            f"SHRINK_GLUE_DIR to a folder that holds {form.folder}/train.tsv, or run profile quick "
            "or smoke, which need no hub"
        ) from error
    wanted = (*form.hub_columns, "label")
    splits = {"train": hub["train"], "validation": hub[form.hub_validation]}
    return {
        split: labelled_columns(list(zip(*(rows[column] for column in wanted), strict=True)))
        for split, rows in splits.items()
    }
