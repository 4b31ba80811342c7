"""A study's tables against the committed ones of its profile, ``data/reference/<profile>``.

Another machine rounds otherwise, and training amplifies that. So numbers are of two kinds.
*Digits* are the same but for rounding: the first steps of a run, and the claims that other
processors were measured to leave alone (``rounding.csv`` of the reference). *Replicates* may differ
as two draws of the seeds would, by the intervals of both. A table is judged as a whole: one number
outside is worth a line, more than chance allows are an error.
"""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from shrink_utils.sources import data_dir
from shrink_utils.study.claims.claim import CONFIDENCE
from shrink_utils.study.claims.report import counted
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import _write_json, atomic_write, provenance
from shrink_utils.study.run_tables import KEYS, SCORES
from shrink_utils.study.runs import _drop_models, run_id, study_tables
from shrink_utils.study.tables import CELL, _records_folder, _write_tables, read_table, write_table

EARLY_STEPS = 4  # of every run, before rounding has grown: the rate is 0 in the first
FIRST_STEPS = "learning_rate grad_norm task_loss regularizer entropy_all raw_1 centred_1".split()
BEFORE = {"loss": "loss_before", "raw_1": "raw_before", "centred_1": "centred_before"}
# The columns that name a row of each table, and those that are compared.
COMPARED = {
    "first_steps": ([*CELL, "weight", "seed", "epochs", "step"], [*FIRST_STEPS, *BEFORE.values()]),
    "task_metric": ([*CELL, "metric"], ["mean"]),
    "anisotropy": ([*CELL, "space", "k"], ["mean"]),
    "claims": (["claim"], ["estimate"]),
}
# Of the steps, on record; a regression has no classes.
STEPS = ["step", "epoch", "rows", "task_loss", "regularizer", "entropy", "entropy_all", *SCORES]
STEPS += "within_1 between n_selected missing_entropy task_gradient reward_gradient".split()
ALLOWED_SHARE = {"learning_rate": 0.01}  # too small for an absolute difference: this share of it
ABSOLUTE, RELATIVE = 0.002, 0.01  # that digits may differ by
RARE = 1e-3  # how seldom chance may raise an alarm
# Of digits of one kind: a near tie falls differently on another machine, and is no fault.
ALLOWED = {"first_steps": 0.1, "claims": 0.01}


def _report_command(profile: Profile) -> int:
    """Keep the tables of a finished study, and print what was computed, verdicts, comparison."""
    tables = study_tables(profile)
    _write_tables(tables, profile.folder / "tables")
    write_table(_first_steps(tables), "first_steps", profile=profile)
    notebooks = profile.folder / "notebooks"
    chapters = len(list(notebooks.glob("[0-9]*_[!.]*.ipynb")))
    print(f"\nStudy {profile.name} is complete: {len(tables['runs'])} runs, {chapters} chapters")
    print(f"Claims: {counted(read_table('claims', profile=profile).verdict)}")
    print(f"  each of them: python -m shrink_utils --profile {profile.name} claims")
    print(f"  read first:   {notebooks / '11_claims.ipynb'}")
    _drop_models(profile)
    about = {"profile": profile.name, "seed": profile.base_seed, "hash": profile.hash}
    with atomic_write(profile.folder / "provenance.json") as part:  # ends a study
        _write_json(part, about | {"precision": profile.used_precision} | provenance())
    return int(not _print_comparison(profile))


def _first_steps(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The first steps of every run, which are the same on every machine but for rounding.

    Columns `KEYS`, step, those of ``FIRST_STEPS`` and, where the step is 1, those of ``BEFORE``:
    the untrained model on the validation rows.
    """
    steps = tables["steps"].query("step <= @EARLY_STEPS")[[*KEYS, "step", *FIRST_STEPS]]
    before = tables["evaluations"].query("epoch == 0").assign(step=1)
    before = before[[*KEYS, "step", *BEFORE]].rename(columns=BEFORE)
    return steps.merge(before, "left", [*KEYS, "step"])


def _compare_with_reference(profile: Profile) -> pd.DataFrame | None:
    """Hold the study's tables against those of ``data/reference/<profile>``, number by number.

    Returns
    -------
    DataFrame or None
        Columns table, row, column, ours, reference, kind ("digits" or "replicate"), allowed (the
        largest difference) and within; one row per number of the reference, and one that ours lack
        is not within. None without a reference for the profile and its seed.
    """
    folder = data_dir() / "reference" / profile.name
    names = [name for name in COMPARED if (folder / f"{name}.csv").is_file()]
    if profile.base_seed or not names:
        return None
    digits, compared = _measured_digits(folder), []
    for name in names:
        tables = (read_table(name, profile=profile), pd.read_csv(folder / f"{name}.csv"))
        ours, reference = (_cells(table, *COMPARED[name], digits) for table in tables)
        both = reference.merge(ours, "left", ["row", "column"], suffixes=("_reference", ""))
        both = both.rename(columns={"value": "ours", "value_reference": "reference"})
        both = both.dropna(subset=["ours", "reference"], how="all")
        rounding = _tolerance(both)
        sampling = np.fmax(np.hypot(both.half, both.half_reference), rounding)
        both["kind"] = np.where(both.chaotic_reference, "replicate", "digits")
        both["allowed"] = np.where(both.chaotic_reference, sampling, rounding)
        compared.append(both.assign(table=name))
    table = pd.concat(compared, ignore_index=True)
    table["within"] = (table.ours - table.reference).abs() <= table.allowed
    return table[["table", "row", "column", "ours", "reference", "kind", "allowed", "within"]]


def _cells(
    table: pd.DataFrame, keys: list[str], columns: list[str], digits: set[str]
) -> pd.DataFrame:
    """Row, column and value of each number, half of its interval, and whether it is chaotic."""
    half, chaotic = 0.0, "sd" in table
    if "claim" in table:
        half, chaotic = (table.high - table.low) / 2, ~table.claim.isin(digits)
    elif chaotic:
        half = stats.t.ppf((1 + CONFIDENCE) / 2, table.n - 1) * table.sd / np.sqrt(table.n)
    named = table.assign(row=table[keys].astype(str).agg(" · ".join, axis=1), half=half)
    cells = named.assign(chaotic=chaotic).melt(["row", "half", "chaotic"], columns, "column")
    return cells.astype({"value": float})


def _tolerance(both: pd.DataFrame) -> pd.Series:
    """What digits may differ by from each value in the column ``reference``."""
    size = both.reference.abs()
    small = both.column.map(ALLOWED_SHARE) * size
    return small.fillna(np.maximum(ABSOLUTE, RELATIVE * size))


def _measured_digits(folder: Path) -> set[str]:
    """Names of the claims that are digits; none without a ``rounding.csv``."""
    if not (path := folder / "rounding.csv").is_file():
        return set()
    return set(pd.read_csv(path).query("kind == 'digits'").claim)


def _judge(compared: pd.DataFrame) -> dict[str, bool]:
    """Lines of the report, and whether no more numbers lie outside than chance allows.

    By kind and, for digits, by table. Of the first steps each quantity is judged by itself, because
    a fault may be in one alone.
    """
    replicates = compared[compared.kind == "replicate"]
    chance = stats.binom.ppf(1 - RARE, len(replicates), 1 - CONFIDENCE)
    found = _line("of training, within two intervals", replicates, chance)
    for table, rows in compared[compared.kind == "digits"].groupby("table", sort=False):
        lines = {}
        for column, part in rows.groupby("column") if table == "first_steps" else [("", rows)]:
            allowed = max(1, ALLOWED.get(table, 0.01) * len(part))
            lines |= _line(f"{table} {column}".strip() + ", to rounding", part, allowed)
        wrong = {text: within for text, within in lines.items() if not within}
        whole = f"{rows.within.sum()} of {len(rows)} numbers of {table} agree to rounding"
        found |= wrong or {whole: True}
    return found


def _line(name: str, rows: pd.DataFrame, allowed: float) -> dict[str, bool]:
    outside = int((~rows.within).sum())
    text = f"{len(rows) - outside} of {len(rows)} numbers agree ({name}; {allowed:.0f} may not)"
    return {text: outside <= int(allowed)} if len(rows) else {}


def _changed_verdicts(profile: Profile) -> list[str]:
    """Claims whose verdict is not the reference's.

    A verdict can change while every number is within what is allowed, where the bound of an
    interval lies near zero.
    """
    path = data_dir() / "reference" / profile.name / "claims.csv"
    tables = (read_table("claims", profile=profile), pd.read_csv(path))
    ours, reference = (table.set_index("claim").verdict for table in tables)
    ours, reference = ours.align(reference, join="inner")
    return ours.index[ours != reference].tolist()


def _print_comparison(profile: Profile) -> bool:
    """Print how the tables compare with the reference; False when more differs than chance allows.

    Every number outside is a line of ``tables/outside.csv``; the first few are printed.
    """
    compared = _compare_with_reference(profile)
    if compared is None:
        print(f"No reference tables are committed for profile {profile.name} with this seed.")
        return True
    print(f"Compared with data/reference/{profile.name}:")
    lines, outside = _judge(compared), compared[~compared.within]
    for text, within in lines.items():
        print(f"  {'' if within else 'TOO FEW: '}{text}")
    if len(outside):
        with atomic_write(profile.folder / "tables" / "outside.csv") as part:
            outside.to_csv(part, index=False)
        names = (outside.table + ": " + outside.row + " " + outside.column).head(3)
        print(f"  outside: {'; '.join(names)}{', …' if len(outside) > 3 else ''} (outside.csv)")
    if changed := _changed_verdicts(profile):
        print(f"  verdicts that moved, with a bound near zero: {', '.join(changed[:6])}")
    return all(lines.values())


def _reference_command(profile: Profile) -> None:
    """Copy this machine's tables into ``data/reference/<profile>``."""
    for name in COMPARED:
        read_table(name, profile=profile)  # a clear error where the study is not finished
    for name in COMPARED:
        with atomic_write(data_dir() / "reference" / profile.name / f"{name}.csv") as part:
            shutil.copyfile(profile.folder / "tables" / f"{name}.csv", part)


# --- records --------------------------------------------------------------------------------------


def _record_command(profile: Profile, *, run: bool) -> int:
    """Keep the tables of all runs as the profile's record; `run` makes those that are missing."""
    folder, configs = _records_folder(profile), profile.all_runs()
    record, runs = folder / "runs.parquet", profile.folder / "runs"
    if record.is_file() and len(pd.read_parquet(record)) == len(configs):
        print(f"{len(configs)} runs of profile {profile.name} are on record; to make them again,")
        print(f"move {folder} away")
        return 0
    missing = [config for config in configs if not (runs / run_id(config)).exists()]
    if missing and not run:
        print(
            f"{len(missing)} of {len(configs)} runs of profile {profile.name} are missing, such as "
            f"{missing[0].label}: a record has all of them, and `record --run` makes them"
        )
        return 1
    tables = study_tables(profile)
    steps = tables["steps"].reindex(columns=[*KEYS, *STEPS])
    tables["steps"] = steps.astype(dict.fromkeys(STEPS[3:], "float32"))
    _write_tables(tables, folder)
    print(f"{len(configs)} runs of profile {profile.name} are recorded in {folder}")
    return 0
