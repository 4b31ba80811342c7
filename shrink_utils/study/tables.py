"""One shape of a study's data: five tables of its runs, wherever they lie, and measured tables.

A study that was run here and one on record, ``data/reference/<profile>``, are the same tables. The
analysis of the latter was fixed before the runs (docs/preregistration*.md), and nobody looks at a
part of them.
"""

import ast
import hashlib
import inspect
import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import wraps
from operator import attrgetter
from pathlib import Path
from textwrap import dedent

import pandas as pd

from shrink_utils.sources import data_dir, hub_revisions
from shrink_utils.study.code_version import _code_only, code_hash
from shrink_utils.study.profiles import Profile, RunConfig, load_profile
from shrink_utils.study.results import _file_lock, _result_key, atomic_write, provenance
from shrink_utils.study.run_tables import KEYS, LAST, RUN, SCORES, TABLES

Tables = Mapping[str, pd.DataFrame]  # by the names of `TABLES`
CELL = ["model", "task", "arm"]
METRICS = ["accuracy", "f1", "matthews", "spearman"]
AT_BEST = ("centred_1", "raw_1", "graded")  # columns of `_add_best_epoch`


# --- reading ---------------------------------------------------------------------------------


def _read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of a study's runs, of ``data/reference/<profile>`` or ``results/…/tables``.

    Raises
    ------
    FileNotFoundError
        One of them is not there.
    """
    paths = {name: folder / f"{name}.parquet" for name in TABLES}
    if absent := [path for path in paths.values() if not path.is_file()]:
        raise FileNotFoundError(
            f"{absent[0]} is not there: `make reproduce` writes it in results, "
            "`python -m shrink_utils record` in data/reference"
        )
    return {name: pd.read_parquet(path) for name, path in paths.items()}


def full_length(name: str = "cohort") -> dict[str, pd.DataFrame]:
    """A profile's tables on record, after a line that says of how many runs they are."""
    profile = load_profile(name)
    print(f"All {len(profile.all_runs())} runs of profile {name} are on record.")
    return _read_tables(_records_folder(profile))


def read_objectives() -> dict[str, pd.DataFrame]:
    """Tables of models that were trained from nothing, by name.

    Every training on record counts, by the rule of docs/preregistration_objectives.md.

    Raises
    ------
    FileNotFoundError
        None of them is on record.
    """
    folder = data_dir() / "reference" / "objectives"
    if not (folder / "runs.parquet").is_file():
        raise FileNotFoundError(f"{folder / 'runs.parquet'} is not there: a checkout has it")
    return {path.stem: _read_records(path) for path in sorted(folder.glob("*.parquet"))}


def _read_records(path: Path) -> pd.DataFrame:
    """A parquet table on record, its categories as text and its numbers in double precision."""
    table = pd.read_parquet(path)
    wider = {"category": str, "float32": "float64"}
    return table.astype({c: wider[str(t)] for c, t in table.dtypes.items() if str(t) in wider})


def _rows_of(table: pd.DataFrame, configs: Iterable[RunConfig]) -> pd.DataFrame:
    """Rows of a table that has one per run, in the order of the runs, each once."""
    keys = dict.fromkeys(map(attrgetter(*KEYS), configs))
    return table.set_index(KEYS).loc[[*keys]].reset_index()


def named_by_epochs(table: pd.DataFrame) -> pd.DataFrame:
    """With longer runs' epochs beside their task, so that they are a task of their own."""
    longer = table.task + " (" + table.epochs.astype(str) + " epochs)"
    return table.assign(task=table.task.where(table.epochs == table.epochs.min(), longer))


# --- what follows from a run's rows ----------------------------------------------------------


def _graded_runs(profile: Profile, tables: Tables) -> pd.DataFrame:
    """Rows of the grid's runs, the long ones, then the sweep's, each once, for `claims`.

    Of the table ``runs``, with `_add_correctness` and `_add_best_epoch`; long runs are a task of
    their own.
    """
    configs = [*profile.runs(), *profile.long_runs(), *profile.sweep_runs()]
    of = {name: named_by_epochs(tables[name]) for name in ("runs", "correct", "evaluations")}
    runs = _add_correctness(named_by_epochs(_rows_of(tables["runs"], configs)), of["correct"])
    return _add_best_epoch(runs, of["evaluations"])


def _add_correctness(runs: pd.DataFrame, correct: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``graded``: what the metric is a mean of.

    Where the metric is accuracy, that is an array (n,), each validation row's correctness: an
    interval of these speaks of other rows too. Else it is the metric.
    """
    rows = correct.sort_values("row").groupby(RUN).correct.agg(lambda column: column.to_numpy())
    of_run = zip(runs[RUN].itertuples(index=False, name=None), runs.metric, strict=True)
    values = [rows[key] if metric == "accuracy" else None for key, metric in of_run]
    column = pd.Series(values, runs.index, dtype=object)
    return runs.assign(graded=column.where(column.notna(), runs.value))


def _add_best_epoch(runs: pd.DataFrame, evaluations: pd.DataFrame) -> pd.DataFrame:
    """Add what each run's evaluation of least loss found: the columns `AT_BEST` with ``_best``.

    And two of the course of its validation loss: ``first_loss``, after the first epoch, and
    ``late_change``, from the beginning of the last 30 % of the epochs to their end, NaN in runs of
    one epoch. Epoch 0 is before fine-tuning and is left out.
    """
    trained = evaluations[evaluations.epoch > 0].reset_index(drop=True)
    best = trained.loc[trained.groupby(RUN, sort=False).loss.idxmin()]
    names = {column: f"{column}_best" for column in AT_BEST}
    best = best.rename(columns={"value": "graded"})[[*RUN, *AT_BEST]].rename(columns=names)
    course = trained.groupby(RUN, sort=False).apply(_course, include_groups=False)
    return runs.join(best.set_index(RUN), on=RUN).join(course, on=RUN)


def _course(run: pd.DataFrame) -> pd.Series:
    losses = run.sort_values("epoch").loss.to_numpy()
    late = math.ceil(LAST * len(losses))
    change = losses[-1] - losses[-1 - late] if len(losses) > late else math.nan
    return pd.Series({"first_loss": losses[0], "late_change": change})


def task_table(runs: pd.DataFrame) -> pd.DataFrame:
    """STL's Table 2: the task's metrics by arm, mean and standard deviation over seeds."""
    metrics = [name for name in METRICS if name in runs]
    tidy = runs.melt([*CELL, "seed"], metrics, var_name="metric", value_name="score").dropna()
    return _over_seeds(tidy, [*CELL, "metric"])


def score_table(runs: pd.DataFrame) -> pd.DataFrame:
    """STL's Table 3: first three anisotropy scores by arm, raw and centred."""
    tidy = runs.melt([*CELL, "seed"], SCORES, var_name="name", value_name="score")
    tidy[["space", "k"]] = tidy["name"].str.split("_", expand=True)
    return _over_seeds(tidy, [*CELL, "space", "k"])


def _over_seeds(tidy: pd.DataFrame, cell: list[str]) -> pd.DataFrame:
    grouped = tidy.groupby(cell, sort=False).score
    return grouped.agg(mean="mean", sd="std", n="count").reset_index()


# --- writing ---------------------------------------------------------------------------------


def write_table(table: pd.DataFrame, name: str, *, profile: Profile) -> None:
    """Save as CSV with six decimals, below the profile's ``tables`` folder."""
    with atomic_write(profile.folder / "tables" / f"{name}.csv") as part:
        table.to_csv(part, index=False, float_format="%.6f")


def read_table(name: str, *, profile: Profile) -> pd.DataFrame:
    """Read what `write_table` wrote.

    Raises
    ------
    FileNotFoundError
        If the study has not come so far.
    """
    path = profile.folder / "tables" / f"{name}.csv"
    if not path.is_file():
        told = f"{path} is not there: `make reproduce PROFILE={profile.name}` writes it"
        raise FileNotFoundError(told)
    return pd.read_csv(path)


def _write_tables(tables: Tables, folder: Path) -> None:
    """Write what `_read_tables` reads."""
    for name, table in tables.items():
        with atomic_write(folder / f"{name}.parquet") as part:
            table.to_parquet(part, index=False, compression="zstd")


def _records_folder(profile: Profile) -> Path:
    """Where a profile's records are."""
    if profile.base_seed:
        raise ValueError(f"seed: {profile.base_seed}, and records are of 0 (`unset SHRINK_SEED`)")
    return data_dir() / "reference" / profile.name


# --- measured tables: what a function of a profile returns, computed once and then loaded ---------

# Their functions stand in the notebooks and in this room; each leaves one file under its name in
# ``results/<profile>/tables``, which claims read.

Measure = Callable[[Profile], pd.DataFrame]


def cached_table(name: str, *, of: Measure | None = None) -> Callable[[Measure], Measure]:
    """Decorate a function of a profile: its table is computed at the first call, then loaded.

    The table is ``results/<profile>/tables/<name>.parquet``, with what it rests on in its
    metadata. When the profile, its precision or an arm of it, the code, a library, or a pin in
    ``data/`` (hub commits, archives) changes, it is computed again, and so is a damaged one. Code
    is that of the package (`code_hash`) and the function's own: in a notebook, also the functions
    and the constants in capitals that it names. What else its cell needs stands within the
    function.

    The function takes a `Profile` and returns a DataFrame; `name` is unique in the study. Where it
    only calls a chapter's function `of`, the code of that one counts.
    """

    def decorate(measure: Measure) -> Measure:
        @wraps(measure)
        def load_or_measure(profile: Profile) -> pd.DataFrame:
            parts = (profile.hash, profile.used_precision, profile.arms, hub_revisions())
            key = _result_key(*parts, _own_code(of or measure), code=code_hash(study=True))
            path = profile.folder / "tables" / f"{name}.parquet"
            with _file_lock(path):  # another process may be measuring it
                if (table := _read(path, key=key)) is None:
                    _save(measure, profile, path, key)
                    table = _read(path, key=key)
            return table

        return load_or_measure

    return decorate


def _save(measure: Measure, profile: Profile, path: Path, key: str) -> None:
    since = time.perf_counter()
    table = measure(profile)
    table.attrs = {"key": key, "study": _study(profile), "digest": _digest(table), **provenance()}
    table.attrs["seconds"] = round(time.perf_counter() - since, 1)
    with atomic_write(path) as part:
        table.to_parquet(part, index=False)


def _digest(table: pd.DataFrame) -> str:
    return hashlib.sha256(table.to_csv(index=False).encode()).hexdigest()


def _study(profile: Profile) -> list[str]:
    """What tables of one study have in common."""
    return [profile.hash, code_hash(study=True)]


def _read(path: Path, **about: object) -> pd.DataFrame | None:
    """The table of a file that says so `about` itself, else None; a damaged one has a warning."""
    if not path.is_file():
        return None
    try:
        table = pd.read_parquet(path)
        said, table.attrs = table.attrs, {}
        if not about.items() <= said.items():
            return None
        if said["digest"] != _digest(table):
            raise ValueError("its values are not those that were written")
    except (OSError, ValueError) as error:
        warnings.warn(f"{path} is damaged ({error}); it is computed again.", stacklevel=3)
        return None
    return table


class MeasuredTables(dict):
    """The tables that the chapters of a study have left, by name, as profile and code are now."""

    def __init__(self, profile: Profile) -> None:
        self.folder = profile.folder / "tables"
        for path in sorted(self.folder.glob("*.parquet")):
            if (table := _read(path, study=_study(profile))) is not None:
                self[path.stem] = table

    def __missing__(self, name: str) -> pd.DataFrame:
        raise FileNotFoundError(
            f"{self.folder} has no table {name!r}, as profile and code are now; run the notebook "
            f'with @cached_table("{name}") first'
        )


def of_further_models(name: str, measure: Measure) -> Measure:
    """The same table of every model but the first, with the column ``model``."""

    @cached_table(name, of=measure.__wrapped__)
    def measure_further(profile: Profile) -> pd.DataFrame:
        alone = [replace(profile, models=(model,), partner="") for model in profile.models[1:]]
        # Not kept by itself, where it would take the place of the first model's table.
        tables = [measure.__wrapped__(one).assign(model=one.models[0]) for one in alone]
        return pd.concat(tables, ignore_index=True)

    return measure_further


def _own_code(function: Callable) -> dict[str, object]:
    """Of a notebook's function: its code, and functions and constants of the notebook it names."""
    if function.__module__.startswith("shrink_utils."):  # whose code `code_hash` has
        return {}
    found: dict[str, object] = {}
    waiting = {function.__name__: function}
    while waiting:
        name, value = waiting.popitem()
        if inspect.isfunction(value) and value.__module__ == function.__module__:
            source = dedent(inspect.getsource(value))
            found[name] = _code_only(source)
            names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
            names &= function.__globals__.keys() - found.keys()
            waiting |= {named: function.__globals__[named] for named in names}
        elif name.isupper() and not callable(value):
            found[name] = value
    return found
