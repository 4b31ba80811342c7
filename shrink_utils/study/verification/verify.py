"""Check a folder of results that somebody else sends: whole, as described, and right.

Nothing that is sent is run or unpickled: tables are CSV and parquet, weights safetensors, the rest
JSON; notebooks and figures are not opened, and a folder with a link in it is not read at all.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from shrink_utils.study.claims.reference import TABLES
from shrink_utils.study.claims.verdicts import MEASURES, claims_from
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.results import Result, read_json, read_measured
from shrink_utils.study.runs import Run, load_run
from shrink_utils.study.tables import score_table, summarize, task_table
from shrink_utils.study.verification.folder import (
    FORMAT,
    NAMES,
    PAGE,
    changed_files,
    foreign_columns,
    full_label,
    kept_folders,
    newest_runs,
    odd_files,
    unfinished,
)
from shrink_utils.training import RunConfig

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
        shown = [
            f"{self.verdict}  {self.name}",
            *(f"      {fault}" for fault in self.faults[:SHOWN]),
        ]
        if (more := len(self.faults) - SHOWN) > 0:
            shown.append(f"      and {more} more")
        return "\n".join(shown)


def verify_folder(folder: Path) -> list[Check]:
    """Every check of a folder ``results/<profile>``, in order.

    The tables are made again from the runs that were sent: the two of fine-tuning from histories
    and evaluations, the claims from those and from the measured tables. The measured tables
    themselves are held against `PAGE` alone; to make them again is to run the study.

    Parameters
    ----------
    folder : Path
        May be read-only: nothing is written.

    Returns
    -------
    list of Check
        Ends early after a fault that leaves nothing to check: a link, a study that has not come to
        its end, a foreign profile.

    Raises
    ------
    FileNotFoundError
        There is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"RESULTS: {folder} is no folder")
    checks = [_check("plain files and folders only", lambda: odd_files(folder))]
    if checks[0].faults:
        return checks
    missing = _check("the study has come to its end", lambda: unfinished(folder))
    if missing.faults:
        return [*checks, replace(missing, verdict="UNFINISHED")]
    checks.append(_check(f"{PAGE} describes a profile as it is here", lambda: _foreign(folder)))
    if checks[1].faults:
        return checks
    page = read_json(folder / PAGE)
    profile = load_profile(page["profile"]["name"], seed=page["profile"]["seed"])
    faults = {path: _in(path) for kind in NAMES for path in kept_folders(folder, kind)}
    checks += [
        _check(f"tables and results are those of {PAGE}", lambda: changed_files(folder, page)),
        Check(f"{len(faults)} runs and measured tables are whole", sum(faults.values(), ())),
        _check("columns of every table", lambda: foreign_columns(folder)),
    ]
    return checks + _made_again(folder, profile, [path for path in faults if not faults[path]])


def _in(kept: Path) -> tuple[str, ...]:
    """What is wrong with a run or a measured table."""
    found = _check(kept.name, Result(kept).faults).faults
    return tuple(f"{kept.name}: {fault}" for fault in found)


def _check(name: str, look: Callable[[], Iterable[str]]) -> Check:
    try:
        return Check(name, tuple(look()))
    except Exception as error:  # whatever a file holds, the other checks are made
        return Check(name, (f"{type(error).__name__}: {error}",))


def _foreign(folder: Path) -> Iterable[str]:
    page = read_json(folder / PAGE)
    if page["format"] != FORMAT:
        return [f"{PAGE} has format {page['format']}, of other code; this code reads {FORMAT}"]
    sent = page["profile"]
    if sent["name"] not in profile_names():
        return [f"no profile {sent['name']!r} here"]
    here = load_profile(sent["name"], seed=sent["seed"]).hash
    if here != sent["hash"]:
        return [f"profile {sent['name']} has hash {here} here, {sent['hash']} in {PAGE}"]
    return []


def _made_again(folder: Path, profile: Profile, whole: list[Path]) -> list[Check]:
    """The tables, made again from the runs and the measured tables that were sent."""
    grid, sweep = profile.runs(), profile.sweep_runs()
    runs: dict[RunConfig, Run | None] = dict.fromkeys([*grid, *sweep])
    there = _check(f"{len(runs)} runs of grid and sweep", lambda: _load(whole, into=runs))
    if there.faults:
        return [there]
    make = {
        "task_metric": lambda: task_table(summarize(runs[config] for config in grid)),
        "anisotropy": lambda: score_table(summarize(runs[config] for config in grid)),
        "claims": lambda: claims_from(
            [runs[config] for config in grid],
            [runs[config] for config in sweep],
            {name: _measured(whole, name) for name in MEASURES},
            weight=profile.weight,
        ),
    }
    return [there] + [
        _check(f"{name}, made again", lambda name=name: _differences(folder, name, make[name]()))
        for name in make
    ]


def _load(whole: list[Path], *, into: dict[RunConfig, Run | None]) -> list[str]:
    """Runs by what they are; their folders' names depend on the code that made them."""
    found = newest_runs(whole)
    into.update({config: load_run(found[config]) for config in into if config in found})
    return [f"no whole run {full_label(config)}" for config, run in into.items() if run is None]


def _measured(whole: list[Path], name: str) -> pd.DataFrame:
    """A measured table, whatever code it was measured with."""
    found = [path for path in whole if path.name.rpartition("-")[0] == name]
    if len(found) != 1:
        raise ValueError(f"{len(found)} whole tables measured/{name}-*, expected one")
    return read_measured(found[0])


def _differences(folder: Path, name: str, made: pd.DataFrame) -> Iterable[str]:
    """Cells of a table that was sent which are not those of the table made here."""
    path, keys = folder / "tables" / f"{name}.csv", TABLES[name]
    text = made.to_csv(index=False, float_format="%.6f")
    here, sent = pd.read_csv(io.StringIO(text)), pd.read_csv(path)
    here, sent = (table.set_index([*table[keys].astype(str).T.values]) for table in (here, sent))
    odd = {
        "no row": here.index.difference(sent.index),
        "foreign row": sent.index.difference(here.index),
        "twice the row": sent.index[sent.index.duplicated()],
    }
    yield from (f"{path.name}: {what} {_row(row)}" for what in odd for row in odd[what])
    if any(map(len, odd.values())):
        return
    sent = sent.loc[here.index]
    for column in here:
        for row in here.index[~_equal(here[column], sent[column]).to_numpy()]:
            ours, theirs = here.at[row, column], sent.at[row, column]
            yield f"{path.name}, {_row(row)}: {column} is {theirs}, from the runs {ours}"


def _row(row: str | tuple[str, ...]) -> str:
    return row if isinstance(row, str) else " · ".join(row)


def _equal(here: pd.Series, sent: pd.Series) -> pd.Series:
    if pd.api.types.is_numeric_dtype(here) and pd.api.types.is_numeric_dtype(sent):
        close = np.isclose(here, sent, rtol=LAST_DIGIT, atol=LAST_DIGIT, equal_nan=True)
        return pd.Series(close, index=here.index)
    return here.astype(object).fillna("").astype(str) == sent.astype(object).fillna("").astype(str)
