"""A study's tables against the committed ones of its profile, ``data/reference/<profile>``.

Another machine is a replicate: it rounds otherwise, and training amplifies that. So numbers are of
two kinds. *Digits*: another machine gives the same ones but for rounding. *Replicates*: two
machines may differ as two draws of the seeds would, by the intervals of both. Which claims are
digits was measured on machines of several kinds (``rounding.csv`` of the reference): one is, if
none moved it by a tenth of what digits may differ by. The first steps of a run are digits, means
over fine-tuned runs are not. A table is judged as a whole: one number outside is worth a line, more
than chance allows are an error. On a machine like the one that made the reference, every number
counts as digits.
"""

import platform
import re
import shutil
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy import stats

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import CONFIDENCE
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import _read_json, _write_json, atomic_write
from shrink_utils.study.run_tables import KEYS, SCORES, TABLES
from shrink_utils.study.runs import _kept_folders, _newest_runs, load_run, run_configs, tables_of
from shrink_utils.study.tables import (
    BEFORE,
    CELL,
    FIRST_STEPS,
    _missing_runs,
    _records_folder,
    _run_key,
    read_table,
    read_tables,
)

# The columns that name a row of each table, and those that are compared.
COMPARED = {
    "first_steps": ([*CELL, "weight", "seed", "epochs", "step"], [*FIRST_STEPS, *BEFORE.values()]),
    "task_metric": ([*CELL, "metric"], ["mean"]),
    "anisotropy": ([*CELL, "space", "k"], ["mean"]),
    "claims": (["claim"], ["estimate"]),
}
MACHINE = "machine.json"
# Of the steps, on record; a regression has no classes.
STEPS = ["step", "epoch", "rows", "task_loss", "regularizer", "entropy", "entropy_all", *SCORES]
STEPS += "within_1 between n_selected missing_entropy task_gradient reward_gradient".split()
ALLOWED_SHARE = {"learning_rate": 0.01}  # too small for an absolute difference: this share of it
ABSOLUTE, RELATIVE = 0.002, 0.01  # that digits may differ by
RARE = 1e-3  # how seldom chance may raise an alarm
# Of digits of one kind: a near tie falls differently on another machine, and is no fault.
ALLOWED = {"first_steps": 0.1, "claims": 0.01}


class _Comparison(NamedTuple):
    """How one group of numbers compares: a line of the report."""

    text: str
    within: bool


def _compare_with_reference(profile: Profile) -> pd.DataFrame | None:
    """Hold every number of the tables against ``data/reference/<profile>``.

    Returns
    -------
    DataFrame or None
        Columns table, row, column, ours, reference, kind ("digits" or "replicate"), allowed (the
        largest difference) and within; one number per row. A row that only one side has is not
        within. None without a reference for the profile and its seed.
    """
    if (folder := _reference(profile)) is None:
        return None
    same, compared = _read_json(folder / MACHINE) == _machine(profile), []
    digits = _measured_digits(folder)
    for name, (keys, columns) in COMPARED.items():
        ours, reference = read_table(name, profile=profile), pd.read_csv(folder / f"{name}.csv")
        sides = (_with_intervals(table, digits) for table in (ours, reference))
        both = _paired_cells(*sides, keys, columns, beside=("half", "chaotic"))
        both = both.dropna(subset=["ours", "reference"], how="all")
        both = both.astype({"ours": float, "reference": float})
        chaotic = both.chaotic.eq(True) | both.chaotic_reference.eq(True)
        both["kind"] = np.where(chaotic & (not same), "replicate", "digits")
        small = both.column.map(ALLOWED_SHARE) * both.reference.abs()
        rounding = small.fillna(_tolerance(both.reference))
        sampling = np.hypot(both.half, both.half_reference)
        both["allowed"] = np.where(both.kind == "digits", rounding, np.fmax(sampling, rounding))
        compared.append(both.assign(table=name))
    table = pd.concat(compared, ignore_index=True)
    table["within"] = (table.ours - table.reference).abs() <= table.allowed
    return table[["table", "row", "column", "ours", "reference", "kind", "allowed", "within"]]


def _tolerance(reference: pd.Series) -> pd.Series:
    """What digits may differ by from a reference value."""
    return np.maximum(ABSOLUTE, RELATIVE * reference.abs())


def _measured_digits(folder: Path) -> set[str]:
    """Names of the claims that are digits; none without a ``rounding.csv``."""
    if not (path := folder / "rounding.csv").is_file():
        return set()
    table = pd.read_csv(path)
    return set(table.claim[table.kind == "digits"])


def _judge(compared: pd.DataFrame) -> list[_Comparison]:
    """Whether more numbers lie outside than chance allows, by kind and, for digits, by table.

    Of the first steps each quantity is judged by itself, because a fault may be in one alone.
    """
    found = []
    replicates = compared[compared.kind == "replicate"]
    if len(replicates):
        chance = int(stats.binom.ppf(1 - RARE, len(replicates), 1 - CONFIDENCE))
        found.append(_compared_line("of training, within two intervals", replicates, chance))
    digits = compared[compared.kind == "digits"]
    for table, rows in digits.groupby("table", sort=False):
        groups = rows.groupby("column") if table == "first_steps" else [("", rows)]
        lines = [
            _compared_line(
                f"{table.replace('_', ' ')} {column}".strip() + ", to rounding",
                part,
                max(1, int(ALLOWED.get(table, 0.01) * len(part))),
            )
            for column, part in groups
        ]
        wrong = [line for line in lines if not line.within]
        whole = f"{rows.within.sum()} of {len(rows)} numbers of {table} agree to rounding"
        found += wrong or [_Comparison(whole, True)]
    return found


def _compared_line(name: str, rows: pd.DataFrame, chance: int) -> _Comparison:
    outside = int((~rows.within).sum())
    text = f"{len(rows) - outside} of {len(rows)} numbers agree ({name}; up to {chance} may not)"
    return _Comparison(text, outside <= chance)


def _with_intervals(table: pd.DataFrame, digits: set[str]) -> pd.DataFrame:
    """A table with ``half``, of each row's interval, and whether the row is ``chaotic``."""
    if {"low", "high"} <= set(table):
        half = (table.high - table.low) / 2
    elif {"sd", "n"} <= set(table):
        half = stats.t.ppf((1 + CONFIDENCE) / 2, table.n - 1) * table.sd / np.sqrt(table.n)
    else:
        half = pd.Series(0.0, table.index)
    chaotic = ~table.claim.isin(digits) if "claim" in table else "sd" in table
    return table.assign(half=half, chaotic=chaotic)


def _machine(profile: Profile) -> dict[str, str | int]:
    """What decides the last digits: processor, kernels, threads, precision and libraries."""
    names = ("model name", "cpu family", "model")
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.is_file() else ""
    found = (re.search(rf"^{name}\s*:(.*)", text, re.MULTILINE) for name in names)
    return {
        "processor": " ".join(line[1].strip() for line in found if line) or platform.machine(),
        "kernels": torch.backends.cpu.get_cpu_capability(),
        "precision": profile.used_precision,
        "threads": profile.threads,
        "torch": torch.__version__,
        "numpy": np.__version__,
    }


def _changed_verdicts(profile: Profile) -> pd.DataFrame:
    """Claims whose verdict is not the reference's: columns claim, ours, reference.

    Empty without a reference. A verdict can change while every number is within what is allowed,
    where the bound of an interval lies near zero.
    """
    if (folder := _reference(profile)) is None:
        return pd.DataFrame(columns=["claim", "ours", "reference"])
    ours = read_table("claims", profile=profile).set_index("claim").verdict
    reference = pd.read_csv(folder / "claims.csv").set_index("claim").verdict
    both = pd.concat({"ours": ours, "reference": reference}, axis=1).dropna().reset_index()
    return both[both.ours != both.reference]


def _print_comparison(profile: Profile) -> bool:
    """Print how the tables compare with the reference; False when more differs than chance allows.

    Every number outside is a line of ``tables/outside.csv``; the first few are printed.
    """
    compared = _compare_with_reference(profile)
    if compared is None:
        print(f"No reference tables are committed for profile {profile.name} with this seed.")
        return True
    of = _read_json(_reference(profile) / MACHINE)
    print(
        f"Compared with data/reference/{profile.name}, made with {of['processor']} "
        f"({of['kernels']}, {of['precision']}):"
    )
    verdicts, outside = _judge(compared), compared[~compared.within]
    for text, within in verdicts:
        print(f"  {'' if within else 'TOO FEW: '}{text}")
    if len(outside):
        with atomic_write(profile.folder / "tables" / "outside.csv") as part:
            outside.to_csv(part, index=False)
        names = (outside.table + ": " + outside.row + " " + outside.column).head(3)
        print(f"  outside: {'; '.join(names)}{', …' if len(outside) > 3 else ''} (outside.csv)")
    if len(changed := _changed_verdicts(profile)):
        print(f"  verdicts that moved, with a bound near zero: {', '.join(changed.claim.head(6))}")
    return all(within for _, within in verdicts)


def _commit_reference(profile: Profile) -> None:
    """Copy this machine's tables into ``data/reference/<profile>``."""
    for name in COMPARED:
        read_table(name, profile=profile)  # a clear error where the study is not finished
    folder = data_dir() / "reference" / profile.name
    for name in COMPARED:
        with atomic_write(folder / f"{name}.csv") as part:
            shutil.copyfile(profile.folder / "tables" / f"{name}.csv", part)
    _write_json(folder / MACHINE, _machine(profile))


def _paired_cells(
    ours: pd.DataFrame,
    reference: pd.DataFrame,
    keys: list[str],
    columns: list[str] | None = None,
    *,
    beside: Iterable[str] = (),
) -> pd.DataFrame:
    """Two tables of the same form, cell by cell.

    Columns row (the `keys`; one that comes again has another name), column, ours, reference, those
    `beside` (which speak of every cell of a row; ``<name>_reference``: as the reference has them),
    and ``side``: "both", or "left_only" where ours alone has such a row.
    """
    sides = []
    for name, table in {"ours": ours, "reference": reference}.items():
        row = table[keys].astype(str).agg(" · ".join, axis=1)
        again = row.groupby(row).cumcount().map(lambda n: " again" * n)
        named = table.assign(row=row + again)
        sides.append(named.melt(["row", *beside], columns, "column", name))
    cell, suffixes = ["row", "column"], ("", "_reference")
    return sides[0].merge(sides[1], "outer", cell, suffixes=suffixes, indicator="side")


def _compare_with_records(profile: Profile) -> pd.DataFrame:
    """Hold the runs in the results folder against those on record, run by run.

    A single run differs more between two processors than a mean over seeds does: the tolerances are
    those of ``runs`` in ``data/reference/tolerances.toml``.

    Returns
    -------
    DataFrame
        Columns row, column, ours, reference, tolerance, within; empty where no run is on record.
    """
    unknown = {_run_key(config) for config in _missing_runs(profile)}
    wanted = {_run_key(config) for config in profile.all_runs()} - unknown
    found = _newest_runs(_kept_folders(profile.folder)) if wanted else {}
    again = [load_run(path) for config, path in found.items() if _run_key(config) in wanted]
    columns = "row column ours reference tolerance within".split()
    if not again:
        return pd.DataFrame(columns=columns)
    text = (data_dir() / "reference" / "tolerances.toml").read_text("utf-8")
    allowed = pd.DataFrame(tomllib.loads(text)["runs"]).T  # absolute and relative, by column
    sides = tables_of(again)["runs"], read_tables(_records_folder(profile))["runs"]
    both = _paired_cells(*sides, KEYS, [*allowed.index]).query("side == 'both'")
    both = both.join(allowed, on="column")
    both["tolerance"] = np.maximum(both.absolute, both.relative * both.reference.abs())
    both["within"] = (both.ours - both.reference).abs() <= both.tolerance
    return both[columns]


def _print_record_comparison(profile: Profile) -> bool:
    """Print how runs computed here compare with their records; False if over 5 % are outside."""
    if profile.base_seed or (compared := _compare_with_records(profile)).empty:
        return True
    outside = compared[~compared.within]
    print(
        f"Runs on record: {len(compared) - len(outside)} of {len(compared)} numbers of "
        f"{compared.row.nunique()} runs within tolerance (data/reference/tolerances.toml)."
    )
    if len(outside):
        unseen = ["row", "column"] if _missing_runs(profile) else list(outside)
        print(outside[unseen].to_string(index=False))
    return len(outside) <= max(1, len(compared) // 20)


def _record_finished(profile: Profile) -> int:
    """Add runs in the results folder to the profile's records, and return how many.

    They are known by their configuration, whatever code made them: their ``commit`` says which. A
    long study can be computed on several machines, a part at a time.
    """
    missing = {_run_key(config) for config in _missing_runs(profile)}
    found = _newest_runs(_kept_folders(profile.folder))
    new = [load_run(path) for config, path in found.items() if _run_key(config) in missing]
    if not new:
        return 0
    tables = tables_of(new)
    steps = tables["steps"].reindex(columns=[*KEYS, *STEPS])
    tables["steps"] = steps.astype(dict.fromkeys(STEPS[3:], "float32"))
    paths = {name: _records_folder(profile) / f"{name}.parquet" for name in TABLES}
    if paths["runs"].is_file():
        earlier = read_tables(_records_folder(profile))
        tables = {
            name: pd.concat([earlier[name], tables[name]], ignore_index=True) for name in TABLES
        }
    if len(precisions := tables["runs"].precision.unique()) > 1:  # differences are paired
        raise ValueError(
            f"runs of profile {profile.name} are in the precisions {sorted(map(str, precisions))}: "
            "a record has one; compute these runs on a machine of the first kind"
        )
    for name, path in paths.items():
        with atomic_write(path) as part:
            tables[name].to_parquet(part, index=False, compression="zstd")
    return len(new)


def _record_all(profile: Profile) -> int:
    """Compute what is not on record, a seed at a time, record it, and return how many runs."""
    added = _record_finished(profile)
    while missing := _missing_runs(profile):
        run_configs([run for run in missing if run.seed == missing[0].seed], profile)
        added += _record_finished(profile)
    return added


def _reference(profile: Profile) -> Path | None:
    """The folder of the profile's reference tables, which are of the base seed 0."""
    folder = data_dir() / "reference" / profile.name
    return None if profile.base_seed or not (folder / MACHINE).is_file() else folder
