"""Check a folder of results that somebody else sends: whole, as described, and right.

Nothing that is sent is run or unpickled: tables are CSV and parquet, weights safetensors, the rest
JSON; notebooks and figures are not opened, and a folder with a link in it is not read at all.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from shrink_utils.study.claims.reference import TABLES
from shrink_utils.study.claims.verdicts import claims_from, measures_of
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.results import STAMP, Result, read_json, read_measured
from shrink_utils.study.runs import MODEL, Run, load_run
from shrink_utils.study.tables import score_table, summarize, task_table
from shrink_utils.study.verification.folder import (
    FORMAT,
    NAMES,
    PAGE,
    changed_files,
    foreign_columns,
    kept_folders,
    newest_runs,
    odd_files,
    unfinished,
)
from shrink_utils.study.verification.registration import record_faults, registration_faults
from shrink_utils.training import RunConfig
from shrink_utils.training.config import PRECISIONS

LAST_DIGIT = 2e-6  # tables are written with six decimals
SHOWN = 5  # faults of a check that are named


@dataclass(frozen=True)
class Check:
    """What was looked at, and what is wrong with it."""

    name: str
    faults: tuple[str, ...]
    verdict: str = "FAIL"  # of faults

    def __str__(self) -> str:
        if not self.faults:
            return f"ok    {self.name}"
        lines = [f"{self.verdict}  {self.name}", *(f"      {f}" for f in self.faults[:SHOWN])]
        if (more := len(self.faults) - SHOWN) > 0:
            lines.append(f"      and {more} more")
        return "\n".join(lines)


def verify_folder(folder: Path) -> list[Check]:
    """Every check of a folder ``results/<profile>``, in order; nothing is written.

    The tables are made again from the runs that were sent: the two of fine-tuning from histories
    and evaluations, the claims from those and from the measured tables. The measured tables
    themselves are held against `PAGE` alone; to make them again is to run the study. The list ends
    early where nothing is left to check: after a link, an unfinished study, a foreign profile.

    Raises
    ------
    FileNotFoundError
        There is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"RESULTS: {folder} is no folder")
    checks = []
    for name, look, verdict in (
        ("plain files and folders only", odd_files, "FAIL"),
        ("the study has come to its end", unfinished, "UNFINISHED"),
        (f"{PAGE} describes a profile as it is here", _foreign, "FAIL"),
    ):
        checks.append(_check(name, look, folder, verdict=verdict))
        if checks[-1].faults:
            return checks
    page = read_json(folder / PAGE)
    profile = load_profile(page["profile"]["name"], seed=page["profile"]["seed"])
    kept = {path: _faults(path) for kind in NAMES for path in kept_folders(folder, kind)}
    models = {path: _faults(path) for path in sorted((folder / "runs").glob(f"*.{MODEL}"))}
    checks += [
        _check(f"tables and results are those of {PAGE}", changed_files, folder, page),
        Check(f"{len(kept)} runs and measured tables are whole", sum(kept.values(), ())),
        Check(f"{len(models)} models beside them are whole", sum(models.values(), ())),
        _check("columns of every table", foreign_columns, folder),
    ]
    whole = [path for path in kept if not kept[path]]
    if profile.name == "cohort":
        times = [read_json(path / STAMP)["time"] for path in whole if path.parent.name == "runs"]
        checks += [
            _check("the analysis is older than the runs", registration_faults, times),
            _check("the analysis is older than the runs on record", record_faults, profile.name),
        ]
    return checks + _made_again(folder, profile, page["precision"], whole)


def _check(name: str, look: Callable, *arguments: object, verdict: str = "FAIL") -> Check:
    try:
        return Check(name, tuple(look(*arguments)), verdict)
    except Exception as error:  # whatever a file holds, the other checks are made
        return Check(name, (f"{type(error).__name__}: {error}",), verdict)


def _foreign(folder: Path) -> Iterator[str]:
    page = read_json(folder / PAGE)
    if page["format"] != FORMAT:
        yield f"{PAGE} has format {page['format']}, of other code; this code reads {FORMAT}"
        return
    sent = page["profile"]
    if sent["name"] not in profile_names():
        yield f"no profile {sent['name']!r} here"
    elif (here := load_profile(sent["name"], seed=sent["seed"]).hash) != sent["hash"]:
        yield f"profile {sent['name']} has hash {here} here, {sent['hash']} in {PAGE}"
    elif page["precision"] not in PRECISIONS:
        yield f"precision {page['precision']!r} is none of {', '.join(PRECISIONS)}"


def _faults(kept: Path) -> tuple[str, ...]:
    """What is wrong with a run or a measured table."""
    found = _check(kept.name, Result(kept).faults).faults
    return tuple(f"{kept.name}: {fault}" for fault in found)


def _made_again(folder: Path, profile: Profile, precision: str, whole: list[Path]) -> list[Check]:
    """The tables, made again from the runs and the measured tables that were sent."""
    grid, sweep = profile.runs(precision=precision), profile.sweep_runs(precision=precision)
    runs: dict[RunConfig, Run | None] = dict.fromkeys(profile.all_runs(precision=precision))
    there = _check(f"{len(runs)} runs of grid, sweep and long runs", _load, whole, runs)
    if there.faults:
        return [there]
    of_grid, of_sweep = ([runs[config] for config in configs] for configs in (grid, sweep))

    def claims() -> pd.DataFrame:
        measured = {name: _measured(whole, name) for name in measures_of(profile)}
        return claims_from(of_grid, of_sweep, measured, weight=profile.weight)

    make = {
        "task_metric": lambda: task_table(summarize(of_grid)),
        "anisotropy": lambda: score_table(summarize(of_grid)),
        "claims": claims,
    }
    tables = folder / "tables"
    return [there] + [
        _check(f"{name}, made again", _differences, tables / f"{name}.csv", make[name])
        for name in make
    ]


def _load(whole: list[Path], into: dict[RunConfig, Run | None]) -> list[str]:
    """Runs by what they are; their folders' names depend on the code that made them."""
    found = newest_runs(whole)
    into.update({config: load_run(found[config]) for config in into if config in found})
    return [f"no whole run {config.label}" for config, run in into.items() if run is None]


def _measured(whole: list[Path], name: str) -> pd.DataFrame:
    """A measured table, whatever code it was measured with."""
    found = [path for path in whole if path.name.rpartition("-")[0] == name]
    if len(found) != 1:
        raise ValueError(f"{len(found)} whole tables measured/{name}-*, expected one")
    return read_measured(found[0])


def _differences(path: Path, make: Callable[[], pd.DataFrame]) -> Iterator[str]:
    """Cells of a table that was sent which are not those of the table made here."""
    text = make().to_csv(index=False, float_format="%.6f")
    here, sent = (_rows(pd.read_csv(file), TABLES[path.stem]) for file in (io.StringIO(text), path))
    odd = {
        "no row": here.index.difference(sent.index),
        "foreign row": sent.index.difference(here.index),
        "twice the row": sent.index[sent.index.duplicated()],
    }
    yield from (f"{path.name}: {what} {row}" for what in odd for row in odd[what])
    if any(map(len, odd.values())):
        return
    sent = sent.loc[here.index]
    for column in here:
        for row, ours, theirs in zip(here.index, here[column], sent[column], strict=True):
            if not _equal(ours, theirs):
                yield f"{path.name}, {row}: {column} is {theirs}, from the runs {ours}"


def _rows(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    return table.set_index(table[keys].astype(str).agg(" · ".join, axis=1))


def _equal(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        return both_nan or math.isclose(ours, theirs, rel_tol=LAST_DIGIT, abs_tol=LAST_DIGIT)
    return ours == theirs
