"""A task made of somebody's own file: columns found, labels told apart, texts split, all refused
that cannot be learnt from, before anything is trained.

Nothing is asked: what can be read two ways is refused, with the option that says which.
"""

from __future__ import annotations

import hashlib
import json
import re
import reprlib
import time
import unicodedata
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Number
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedGroupKFold

from shrink_utils.names import known_name
from shrink_utils.study.results import Result
from shrink_utils.text.corpora import check_maximum, hash_order, text_key
from shrink_utils.text.files import empty_lines, read_columns
from shrink_utils.text.tasks import OWN, VALIDATION_SHARE, _own_folder, linked

LABEL_KINDS = ("classes", "regression")
TASK_COLUMNS = ["text", "text_pair", "label", "group"]
FEWEST_ROWS = 60  # a validation split of 12, halves of 6
FEWEST_UNITS = 6  # of a side, which share no text or group: halves of 3
FEWEST_OF_CLASS = 10
FEWEST_IN_BATCH = 3  # rows whose barcode has two bars: one bar alone has no entropy
MOST_ROWS = 50_000  # without a limit: hours on a processor
MOST_CLASSES = 20  # more different numbers than that may be a scale
UNEVEN = 2  # the largest class has more than so many times the rows of the smallest
FARTHEST = 10  # label of a regression that a new head comes to in a few hundred steps
LARGEST = 1e15  # whose square is finite in the loss's numbers
BINS = 5  # of a regression's labels, to split it in parts alike
SEVERAL = re.compile(r"\s*[,;|]\s*")  # between the labels of one row
NOTHING = ("nan", "na", "n/a", "none", "null")  # where they stand for no label
SAFE = re.compile(r"[^\w.-]+")
HALF_A_PAIR = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class _OwnTask:
    """Rows that are split, with what was found of them."""

    name: str  # of `load_task`, once `save` was called
    sides: dict[str, pd.DataFrame]  # "train" and "validation", with the columns `TASK_COLUMNS`
    label_names: tuple[str, ...]  # () for a regression
    metrics: tuple[str, ...]
    facts: dict[str, str]  # of the file, for people
    notes: tuple[str, ...]

    def save(self) -> None:
        """Write the rows where every process that trains finds them, below the results."""
        about = {"metrics": self.metrics, "label_names": self.label_names}
        about["is_pair"] = bool(self.sides["train"].text_pair.notna().any())
        result = Result(_own_folder(self.name))
        if not result.folder.exists():
            with result.save({"task": self.name}, since=time.perf_counter()) as part:
                (part / "task.json").write_text(json.dumps(about), encoding="utf-8")
                for side, rows in self.sides.items():
                    rows.to_parquet(part / f"{side}.parquet", index=False)


def _read_own_task(
    texts: Path,
    *,
    label: str = "label",
    text: str | None = None,
    pair: str | None = None,
    group: str | None = None,
    valid: Path | None = None,
    kind: str | None = None,
    limit: int | None = None,
    batch_size: int = 64,
) -> _OwnTask:
    """Read a labelled file and split it: a text or a group never stands on both sides.

    Parameters
    ----------
    texts
        CSV, TSV, JSON lines, Parquet, or the folder of a data set: see `read_columns`.
    label, text, pair, group
        Columns: labels; texts (None: ``text``, or the only other column); second texts of a task
        of pairs; what hangs together, such as a customer, and stays on one side.
    valid
        A second file to validate on, of the same columns; training rows that share a text or a
        group with it are left out. None: a fifth of the rows, stratified by label.
    kind
        ``"classes"`` or ``"regression"``. None: words are classes, and so are two numbers; other
        numbers that repeat could be either, and are refused.
    limit
        Of more rows a sample of so many, the same each time.
    batch_size
        Rows of a training step, in which every class has its barcode.

    Raises
    ------
    FileNotFoundError, ValueError
        The file, a column or the labels cannot be used; the message says what to do.
    """
    label = label or "label"
    columns = {"text": text, "text_pair": pair, "label": label, "group": group}
    found, notes = _task_rows(Path(texts), columns, "texts")
    kind = _kind(found, label, kind, texts)
    check_maximum("limit", limit, "rows")
    if limit is None and len(found) > MOST_ROWS:
        raise ValueError(
            f"limit: {len(found):,} rows of {texts} are {len(found) / batch_size:,.0f} steps in an "
            f"epoch; --limit {MOST_ROWS // 5} takes a sample, --limit {len(found)} all"
        )
    n_read = len(found)
    found = found.iloc[sorted(hash_order(n_read, "own")[:limit])]
    if len(found) < FEWEST_ROWS:
        told = f"limit: {limit}" if n_read >= FEWEST_ROWS else f"texts: {n_read} rows of {texts}"
        raise ValueError(f"{told}, expected {FEWEST_ROWS} or more")
    other = None
    if valid is not None:
        columns["text"] = columns["text"] or found.attrs["text"]
        other, more = _task_rows(Path(valid), columns, "valid")
        notes += more
    names: tuple[str, ...] = ()
    if kind == "classes":
        names = tuple(sorted({*map(str, found.label)}, key=_by_number))
        _check_classes(found.label.astype(str), label, batch_size)
        told = "is a class; leave its cells empty if it stands for no label"
        notes += [f"label: {name!r} {told}" for name in names if name.casefold() in NOTHING]
    found, other = (_numbered_labels(rows, names, label, valid) for rows in (found, other))
    sides = _split_rows(found, other, n_labels=len(names) or 2)
    if other is not None and (n_left := len(found) - len(sides["train"])):
        notes.append(f"valid: {n_left} training rows share a text or a group with it: left out")
    for unseen in sorted({*range(len(names))} - {*sides["validation"].label}):
        notes.append(f"valid: it has no row of class {names[unseen]!r}, of which nothing is said")
    facts = _facts_of(sides, names, n_read=n_read)
    counts = Counter(sides["train"].label) if names else {0: 1}
    uneven = max(counts.values()) > UNEVEN * min(counts.values())
    metrics = ("macro_f1", "accuracy") if uneven else ("accuracy", "macro_f1")
    content = repr(metrics) + "".join(rows.to_csv(index=False) for rows in sides.values())
    digest = hashlib.sha256(content.encode())
    name = f"{OWN}{SAFE.sub('-', Path(texts).stem)[:40] or 'texts'}-{digest.hexdigest()[:12]}"
    return _OwnTask(name, sides, names, metrics if names else ("spearman",), facts, tuple(notes))


def _task_rows(
    path: Path, wanted: dict[str, str | None], argument: str
) -> tuple[pd.DataFrame, list]:
    """The columns `TASK_COLUMNS` of a file without rows that lack one, and notes on these."""
    try:
        table = read_columns(path)
    except (ValueError, OSError) as error:
        raise type(error)(str(error).replace("text:", f"{argument}:", 1)) from error
    given = {name: column for name, column in wanted.items() if column}
    arguments = {name: name.removeprefix("text_") for name in TASK_COLUMNS}
    for name, column in given.items():
        known_name(arguments[name], f"column of {path}", column, [*map(str, table.columns)])
    if "text" not in given:
        rest = [name for name in map(str, table.columns) if name not in given.values()]
        given["text"] = "text" if "text" in rest else rest[0] if len(rest) == 1 else ""
        if not given["text"]:
            names = ", ".join(map(str, table.columns))
            raise ValueError(f"text: {path} has the columns {names}; name the texts' by --text")
    for name in ("text_pair", "label"):
        if given.get(name) == given["text"]:
            told = f"{given['text']!r} is the column of texts, too; name another"
            raise ValueError(f"{arguments[name]}: {told}")
    table = read_columns(path, list(dict.fromkeys(given.values())))
    notes = []
    for name, column in given.items():
        if empty := empty_lines(table, column):
            if 2 * table[column].isna().sum() > len(table):
                raise ValueError(f"{arguments[name]}: {empty}, most of {path}; name another column")
            notes.append(f"{arguments[name]}: {empty} in {path.name}: left out")
        notes += _check_cells(table[column].dropna(), arguments[name], path)
    table = table.dropna(subset=list(given.values()))
    found = pd.DataFrame({name: table[column] for name, column in given.items()})
    found = found.reindex(columns=TASK_COLUMNS).astype(object)
    # So large a whole number is no value, but a word: pandas fails where no float holds it.
    large = found.label.map(lambda cell: isinstance(cell, int) and abs(cell) >= LARGEST)
    found["label"] = found.label.mask(large, found.label.map(str))
    stripped = [cell.strip() if isinstance(cell, str) else cell for cell in found.label]
    found["label"] = pd.Series(stripped, found.index, dtype=object)
    _check_labels(found.label, given["label"], path)
    found.attrs["text"] = given["text"]
    return found, notes


def _check_cells(cells: pd.Series, argument: str, path: Path) -> list[str]:
    """Refuse what is no text, and note texts that may stand for none."""
    is_text = argument in ("text", "pair")
    for line, cell in cells.items():
        what = "is no text" if is_text and not isinstance(cell, str) else ""
        if isinstance(cell, str) and HALF_A_PAIR.search(cell):
            what = "holds half a surrogate pair; clean it"
        if what:
            told = f"{reprlib.repr(cell)} in line {line} of {path} {what}"
            raise ValueError(f"{argument}: column {cells.name}, {told}")
    if not is_text:
        return []
    nothing = cells.str.strip().str.casefold().isin(NOTHING)
    named = empty_lines(cells.mask(nothing).to_frame(), cells.name)
    told = f"{argument}: {named} but a word such as 'NA', read as a text; if it is none, empty it"
    return [told] * bool(named)


def _check_labels(labels: pd.Series, column: str, path: Path) -> None:
    """Refuse what is neither word nor number, and several labels: words alone in other rows."""
    alone = {label for label in labels if isinstance(label, str) and not SEVERAL.search(label)}
    for line, label in labels.items():
        what = "" if isinstance(label, str | Number) else "neither a word nor a number"
        if isinstance(label, str) and len(parts := SEVERAL.split(label)) > 1 and {*parts} <= alone:
            what = "several labels"
        if what:
            raise ValueError(
                f"label: {reprlib.repr(label)} in line {line} of {path} is {what}; give a column "
                f"with one label per row, such as one of {column}'s as yes or no"
            )


def _kind(rows: pd.DataFrame, label: str, kind: str | None, path: Path) -> str:
    """Classes or a regression; what looks like both is refused."""
    if kind is not None:
        known_name("kind", "kind", kind, LABEL_KINDS)
    if (different := rows.label.astype(str).nunique()) == 1:
        found = f"{reprlib.repr(rows.label.iloc[0])}, expected another too"
        raise ValueError(f"label: every row of {label} in {path} is {found}")
    if kind == "classes" or (kind is None and different <= 2):
        return "classes"
    points = rows.label.map(lambda cell: cell.replace(",", ".") if isinstance(cell, str) else cell)
    if kind is None and pd.to_numeric(points, errors="coerce").isna().any():
        return "classes"
    numbers = _values(rows.label, "label", path)
    repeated = different <= MOST_CLASSES or 5 * different < len(rows)
    whole = different <= MOST_CLASSES or (numbers % 1 == 0).all()
    if kind is None and repeated and whole:
        raise ValueError(
            f"label: {different} different numbers in column {label} of {path} may be classes or "
            "values; say --kind classes or --kind regression"
        )
    return "regression"


def _values(labels: pd.Series, argument: str, path: Path) -> pd.Series:
    """Labels of a regression as numbers, by line; what a loss cannot take is refused."""
    numbers = pd.to_numeric(labels, errors="coerce").astype(float)
    if len(bad := labels[~(numbers.abs() < LARGEST)]):
        raise ValueError(
            f"{argument}: {reprlib.repr(bad.iloc[0])} in line {bad.index[0]} of {path} is no "
            f"number such as 3.5, below {LARGEST:g}; write it so, or say --kind classes"
        )
    return numbers


def _by_number(word: str) -> tuple:
    return (0, float(word), word) if re.fullmatch(r"[-+]?\d+(\.\d+)?", word) else (1, 0.0, word)


def _check_classes(labels: pd.Series, column: str, batch_size: int) -> None:
    """Raise a ``ValueError`` unless every class can have a barcode in a batch."""
    counts, written = labels.value_counts(), {}
    for name in counts.index:
        no_number, value, _ = _by_number(name)
        shown = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
        seen = text_key(unicodedata.normalize("NFKC", shown)) if no_number else value
        if (other := written.setdefault(seen, name)) != name:
            raise ValueError(
                f"label: {reprlib.repr(other)} and {reprlib.repr(name)} of {column} would be two "
                "classes; write them alike, or as different words"
            )
    rarest, n = counts.index[-1], int(counts.iloc[-1])
    told = f"label: class {reprlib.repr(rarest)} of {column} has {n} of {len(labels):,} rows"
    if n < FEWEST_OF_CLASS:
        raise ValueError(f"{told}, expected {FEWEST_OF_CLASS}; join it with another, or drop it")
    if (in_batch := n / len(labels) * batch_size) < FEWEST_IN_BATCH:
        enough = 2 ** int(np.ceil(np.log2(FEWEST_IN_BATCH * len(labels) / n)))
        raise ValueError(
            f"{told}, {in_batch:.1f} in a batch of {batch_size}, and a barcode needs "
            f"{FEWEST_IN_BATCH}; join it with another, drop it, or take --batch-size {enough}"
        )


def _numbered_labels(
    rows: pd.DataFrame | None, names: Sequence[str], column: str, valid: Path | None
) -> pd.DataFrame | None:
    """Labels as numbers: of classes their place among the `names`."""
    if rows is None:
        return None
    if not names:
        return rows.assign(label=_values(rows.label, "valid", valid))
    words = rows.label.astype(str)
    if strange := sorted({*words} - {*names}):
        told = f"valid: class {reprlib.repr(strange[0])} of {column} in {valid}"
        raise ValueError(f"{told} is none of the training's")
    return rows.assign(label=words.map({name: i for i, name in enumerate(names)}).astype(int))


def _split_rows(
    rows: pd.DataFrame, other: pd.DataFrame | None, n_labels: int
) -> dict[str, pd.DataFrame]:
    """Training and validation rows, of units that can be learnt from and that can judge."""
    every = rows if other is None else pd.concat([rows, other])
    every = every.reset_index(drop=True)
    every, argument = every.assign(group=_groups(every)), "valid"
    if other is not None:
        held_out = np.arange(len(every)) >= len(rows)
        seen = every.group.isin(every.group[held_out]) & ~held_out
        if 2 * seen.sum() > len(rows):
            told = f"valid: {seen.sum()} of {len(rows)} training rows share a text or a group"
            raise ValueError(f"{told} with it; give a file of other texts")
        sides = {"train": every[~held_out & ~seen], "validation": every[held_out]}
    else:
        argument = "group" if rows.group.notna().any() else "texts"
        if (largest := every.group.value_counts().max()) > len(every) / 2:
            raise ValueError(
                f"{argument}: {largest} of {len(every)} rows hang together by shared texts or "
                "groups, and no split keeps them on one side; give a validation file by --valid"
            )
        _check_units(argument, "rows", every)
        train, held_out = _folded(round(1 / VALIDATION_SHARE), every.label, every.group)
        sides = {"train": every.iloc[train], "validation": every.iloc[held_out]}
    _check_units(argument, "training rows", sides["train"], n_labels)
    _check_units(argument, "validation rows", sides["validation"])
    return sides


def _check_units(argument: str, which: str, rows: pd.DataFrame, n_labels: int = 2) -> None:
    """Refuse rows of too few labels, or of too few units that share no text or group."""
    labels, units = rows.label.nunique(), rows.group.nunique()
    if labels < n_labels or units < FEWEST_UNITS:
        raise ValueError(
            f"{argument}: {labels} labels and {units} units (which share no text or group) among "
            f"the {which}, expected {n_labels} and {FEWEST_UNITS} or more; give other rows, or "
            "another column"
        )


def _groups(rows: pd.DataFrame) -> np.ndarray:
    """Rows that share a text or a group, directly or by others."""
    keys = [rows.text.map(text_key)]
    if rows.text_pair.notna().any():
        keys.append(rows.text_pair.map(text_key))
    if rows.group.notna().any():
        keys.append("group " + rows.group.astype(str))
    groups = linked(np.tile(np.arange(len(rows)), len(keys)), pd.factorize(pd.concat(keys))[0])
    return np.unique(groups, return_inverse=True)[1]


def _strata(labels: pd.Series | np.ndarray) -> np.ndarray:
    """Classes, or fifths of a regression's values: what every part has its share of."""
    labels = np.asarray(labels)
    if labels.dtype.kind in "iu":
        return labels
    cuts = np.quantile(labels, np.arange(1, BINS) / BINS)
    return np.searchsorted(cuts, labels, side="right")


def _halves_of(labels: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Which validation rows are in the second half, (n,): stratified, and no group in both."""
    second = np.zeros(len(labels), dtype=bool)
    second[_folded(2, labels, groups)[1]] = True
    return second


def _folded(
    n: int, labels: np.ndarray | pd.Series, groups: np.ndarray | pd.Series
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of all parts of n but one, and of that one, stratified; no group is in both."""
    folds = StratifiedGroupKFold(n, shuffle=True, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class of fewer rows than parts
        return next(folds.split(labels, _strata(labels), groups))


def _facts_of(
    sides: dict[str, pd.DataFrame], names: Sequence[str], *, n_read: int = 0
) -> dict[str, str]:
    """What a task's rows are, for people."""
    train, validation = sides["train"], sides["validation"]
    n, sample = len(train) + len(validation), f", a sample of {n_read:,}"
    keys = pd.concat([train, validation])[["text", "text_pair"]].fillna("").map(text_key)
    facts = {"rows": f"{n:,}{sample * (n < n_read)}"}
    facts["training and validation rows"] = f"{len(train):,} and {len(validation):,}"
    facts["rows with a copied text, all on one side"] = f"{keys.duplicated(keep=False).sum():,}"
    if not names:
        low, high = train.label.min(), train.label.max()
        told = f"from {low:g} to {high:g}, a regression"
        if max(-low, high) > FARTHEST:
            told += "; scale them to some -1 to 1: a head begins at 0"
        return facts | {"labels": told}
    shares = pd.concat([train.label, validation.label]).value_counts(normalize=True)
    shown = [f"{names[i][:30]} {100 * share:.0f} %" for i, share in shares.items()]
    facts["classes"] = f"{len(names)}: {', '.join(shown[:8])}{', …' * (len(shown) > 8)}"
    commonest = float((validation.label == train.label.mode()[0]).mean())
    return facts | {"accuracy of the commonest class": f"{100 * commonest:.1f} %"}
