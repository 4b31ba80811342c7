"""Labelled tasks under one face: a train and a validation split with text, text_pair and label.

Six are made from the rated snippets: nothing to fetch but one small archive. Every split of these
is by document, four fifths to train and one to validate, and documents that share a text (an
editorial reprinted, "I love it!" in two reviews) go to the same side: no text of the validation
split was seen in training. All choices are hashes of what is chosen from, so they are the same in
every process and with every version of every library.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from shrink_utils.names import known_name
from shrink_utils.sources import data_dir, hub_revisions, lines_of, results_dir
from shrink_utils.text.corpora import (
    ALL,
    _Snippet,
    check_maximum,
    hash_order,
    read_snippets,
    stable_hash,
    text_key,
)

if TYPE_CHECKING:  # datasets is loaded with the first rows, not with a task's name
    from datasets import DatasetDict


OWN = "own/"  # begins the name of a task that `study.own_task` made of somebody's file
MIN_RATING = 0.5
MIN_WORDS = 5
VALIDATION_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What a task is.

    ``metrics`` are out of "accuracy", "f1", "macro_f1", "matthews" and "spearman", the task's own
    first. ``build`` makes the columns of both splits, from ``vader_sentiment`` or from somebody's
    file; None for a task of GLUE.
    """

    name: str
    metrics: tuple[str, ...]
    label_names: tuple[str, ...]  # () for a regression
    is_pair: bool = False
    build: Callable[[], dict[str, dict[str, list]]] | None = field(default=None, repr=False)

    @property
    def offline(self) -> bool:
        """Whether it needs neither GLUE nor the hub."""
        return self.build is not None

    @property
    def is_regression(self) -> bool:
        return not self.label_names

    @property
    def n_labels(self) -> int:
        """Number of classes; 1, the single output, for a regression."""
        return len(self.label_names) or 1


def _spec(name: str, metrics: str, labels: str = "", **options: object) -> TaskSpec:
    return TaskSpec(
        name=name, metrics=tuple(metrics.split()), label_names=tuple(labels.split()), **options
    )


def _sentiment(source: str) -> dict[str, dict[str, list]]:
    """Is a snippet positive (1) or negative (0)? The sign of its mean rating, where |rating| ≥ 0.5.

    Returns ``{"train": columns, "validation": columns}`` with ``text``, ``text_pair``, ``label``.
    """
    snippets = [s for s in read_snippets(source) if abs(s.rating) >= MIN_RATING]
    return {
        side: _labelled_columns([(s.text, int(s.rating > 0)) for s in rows])
        for side, (rows, _) in _split(snippets).items()
    }


def _word_order() -> dict[str, dict[str, list]]:
    """Is a sentence as it was written (1), or were two neighbouring words of it swapped (0)?

    Sentences of editorials with at least five words; every second one, in hashed order, is swapped.

    Notes
    -----
    After the bigram-shift task of Conneau et al. (2018), *What you can cram into a single vector*.
    The first and the last word stay, and only words without punctuation that differ are swapped,
    since a capital or a full stop in the wrong place would give the answer away; a sentence without
    such a pair is left out of both classes.
    """
    columns = {}
    for side, (snippets, _) in _split(read_snippets("editorials")).items():
        texts = [s.text for s in snippets]
        swappable = [(text, places) for text in texts if (places := _swappable(text.split()))]
        rows = []
        for rank, i in enumerate(hash_order(len(swappable), "word_order", side)):
            text, places = swappable[i]
            words = text.split()
            if rank % 2 == 0:
                at = places[stable_hash("swap", text) % len(places)]
                words[at], words[at + 1] = words[at + 1], words[at]
            rows.append((" ".join(words), rank % 2))
        columns[side] = _labelled_columns(rows)
    return columns


def _coherence() -> dict[str, dict[str, list]]:
    """Does the second sentence follow the first in one editorial (1), or come from another one (0)?

    Of all pairs of consecutive sentences every second one, in hashed order, has its second sentence
    replaced by the second sentence of a pair of another editorial of the same split.
    """
    columns = {}
    for side, (snippets, groups) in _split(read_snippets("editorials")).items():
        pairs = [
            (first.text, second.text, group)
            for first, second, group in zip(snippets, snippets[1:], groups, strict=False)
            if first.document == second.document and second.position == first.position + 1
        ]
        rows = []
        for rank, i in enumerate(hash_order(len(pairs), "coherence", side)):
            first, second, group = pairs[i]
            if rank % 2 == 0:
                draws = (stable_hash("stranger", first, second, n) % len(pairs) for n in count())
                second = next(pairs[j][1] for j in draws if pairs[j][2] != group)
            rows.append((first, second, rank % 2))
        columns[side] = _labelled_columns(rows)
    return columns


def _swappable(words: list[str]) -> list[int]:
    """Positions of inner words that may change places with their right neighbour."""
    if len(words) < MIN_WORDS:
        return []
    return [
        i
        for i in range(1, len(words) - 2)
        if words[i].isalnum()
        and words[i + 1].isalnum()
        and words[i].casefold() != words[i + 1].casefold()
    ]


def _split(snippets: list[_Snippet]) -> dict[str, tuple[list[_Snippet], np.ndarray]]:
    """Snippets and the group of each, by side; a group never stands on both.

    Documents that share a text, directly or by others, are one group.
    """
    _, documents = np.unique([s.document for s in snippets], return_inverse=True)
    _, texts = np.unique([text_key(s.text) for s in snippets], return_inverse=True)
    groups = linked(documents, texts)[documents]
    validation, rows = set(), 0
    sizes = np.bincount(groups)
    for group in hash_order(len(sizes), "split", snippets[0].source):
        if rows >= VALIDATION_SHARE * len(snippets):
            break
        validation.add(group)
        rows += sizes[group]
    held_out = np.isin(groups, list(validation))
    return {
        side: ([snippets[i] for i in np.flatnonzero(mask)], groups[mask])
        for side, mask in (("train", ~held_out), ("validation", held_out))
    }


def linked(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The group of each of the first things: of what pairs (m,) link, directly or by others."""
    n = first.max() + 1
    size = n + second.max() + 1  # a bipartite graph
    graph = coo_array((np.ones(len(first)), (first, n + second)), shape=(size, size))
    return connected_components(graph, directed=False)[1][:n]


TASKS = {
    spec.name: spec
    for spec in (
        *(
            _spec(
                f"sentiment_{s}", "accuracy f1", "negative positive", build=partial(_sentiment, s)
            )
            for s in ALL
        ),
        _spec("word_order", "matthews accuracy", "swapped acceptable", build=_word_order),
        _spec("coherence", "accuracy f1", "unrelated consecutive", is_pair=True, build=_coherence),
        _spec("cola", "matthews accuracy", "unacceptable acceptable"),
        _spec("mrpc", "accuracy f1", "not_equivalent equivalent", is_pair=True),
        _spec("stsb", "spearman", is_pair=True),
    )
}


def task_spec(name: str) -> TaskSpec:
    """The description of a task; an unknown name is a ``ValueError`` with the nearest one."""
    if name.startswith(OWN):
        folder = _own_folder(name)
        about = json.loads((folder / "task.json").read_text(encoding="utf-8"))
        shape = {key: tuple(about[key]) for key in ("metrics", "label_names")}
        build = partial(_own_columns, folder)
        return TaskSpec(name=name, is_pair=about["is_pair"], build=build, **shape)
    return TASKS[known_name("name", "task", name, TASKS)]


def _own_folder(name: str) -> Path:
    """Where the rows of somebody's own task are: every process that trains finds them."""
    return results_dir() / "own" / "tasks" / name.removeprefix(OWN)


def _own_columns(folder: Path) -> dict[str, dict[str, list]]:
    import pandas as pd

    tables = {side: pd.read_parquet(folder / f"{side}.parquet") for side in ("train", "validation")}
    names = ["text", "text_pair", "label"]
    return {side: table[names].to_dict("list") for side, table in tables.items()}


def load_task(
    name: str, *, max_train: int | None = None, max_eval: int | None = None, seed: int = 0
) -> DatasetDict:
    """Load a task.

    Parameters
    ----------
    name
        A key of `TASKS`.
    max_train, max_eval
        At most so many rows of a split; all of them, in the order of the file, when None.
    seed
        Chooses the training rows and their order when ``max_train`` is given. The validation rows
        are the same for every seed, so that seeds are compared on one set.

    Returns
    -------
    datasets.DatasetDict
        Splits ``train`` and ``validation`` with columns ``text``, ``text_pair`` (None where the
        task is of single sentences) and ``label`` (a `ClassLabel`; float for a regression).

    Raises
    ------
    ValueError
        Unknown task; a maximum below 1.
    ConnectionError, FileNotFoundError
        The task's source cannot be had; see `fetch` and `_read_glue`.

    Examples
    --------
    >>> rows = load_task("sentiment_movies", max_train=8, max_eval=4)
    >>> len(rows["train"]), len(rows["validation"])
    (8, 4)
    """
    from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

    spec = task_spec(name)
    check_maximum("max_train", max_train, "rows")
    check_maximum("max_eval", max_eval, "rows")
    columns = spec.build() if spec.build else _read_glue(name)
    label = Value("float32") if spec.is_regression else ClassLabel(names=list(spec.label_names))
    features = Features({"text": Value("string"), "text_pair": Value("string"), "label": label})
    splits = DatasetDict(
        {split: Dataset.from_dict(rows, features=features) for split, rows in columns.items()}
    )
    for split, most, salt in (("train", max_train, [seed]), ("validation", max_eval, [])):
        if most is not None:
            order = hash_order(len(splits[split]), name, split, *salt)
            splits[split] = splits[split].select(order[:most])
    return splits


# --- GLUE (Wang et al. 2018) from a folder in its own layout, or from the hub ---------------------

HUB_ID = "nyu-mll/glue"
PAIR = ("sentence1", "sentence2")


@dataclass(frozen=True)
class _GlueFormat:
    """Where a task's fields stand in GLUE's files and on the hub."""

    folder: str
    columns: tuple[str | int, ...]  # in the file: text, pair (if any), label; places if no header
    hub_columns: tuple[str, ...]  # of the texts
    labels: tuple[str, ...] = ("0", "1")  # the file's words for 0, 1, …; () for a regression


GLUE = {
    "cola": _GlueFormat("CoLA", (3, 1), ("sentence",)),
    "mrpc": _GlueFormat("MRPC", ("#1 String", "#2 String", "Quality"), PAIR),
    "stsb": _GlueFormat("STS-B", (*PAIR, "score"), PAIR, labels=()),
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


def _read_glue(name: str) -> dict[str, dict[str, list]]:
    """Training and validation rows of a GLUE task, one of `GLUE`.

    Returns
    -------
    dict
        ``{"train": columns, "validation": columns}``, each with the lists ``text``, ``text_pair``
        (None in every row of a single-sentence task) and ``label`` (int; float for ``stsb``).

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
        "validation": _read_tsv(form, root / form.folder / "dev.tsv"),
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
        if len(fields) < needed:
            raise ValueError(f"{where}: {len(fields)} fields, expected at least {needed}")
        *texts, label = (fields[place] for place in places)
        rows.append((*texts, _label(form, label, where)))
    return _labelled_columns(rows)


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
    columns = (*form.hub_columns, "label")
    return {
        split: _labelled_columns(
            list(zip(*(hub[split][column] for column in columns), strict=True))
        )
        for split in ("train", "validation")
    }


def _labelled_columns(rows: Sequence[tuple]) -> dict[str, list]:
    """The columns of rows (text, label) or (text, second text, label)."""
    return {
        "text": [row[0] for row in rows],
        "text_pair": [row[1] if len(row) == 3 else None for row in rows],
        "label": [row[-1] for row in rows],
    }
