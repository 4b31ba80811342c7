"""Records: what a study's runs leave that is small enough to be committed, without their models.

They stand in ``data/reference/<profile>`` as parquet files. A long study can be computed on several
machines, a part at a time: what is recorded is not computed again.
"""

import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.ablation import RUN
from shrink_utils.study.claims.clouds import measure_clouds
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import atomic_write
from shrink_utils.study.runs import Run, kept_folders, load_run, newest_runs
from shrink_utils.study.scheduling import run_configs
from shrink_utils.study.tables import (
    SCORES,
    correct_rows,
    evaluations,
    histories,
    paired_cells,
    summarize,
)
from shrink_utils.training import RunConfig

KEYS = [*RUN, "epochs"]  # long runs differ from the grid's in their epochs
STAMPED = ("time", "commit", "device", "precision", "threads", "seconds")
STEPS = ["step", "epoch", "rows", "task_loss", "regularizer", "entropy", "entropy_all", *SCORES]
# Since profile `strength`; the records before it lack them, and a regression has no classes.
STEPS += "within_1 between n_selected missing_entropy task_gradient reward_gradient".split()


def _summaries(runs: list[Run]) -> pd.DataFrame:
    stamps = [{name: run.provenance.get(name) for name in STAMPED} for run in runs]
    return pd.concat([summarize(runs), pd.DataFrame(stamps)], axis=1)


def _steps(runs: list[Run]) -> pd.DataFrame:
    steps = histories(runs).reindex(columns=[*RUN, *STEPS])
    return steps.astype(dict.fromkeys(STEPS[3:], "float32"))


TABLES: dict[str, Callable[[list[Run]], pd.DataFrame]] = {
    "runs": _summaries,
    "steps": _steps,
    "evaluations": evaluations,
    "correct": correct_rows,
    "clouds": measure_clouds,
}


def missing_runs(profile: Profile) -> list[RunConfig]:
    """Runs of the profile that are not on record, in its order."""
    known = recorded_runs(profile)
    return [config for config in profile.all_runs() if record_key(config) not in known]


def check_complete(profile: Profile) -> None:
    """A ``ValueError`` unless every run is on record: nobody looks before that."""
    if missing := missing_runs(profile):
        raise ValueError(
            f"{len(missing)} runs are not on record, such as {missing[0].label}; "
            f"`python -m shrink_utils --profile {profile.name} record --run` computes them"
        )


def record_finished(profile: Profile) -> int:
    """Add runs in the results folder to the profile's records, and return how many.

    They are known by their configuration, whatever code made them: their ``commit`` says which.
    """
    missing = {record_key(config) for config in missing_runs(profile)}
    found = newest_runs(kept_folders(profile.folder, "runs"))
    new = [load_run(path) for config, path in found.items() if record_key(config) in missing]
    if new:
        _check_precision(profile, new)
        for name, of_runs in TABLES.items():
            path, table = _folder(profile) / f"{name}.parquet", _by_length(of_runs, new)
            if path.is_file():
                table = pd.concat([pd.read_parquet(path), table], ignore_index=True)
            with atomic_write(path) as part:
                table.to_parquet(part, index=False, compression="zstd")
    return len(new)


def record_all(profile: Profile) -> int:
    """Compute what is not on record, a seed at a time, record it, and return how many runs."""
    recorded = record_finished(profile)
    while missing := missing_runs(profile):
        run_configs([run for run in missing if run.seed == missing[0].seed], profile)
        recorded += record_finished(profile)
    return recorded


def _check_precision(profile: Profile, runs: list[Run]) -> None:
    """Differences are paired: both runs of a pair are computed in one precision."""
    found = {run.provenance.get("precision") for run in runs}
    if recorded_runs(profile):
        found |= set(recorded(profile)["runs"].precision)
    if len(found) > 1:
        raise ValueError(
            f"runs of profile {profile.name} are in the precisions {sorted(map(str, found))}: "
            "a record has one; compute these runs on a machine of the first kind"
        )


def _by_length(of_runs: Callable[[list[Run]], pd.DataFrame], runs: list[Run]) -> pd.DataFrame:
    """A table of runs, with their epochs."""
    parts = []
    for epochs in sorted({run.config.epochs for run in runs}):
        table = of_runs([run for run in runs if run.config.epochs == epochs])
        table.insert(len(RUN), "epochs", epochs)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def recorded(profile: Profile) -> dict[str, pd.DataFrame]:
    """The tables of the profile's records, by name: runs, steps, evaluations, correct, clouds.

    Raises
    ------
    FileNotFoundError
        Nothing of the profile is on record.
    """
    paths = {name: _folder(profile) / f"{name}.parquet" for name in TABLES}
    if absent := [path for path in paths.values() if not path.is_file()]:
        raise FileNotFoundError(
            f"{absent[0]} is not there: `python -m shrink_utils --profile {profile.name} record` "
            "writes it when runs are finished"
        )
    return {name: pd.read_parquet(path) for name, path in paths.items()}


def compare_with_records(profile: Profile) -> pd.DataFrame:
    """Hold the runs in the results folder against those on record, run by run.

    A single run differs more between two processors than a mean over seeds does: the tolerances are
    those of ``runs`` in ``data/reference/tolerances.toml``.

    Returns
    -------
    DataFrame
        Columns row, column, ours, reference, tolerance, within; empty where no run is on record.
    """
    known, columns = recorded_runs(profile), "row column ours reference tolerance within".split()
    found = newest_runs(kept_folders(profile.folder, "runs")) if known else {}
    again = [load_run(path) for config, path in found.items() if record_key(config) in known]
    if not again:
        return pd.DataFrame(columns=columns)
    text = (_folder(profile).parent / "tolerances.toml").read_text("utf-8")
    allowed = pd.DataFrame(tomllib.loads(text)["runs"]).T  # absolute and relative, by column
    tables = _by_length(summarize, again), recorded(profile)["runs"]
    both = paired_cells(*tables, KEYS, [*allowed.index]).query("side == 'both'")
    both = both.join(allowed, on="column")
    both["tolerance"] = np.maximum(both.absolute, both.relative * both.reference.abs())
    both["within"] = (both.ours - both.reference).abs() <= both.tolerance
    return both[columns]


def print_record_comparison(profile: Profile) -> bool:
    """Print how runs computed here compare with their records; False if over 5 % are outside."""
    if profile.base_seed or (compared := compare_with_records(profile)).empty:
        return True
    outside = compared[~compared.within]
    print(
        f"Runs on record: {len(compared) - len(outside)} of {len(compared)} numbers of "
        f"{compared.row.nunique()} runs within tolerance (data/reference/tolerances.toml)."
    )
    if len(outside):
        unseen = ["row", "column"] if missing_runs(profile) else list(outside)
        print(outside[unseen].to_string(index=False))
    return len(outside) <= max(1, len(compared) // 20)


def recorded_runs(profile: Profile) -> set[tuple]:
    """The runs on record, by `record_key`."""
    path = _folder(profile) / "runs.parquet"
    if not path.is_file():
        return set()
    return set(pd.read_parquet(path, columns=KEYS).itertuples(index=False, name=None))


def record_key(config: RunConfig) -> tuple:
    """What names a run in the records: `KEYS`."""
    return tuple(getattr(config, name) for name in KEYS)


def _folder(profile: Profile) -> Path:
    if profile.base_seed:
        raise ValueError(
            f"seed: records are of base seed 0, got {profile.base_seed}: another one is another "
            "study (`unset SEED SHRINK_SEED`)"
        )
    return data_dir() / "reference" / profile.name
