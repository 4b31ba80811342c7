"""Where a folder of results comes from, and whether a folder that somebody sends is right.

Nothing that is sent is run or unpickled: tables are CSV and parquet, weights safetensors, the rest
JSON; notebooks and figures are not opened, and a folder with a link in it is not read at all.
"""

import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from shrink_utils.study.cached_table import read_cached
from shrink_utils.study.claims.reference import COMPARED
from shrink_utils.study.claims.verdicts import claims_from, tables_of
from shrink_utils.study.profiles import Profile, load_profile, profile_names
from shrink_utils.study.results import (
    MANIFEST,
    Result,
    atomic_write,
    manifest_differences,
    provenance,
    read_json,
    write_json,
)
from shrink_utils.study.runs import MODEL, NAMES, Run, kept_folders, load_run, newest_runs
from shrink_utils.study.tables import (
    first_steps,
    paired_cells,
    score_table,
    summarize,
    task_table,
)
from shrink_utils.text.sources import sha256_of
from shrink_utils.training import RunConfig
from shrink_utils.training.config import PRECISIONS

PAGE = "provenance.json"
FORMAT = 5  # of the page; 4 also listed inputs and times
LAST_DIGIT = {"rtol": 2e-6, "atol": 2e-6}  # tables are written with six decimals


def write_provenance(profile: Profile) -> None:
    """Write the last file of a study: profile, packages, device, commit, time, and every sha256.

    `verify_folder` holds a folder against it.
    """
    folder = profile.folder
    page = {
        "format": FORMAT,
        "profile": {"name": profile.name, "seed": profile.base_seed, "hash": profile.hash},
        "precision": profile.used_precision,
        **provenance(),
        "sha256": {name: sha256_of(path) for name, path in _listed(folder).items()},
    }
    with atomic_write(folder / PAGE) as part:
        write_json(part, page)


def _listed(folder: Path) -> dict[str, Path]:
    """Tables, and manifests of runs and measured tables: what the page gives the sha256 of."""
    found = {f"tables/{path.name}": path for path in sorted((folder / "tables").glob("*.csv"))}
    manifests = (path / MANIFEST for kind in NAMES for path in kept_folders(folder, kind))
    named = {path.relative_to(folder).parent.as_posix(): path for path in manifests}
    return found | {name: path for name, path in named.items() if path.is_file()}


def verify_folder(folder: Path) -> dict[str, list[str]]:
    """What is wrong with a folder ``results/<profile>``, by what was looked at; writes nothing.

    The tables are made again from the runs that were sent: those of fine-tuning from histories and
    evaluations, the claims from these and from the measured tables. The measured tables themselves
    are held against `PAGE` alone; to make them again is to run the study. The checks end early
    where nothing is left to look at: after a link, an unfinished study, a foreign profile.

    Raises
    ------
    FileNotFoundError
        There is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"RESULTS: {folder} is no folder")
    checks = {"plain files and folders only": _told(lambda: _odd_files(folder))}
    if not any(checks.values()):
        checks[f"{PAGE} ends a study of a profile as here"] = _told(lambda: _foreign(folder))
    if any(checks.values()):
        return checks
    page = read_json(folder / PAGE)
    profile = load_profile(page["profile"]["name"], seed=page["profile"]["seed"])
    kept = [path for kind in NAMES for path in kept_folders(folder, kind)]
    kept += sorted((folder / "runs").glob(f"*.{MODEL}"))
    faults = {path: _told(Result(path).faults) for path in kept}
    checks[f"tables and results are those of {PAGE}"] = _told(
        lambda: manifest_differences(page["sha256"], _listed(folder))
    )
    checks[f"{len(kept)} runs, models and measured tables are whole"] = [
        f"{path.name}: {fault}" for path in kept for fault in faults[path]
    ]
    whole = [path for path in kept if not faults[path]]
    return checks | _made_again(folder, profile, page["precision"], whole)


def _told(look: Callable[[], Iterable[str]]) -> list[str]:
    try:
        return list(look())
    except Exception as error:  # whatever a file holds, the other checks are made
        return [f"{type(error).__name__}: {error}"]


def _odd_files(folder: Path) -> Iterator[str]:
    """Links, pipes and devices: results hold none, and a link could lead to any file here."""
    for path in sorted(folder.rglob("*")):  # which follows no link
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            kind = "a link" if path.is_symlink() else "no plain file"
            yield f"{path.relative_to(folder)} is {kind}"


def _foreign(folder: Path) -> Iterator[str]:
    if not (folder / PAGE).is_file():
        yield f"{PAGE} is missing: `make reproduce` with its PROFILE and SEED resumes and writes it"
        return
    page = read_json(folder / PAGE)
    sent = page["profile"]
    if page["format"] != FORMAT:
        yield f"{PAGE} has format {page['format']}, of other code; this code reads {FORMAT}"
    elif sent["name"] not in profile_names():
        yield f"no profile {sent['name']!r} here"
    elif (here := load_profile(sent["name"], seed=sent["seed"]).hash) != sent["hash"]:
        yield f"profile {sent['name']} has hash {here} here, {sent['hash']} in {PAGE}"
    elif page["precision"] not in PRECISIONS:
        yield f"precision {page['precision']!r} is none of {', '.join(PRECISIONS)}"


def _made_again(
    folder: Path, profile: Profile, precision: str, whole: list[Path]
) -> dict[str, list[str]]:
    """The tables, made again from the runs and the measured tables that were sent."""
    runs: dict[RunConfig, Run] = {}
    wanted = profile.all_runs(precision=precision)

    def load() -> list[str]:
        found = newest_runs(path for path in whole if re.fullmatch(NAMES["runs"], path.name))
        runs.update({config: load_run(found[config]) for config in wanted if config in found})
        return [f"no whole run {config.label}" for config in wanted if config not in runs]

    checks = {f"{len(wanted)} runs of grid, sweep and long runs": _told(load)}
    if any(checks.values()):
        return checks
    grid = [runs[config] for config in profile.runs(precision=precision)]
    sweep = [runs[config] for config in profile.sweep_runs(precision=precision)]

    def claims() -> pd.DataFrame:
        measured = {name: _sent_table(whole, name) for name in tables_of(profile)}
        return claims_from(grid, sweep, measured, weight=profile.weight)

    make = {
        "first_steps": lambda: first_steps(runs.values()),
        "task_metric": lambda: task_table(summarize(grid)),
        "anisotropy": lambda: score_table(summarize(grid)),
        "claims": claims,
    }
    for name, again in make.items():
        found = _told(partial(_changed_cells, folder / "tables", name, again))
        checks[f"{name}, made again"] = found
    return checks


def _sent_table(whole: list[Path], name: str) -> pd.DataFrame:
    """A measured table, whatever code it was measured with."""
    found = [path for path in whole if path.name.rpartition("-")[0] == name]
    if len(found) != 1:
        raise ValueError(f"{len(found)} whole tables measured/{name}-*, expected one")
    return read_cached(found[0])


def _changed_cells(folder: Path, name: str, again: Callable[[], pd.DataFrame]) -> Iterator[str]:
    """Cells of a table that was sent which are not those of the table made here."""
    text = again().to_csv(index=False, float_format="%.6f")
    files = (io.StringIO(text), folder / f"{name}.csv")
    both = paired_cells(*(pd.read_csv(file).astype(object) for file in files), COMPARED[name][0])
    numbers = [pd.to_numeric(side, errors="coerce") for side in (both.reference, both.ours)]
    same = np.isclose(*numbers, **LAST_DIGIT) | (both.ours == both.reference)
    same |= both.ours.isna() & both.reference.isna()
    for cell in both[~same | (both.side != "both")].itertuples():
        found = f"{name}.csv, {cell.row}: {cell.column} is {cell.reference}"
        yield f"{found}, from the runs {cell.ours}"
