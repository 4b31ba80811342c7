"""Two finished studies of one profile side by side, such as float32 and bfloat16.

    python -m shrink_utils.study.verification.side_by_side results/quick other/quick

prints how far apart their tables are, as a table in Markdown.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.reference import TABLES, compare_tables
from shrink_utils.study.results import read_json
from shrink_utils.study.verification.folder import PAGE

COLUMNS = ["table", "column", "numbers", "median", "largest", "within"]


def compare_folders(folder: Path, reference: Path) -> pd.DataFrame:
    """How far the tables of two finished studies are apart.

    Parameters
    ----------
    folder, reference : Path
        Results of the same profile and seed; tolerances are taken around those of `reference`.

    Returns
    -------
    DataFrame
        One row per table and column that has a tolerance: ``numbers``, the ``median`` and
        ``largest`` absolute difference, and ``within``, the numbers within tolerance
        (``data/reference/tolerances.toml``). The last row counts the claims whose verdict is the
        same.

    Raises
    ------
    ValueError
        The folders are of different studies, whose tables nobody can compare.
    """
    ours, theirs = (read_json(place / PAGE)["profile"] for place in (folder, reference))
    if ours != theirs:
        raise ValueError(f"folder: of the study {ours}, but reference of {theirs}")
    text = (data_dir() / "reference" / "tolerances.toml").read_text(encoding="utf-8")
    tolerances = tomllib.loads(text)
    compared = [
        compare_tables(*_read(folder, reference, name), keys, tolerances[name]).assign(table=name)
        for name, keys in TABLES.items()
    ]
    numbers = pd.concat(compared).assign(difference=lambda t: (t.ours - t.reference).abs())
    grouped = numbers.groupby(["table", "column"], sort=False)
    apart = grouped.agg(
        numbers=("difference", "size"),
        median=("difference", "median"),
        largest=("difference", "max"),
        within=("within", "sum"),
    ).reset_index()
    return pd.concat([apart, _verdicts(folder, reference)], ignore_index=True)[COLUMNS]


def _read(folder: Path, reference: Path, name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    one, other = (pd.read_csv(place / "tables" / f"{name}.csv") for place in (folder, reference))
    return one, other


def _verdicts(folder: Path, reference: Path) -> pd.DataFrame:
    ours, theirs = (
        table.set_index("claim").verdict for table in _read(folder, reference, "claims")
    )
    same = int((ours == theirs.reindex(ours.index)).sum())
    return pd.DataFrame(
        [{"table": "claims", "column": "verdict", "numbers": len(ours), "within": same}]
    )


def as_markdown(apart: pd.DataFrame) -> str:
    """The table of `compare_folders` for a page of docs."""
    head = ["| table | column | numbers | median difference | largest | within tolerance |"]
    head.append("|---|---|---:|---:|---:|---:|")
    for row in apart.itertuples():
        sizes = ["–" if pd.isna(x) else f"{x:.4f}" for x in (row.median, row.largest)]
        cells = [row.table, row.column, str(row.numbers), *sizes, str(row.within)]
        head.append(f"| {' | '.join(cells)} |")
    return "\n".join(head)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="how far two finished studies are apart")
    parser.add_argument("folder", type=Path)
    parser.add_argument("reference", type=Path)
    print(as_markdown(compare_folders(**vars(parser.parse_args()))))
