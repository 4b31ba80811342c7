"""HANS, read from the file that its authors distribute.

References
----------
McCoy, Pavlick & Linzen 2019, *Right for the Wrong Reasons: Diagnosing Syntactic Heuristics in
Natural Language Inference* (ACL); github.com/tommccoy1/hans.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd
from datasets import Dataset

from shrink_utils.text.corpora import hash_order
from shrink_utils.text.heuristics import PAIR_FEATURES

__all__ = ["hans_dir", "read_hans"]

FILE = "heuristics_evaluation_set.txt"
# Its columns, and what they are here. A subcase is a construction, such as `ln_passive`.
COLUMNS = {
    "sentence1": "text",
    "sentence2": "text_pair",
    "gold_label": "label",
    "heuristic": "heuristic",
    "subcase": "template",
}
LABELS = {"entailment": 0, "non-entailment": 1}


def hans_dir() -> Path:
    """The folder that ``SHRINK_HANS_DIR`` names.

    Raises
    ------
    FileNotFoundError
        It is not set, or is no folder.
    """
    configured = os.environ.get("SHRINK_HANS_DIR")
    if not configured:
        raise FileNotFoundError(
            f"SHRINK_HANS_DIR is not set: it names the folder that holds HANS's {FILE} "
            "(github.com/tommccoy1/hans)"
        )
    if not Path(configured).is_dir():
        raise FileNotFoundError(f"SHRINK_HANS_DIR: {configured} is not a folder")
    return Path(configured)


def read_hans(folder: Path | None = None, *, n: int | None = None, seed: int = 0) -> Dataset:
    """Sentence pairs of HANS.

    Parameters
    ----------
    folder
        Holds ``heuristics_evaluation_set.txt``; that of `hans_dir` when None.
    n
        About how many: as many of every subcase, drawn without replacement. All 30,000 when None.
    seed
        Of the draw.

    Returns
    -------
    datasets.Dataset
        As `heuristic_pairs` gives them; ``template`` is HANS's subcase.

    Raises
    ------
    FileNotFoundError
        No folder, or no such file in it.
    ValueError
        A column is missing, a label is unknown, or ``n`` is below 1.
    """
    path = (hans_dir() if folder is None else Path(folder)) / FILE
    if not path.is_file():
        raise FileNotFoundError(f"{path}: HANS's evaluation set is missing")
    if n is not None and n < 1:
        raise ValueError(f"n: {n}, expected at least 1, or None for all pairs")
    # Quotation marks are text, and no field is ever empty for want of a value.
    table = pd.read_csv(path, sep="\t", quoting=3, dtype=str, keep_default_na=False)
    if missing := sorted(set(COLUMNS) - set(table)):
        raise ValueError(f"{path}: no column {missing[0]!r} (there are {', '.join(table)})")
    table = table[list(COLUMNS)].rename(columns=COLUMNS)
    unknown = ~table.label.isin(LABELS)
    if unknown.any():
        line, label = int(unknown.idxmax()) + 2, table.label[unknown].iloc[0]
        raise ValueError(f"{path}, line {line}: label {label!r}, expected one of {list(LABELS)}")
    table["label"] = table.label.map(LABELS)
    if n is not None:
        table = _drawn(table, n, seed)
    return Dataset.from_dict(table.to_dict("list"), features=PAIR_FEATURES)


def _drawn(table: pd.DataFrame, n: int, seed: int) -> pd.DataFrame:
    """As many of every subcase, in the order of the file."""
    each = max(1, n // table.template.nunique())
    kept = [
        rows.index[sorted(hash_order(len(rows), "hans", subcase, seed)[:each])]
        for subcase, rows in table.groupby("template", sort=False)
    ]
    return table.loc[sorted(i for rows in kept for i in rows)]
