"""A study's tables against the committed ones of its profile, ``data/reference/<profile>``."""

import shutil
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import written
from shrink_utils.study.tables import read_table

# The columns that name a row of each table that has a reference.
TABLES = {
    "task_metric": ["model", "task", "arm", "metric"],
    "anisotropy": ["model", "task", "arm", "space", "k"],
    "claims": ["claim"],
}
FIGURES = ["full_long_runs"]  # shown by the README


def print_comparison(profile: Profile) -> bool:
    """Print how the tables compare with the reference; False when a number is out of tolerance."""
    compared = compare_with_reference(profile)
    if compared is None:
        print(f"No reference tables are committed for profile {profile.name} with this seed.")
        return True
    outside = compared[~compared.within]
    print(
        f"Reference tables: {len(compared) - len(outside)} of {len(compared)} numbers within "
        "tolerance (data/reference/tolerances.toml)."
    )
    if len(outside):
        print(outside.to_string(index=False))
    changed = changed_verdicts(profile)
    if len(changed):
        print("Verdicts that differ from the reference (an interval's bound is near zero):")
        print(changed.to_string(index=False))
    return outside.empty


def compare_with_reference(profile: Profile) -> pd.DataFrame | None:
    """Hold every number of the tables against ``data/reference/<profile>``.

    Training amplifies the last digits in which two processors differ, so each column has a
    tolerance in ``data/reference/tolerances.toml``: absolute, relative to the reference or, where
    the table has bounds of an interval, a share of its half-width.

    Returns
    -------
    DataFrame or None
        Columns table, row, column, ours, reference, tolerance, within; one number per row. A row
        that only one side has is not within. None without a reference for the profile and its seed.
    """
    if (folder := _reference(profile)) is None:
        return None
    tolerances = tomllib.loads((folder.parent / "tolerances.toml").read_text(encoding="utf-8"))
    compared = [
        compare_tables(
            read_table(name, profile=profile),
            pd.read_csv(folder / f"{name}.csv"),
            keys,
            tolerances[name],
        ).assign(table=name)
        for name, keys in TABLES.items()
        if (folder / f"{name}.csv").is_file()
    ]
    return pd.concat(compared, ignore_index=True)


def _reference(profile: Profile) -> Path | None:
    """The folder of the profile's reference tables, which are of the base seed 0."""
    folder = data_dir() / "reference" / profile.name
    return None if profile.base_seed or not (folder / "claims.csv").is_file() else folder


def compare_tables(
    ours: pd.DataFrame,
    reference: pd.DataFrame,
    keys: list[str],
    tolerances: dict[str, dict],
) -> pd.DataFrame:
    """One number per row, in the columns of `compare_with_reference` but for ``table``."""

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
        share = [_share(tolerances[c], row) for c, row in zip(both.column, both.row, strict=True)]
        both["tolerance"] = np.fmax(both.tolerance, share * half)
    both["within"] = (both.ours - both.reference).abs() <= both.tolerance
    return both


def _share(tolerance: dict, row: str) -> float:
    """Of the half-width that a row may differ by: that of the first pattern which names it."""
    named = [x for pattern, x in tolerance.get("rows", {}).items() if fnmatch(row, pattern)]
    return named[0] if named else tolerance.get("interval", 0.0)


def changed_verdicts(profile: Profile) -> pd.DataFrame:
    """Claims whose verdict is not the reference's: columns claim, ours, reference.

    Empty without a reference. A verdict can change while every number is within tolerance, where
    the bound of an interval lies near zero.
    """
    if (folder := _reference(profile)) is None:
        return pd.DataFrame(columns=["claim", "ours", "reference"])
    ours = read_table("claims", profile=profile).set_index("claim").verdict
    reference = pd.read_csv(folder / "claims.csv").set_index("claim").verdict
    both = pd.concat({"ours": ours, "reference": reference}, axis=1).reset_index()
    return both[both.ours != both.reference]


def commit_reference(profile: Profile) -> None:
    """Copy this machine's tables and the README's figure into ``data/reference/<profile>``."""
    for name in TABLES:
        read_table(name, profile=profile)  # a clear error where the study is not finished
    paths = [profile.folder / "tables" / f"{name}.csv" for name in TABLES]
    paths += [profile.folder / "figures" / f"{name}.png" for name in FIGURES]
    for path in paths:
        with written(data_dir() / "reference" / profile.name / path.name) as part:
            shutil.copyfile(path, part)
