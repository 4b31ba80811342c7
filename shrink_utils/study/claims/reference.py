"""Compare this machine's tables with the committed ones, under stated tolerances."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.profiles import Profile
from shrink_utils.study.tables import read_table
from shrink_utils.study.whole_file import written

__all__ = ["TABLES", "changed_verdicts", "commit_reference", "compare_with_reference"]

FIGURES = ["ablation_anisotropy"]  # shown by the README

# The columns that name a row of each table.
TABLES = {
    "task_metric": ["model", "task", "arm", "metric"],
    "anisotropy": ["model", "task", "arm", "space", "k"],
    "claims": ["claim"],
}


def compare_with_reference(profile: Profile) -> pd.DataFrame | None:
    """Hold every number of the tables against ``data/reference/<profile>``.

    Training amplifies the last digits in which two processors differ, so each column has a
    tolerance in ``data/reference/tolerances.toml``: absolute, relative to the reference or, where
    the table has bounds of an interval, a share of its half-width.

    Returns
    -------
    DataFrame or None
        Columns table, row, column, ours, reference, tolerance, within; one row a number. A row that
        only one side has is not within. None when no reference is committed for the profile, or
        when the base seed is not the reference's 0.
    """
    folder = data_dir() / "reference" / profile.name
    if profile.base_seed or not folder.is_dir():
        return None
    with open(data_dir() / "reference" / "tolerances.toml", "rb") as file:
        tolerances = tomllib.load(file)
    compared = [
        _compare(
            read_table(name, profile=profile),
            pd.read_csv(folder / f"{name}.csv"),
            keys,
            tolerances[name],
        ).assign(table=name)
        for name, keys in TABLES.items()
        if (folder / f"{name}.csv").is_file()
    ]
    return pd.concat(compared, ignore_index=True)


def _compare(
    ours: pd.DataFrame,
    reference: pd.DataFrame,
    keys: list[str],
    tolerances: dict[str, dict[str, float]],
) -> pd.DataFrame:
    def tidy(table: pd.DataFrame, name: str) -> pd.DataFrame:
        row = table[keys].astype(str).agg(" · ".join, axis=1)
        long = table.assign(row=row).melt("row", list(tolerances), "column", name)
        return long.assign(**{name: long[name].astype(float)})

    both = tidy(ours, "ours").merge(tidy(reference, "reference"), on=["row", "column"], how="outer")
    absolute = both.column.map(lambda column: tolerances[column]["absolute"])
    relative = both.column.map(lambda column: tolerances[column]["relative"])
    both["tolerance"] = np.maximum(absolute, relative * both.reference.abs())
    if "low" in reference:
        row = reference[keys].astype(str).agg(" · ".join, axis=1)
        half = both.row.map(((reference.high - reference.low) / 2).set_axis(row))
        share = both.column.map(lambda column: tolerances[column].get("interval", 0.0))
        both["tolerance"] = np.fmax(both.tolerance, share * half)
    both["within"] = (both.ours - both.reference).abs() <= both.tolerance
    return both


def changed_verdicts(profile: Profile) -> pd.DataFrame:
    """Claims whose verdict is not the reference's: columns claim, ours, reference.

    Empty without a reference. A verdict can change while every number is within tolerance, where
    the bound of an interval lies near zero.
    """
    folder = data_dir() / "reference" / profile.name
    if profile.base_seed or not folder.is_dir():
        return pd.DataFrame(columns=["claim", "ours", "reference"])
    both = [
        table.set_index("claim").verdict.rename(name)
        for name, table in (
            ("ours", read_table("claims", profile=profile)),
            ("reference", pd.read_csv(folder / "claims.csv")),
        )
    ]
    joined = pd.concat(both, axis=1).reset_index()
    return joined[joined.ours != joined.reference]


def commit_reference(profile: Profile) -> None:
    """Copy this machine's tables and the README's figure into ``data/reference/<profile>``."""
    folder = data_dir() / "reference" / profile.name
    for name in TABLES:
        read_table(name, profile=profile)  # a clear error where the study is not finished
        _copy(profile.folder / "tables" / f"{name}.csv", folder)
    for name in FIGURES:
        _copy(profile.folder / "figures" / f"{name}.png", folder)


def _copy(path: Path, folder: Path) -> None:
    with written(folder / path.name) as part:
        shutil.copyfile(path, part)
