"""Tables in the form of STL's Tables 2 and 3, from finished runs."""

import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.ablation import RUN
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import atomic_write
from shrink_utils.study.runs import Run, keys_of
from shrink_utils.text import task_spec

LAST = 0.3  # STL average their scores over the last 30 % of the training steps
SCORES = [f"{space}_{k}" for space in ("raw", "centred") for k in (1, 2, 3)]
EARLY_STEPS = 4  # of every run, before rounding has grown: the rate is 0 in the first
FIRST_STEPS = "learning_rate grad_norm task_loss regularizer entropy_all raw_1 centred_1".split()
BEFORE = {"loss": "loss_before", "raw_1": "raw_before", "centred_1": "centred_before"}
METRICS = ["accuracy", "f1", "matthews", "spearman"]
CELL = ["model", "task", "arm"]


def histories(runs: Iterable[Run]) -> pd.DataFrame:
    """The steps of all runs in one tidy frame; model, task, arm, weight and seed come first."""
    frames = []
    for run in runs:
        frames.append(pd.DataFrame(keys_of(run.config), index=run.history.index).join(run.history))
    return pd.concat(frames, ignore_index=True)


def summarize(runs: Iterable[Run]) -> pd.DataFrame:
    """One row per run.

    Returns
    -------
    DataFrame
        Columns model, task, arm, weight, seed; ``raw_k`` and ``centred_k``, the anisotropy scores
        averaged over the last 30 % of the steps whose batch was full; ``raw_before``,
        ``raw_after``, ``centred_before``, ``centred_after``, the first scores of the validation
        rows; every metric of the task under its name, on the validation rows, averaged over the
        last 30 % of the epochs, and at least the last one (not the best one, which would favour
        whatever varies most); ``metric`` and ``value``, the first of them, which claims are about.
    """
    return pd.DataFrame([_summary(run) for run in runs])


def _summary(run: Run) -> dict:
    first, final = run.evaluations[0], run.evaluations[-1]
    full = run.history[run.history.rows == run.history.rows.max()]
    epochs = pd.DataFrame(run.evaluations[1:])
    metrics = task_spec(run.config.task).metrics
    scores = {name: _last(epochs[name]) for name in metrics}
    return {
        **keys_of(run.config),
        **{name: _last(full[name]) for name in SCORES},
        **{
            f"{space}_{when}": of[f"{space}_1"]
            for space in ("raw", "centred")
            for when, of in (("before", first), ("after", final))
        },
        "metric": metrics[0],
        "value": scores[metrics[0]],
        **scores,
    }


def first_steps(runs: Iterable[Run]) -> pd.DataFrame:
    """The first steps of every run, which are the same on every machine but for rounding.

    Columns model, task, arm, weight, seed, epochs, step, those of ``FIRST_STEPS`` and, where the
    step is 1, those of ``BEFORE``: the untrained model on the validation rows.
    """
    frames = []
    for run in runs:
        steps = run.history.head(EARLY_STEPS)[["step", *FIRST_STEPS]].astype({"step": int})
        before = {name: run.evaluations[0][key] for key, name in BEFORE.items()}
        before = pd.DataFrame(before, index=steps.index[:1])
        keys = keys_of(run.config) | {"epochs": run.config.epochs}
        frames.append(steps.join(before).assign(**keys))
    names = [*RUN, "epochs", "step", *FIRST_STEPS, *BEFORE.values()]
    return pd.concat(frames, ignore_index=True)[names]


def _last(values: pd.Series) -> float:
    """Mean of the last 30 %."""
    return float(values.tail(math.ceil(LAST * len(values))).mean())


def evaluations(runs: Iterable[Run]) -> pd.DataFrame:
    """One row per run and evaluation: the run's keys, then what it found (`Run.evaluations`).

    ``metric`` names the task's first metric, and ``value`` is what it was.
    """
    rows = []
    for run in runs:
        metric = task_spec(run.config.task).metrics[0]
        for found in run.evaluations:
            rows.append(keys_of(run.config) | found | {"metric": metric, "value": found[metric]})
    return pd.DataFrame(rows)


def correct_rows(runs: Iterable[Run]) -> pd.DataFrame:
    """Which validation rows a run gets right, of tasks with classes.

    Returns
    -------
    DataFrame
        Columns model, task, arm, weight, seed, row and ``correct``: the share of the last 30 % of
        the epochs (at least the last one) in which the row's predicted class is its label.
    """
    judged = [_correct(run) for run in runs if not task_spec(run.config.task).is_regression]
    columns = [*RUN, "row", "correct"]
    return pd.concat(judged, ignore_index=True) if judged else pd.DataFrame(columns=columns)


def add_correctness(summary: pd.DataFrame, correct: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``graded`` to a table of `summarize`: what the metric is a mean of.

    Where the metric is accuracy, that is an array (n,), each validation row's correctness out of
    `correct_rows`: an interval of these speaks of other rows too. Else it is the metric.
    """
    once = correct.drop_duplicates([*RUN, "row"]).sort_values("row")  # in grid and sweep: twice
    rows = once.groupby(RUN).correct.agg(lambda column: column.to_numpy())
    of_run = zip(summary[RUN].itertuples(index=False, name=None), summary.metric, strict=True)
    values = [rows[key] if metric == "accuracy" else None for key, metric in of_run]
    column = pd.Series(values, summary.index, dtype=object)
    return summary.assign(graded=column.where(column.notna(), summary.value))


def _correct(run: Run) -> pd.DataFrame:
    right = run.embeddings["predictions"][1:] == run.embeddings["labels"]  # (epochs, n)
    share = right[-math.ceil(LAST * len(right)) :].double().mean(dim=0)
    return pd.DataFrame({**keys_of(run.config), "row": range(len(share)), "correct": share})


def task_table(summary: pd.DataFrame) -> pd.DataFrame:
    """STL's Table 2: the task's metrics by arm, mean and standard deviation over seeds."""
    metrics = [name for name in METRICS if name in summary]
    tidy = summary.melt([*CELL, "seed"], metrics, var_name="metric", value_name="score").dropna()
    return _over_seeds(tidy, [*CELL, "metric"])


def score_table(summary: pd.DataFrame) -> pd.DataFrame:
    """STL's Table 3: first three anisotropy scores by arm, raw and centred."""
    tidy = summary.melt([*CELL, "seed"], SCORES, var_name="name", value_name="score")
    tidy[["space", "k"]] = tidy["name"].str.split("_", expand=True)
    return _over_seeds(tidy, [*CELL, "space", "k"])


def _over_seeds(tidy: pd.DataFrame, cell: list[str]) -> pd.DataFrame:
    grouped = tidy.groupby(cell, sort=False).score
    return grouped.agg(mean="mean", sd="std", n="count").reset_index()


def paired_cells(
    ours: pd.DataFrame,
    reference: pd.DataFrame,
    keys: list[str],
    columns: list[str] | None = None,
    *,
    beside: Iterable[str] = (),
) -> pd.DataFrame:
    """Two tables of the same form, cell by cell.

    Parameters
    ----------
    keys : list of str
        The columns that name a row; one that comes again has another name.
    columns : list of str, optional
        Those to compare; by default all.
    beside : iterable of str
        Columns that speak of every cell of a row.

    Returns
    -------
    DataFrame
        Columns row, column, ours, reference, those `beside` (``<name>_reference``: as the reference
        has them), and ``side``: "both", or "left_only" where ours alone has such a row.
    """
    sides = []
    for name, table in {"ours": ours, "reference": reference}.items():
        row = table[keys].astype(str).agg(" · ".join, axis=1)
        again = row.groupby(row).cumcount().map(lambda n: " again" * n)
        named = table.assign(row=row + again)
        sides.append(named.melt(["row", *beside], columns, "column", name))
    cell, suffixes = ["row", "column"], ("", "_reference")
    return sides[0].merge(sides[1], "outer", cell, suffixes=suffixes, indicator="side")


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
        raise FileNotFoundError(
            f"{path} is not there: `make reproduce PROFILE={profile.name}` writes it"
        )
    return pd.read_csv(path)


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
