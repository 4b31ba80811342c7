"""Kudriashov et al. 2025, *Shrink the longest* (STL): what regularization does to fine-tuning.

Scores are of the last 30 % of the steps; rows whose name ends in ``-best`` are of the validation
rows at each run's epoch of least validation loss, which the paper does not look at. The arms
``prominent`` and ``published`` are two readings of the bars that STL call selected. Profile
``paper`` alone has the models and tasks of Table 3; where a study lacks them, the mean of the table
stands beside ours.
"""

import math
from collections.abc import Callable, Iterator

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.ablation import RUN, TASK_OF_MODEL
from shrink_utils.study.claims.claim import MARGIN, Claim, claims_on, evaluated, per_seed

ARM = "prominent"
TABLE3 = "STL Table 3"
SELECTED = (ARM, "published")
# What STL say of an arm beside plain fine-tuning, and of selected bars beside all: name of the row,
# the other arm, direction, column, statement, and source unless it is Table 3, or its mean.
QUESTIONS = [
    ("lowers-centred-of-none", "none", "less", "centred_1",
     "regularization lowers the first centred score"),
    ("lowers-raw-of-none", "none", "less", "raw_1", "regularization lowers the first raw score"),
    ("metric-rises", "none", "greater", "graded", "{metric} rises", "STL abstract, §5, §6"),
    ("metric-kept", "none", "no_worse", "graded", "{metric} does not suffer "
     f"(by {MARGIN}): it falls by less than that, or not at all", "STL Table 2"),
    ("raises-centred-2", "none", "greater", "centred_2",
     "regularization raises the second centred score"),
    ("raises-centred-3", "none", "greater", "centred_3",
     "regularization raises the third centred score"),
    ("lowers-centred-of-all", "all", "less", "centred_1",
     "the centred score is lower with selected bars than with all"),
    ("lowers-raw-of-all", "all", "less", "raw_1",
     "the raw score is lower with selected bars than with all"),
    ("metric-above-all", "all", "greater", "graded",
     "{metric} is higher with selected bars than with all", "STL, second hypothesis"),
    ("lowers-raw-2", "none", "less", "raw_2", "regularization lowers the second raw score"),
    ("raises-raw-3", "none", "greater", "raw_3", "regularization raises the third raw score"),
    ("lowers-three-centred", "none", "less", "centred_three",
     "regularization lowers the sum of the first three centred scores"),
    ("lowers-three-raw", "none", "less", "raw_three",
     "regularization lowers the sum of the first three raw scores"),
    ("converges-sooner", "none", "less", "first_loss",
     "after the first epoch the validation loss is lower with regularization", "after STL §1"),
]  # fmt: skip
LATE = 0.3  # of the epochs: `tables.LAST`, over which STL average
AT_BEST = ("centred_1", "raw_1", "graded")  # columns of `add_best_epoch`
# Rows of what STL say in passing, and of no number in Table 3: no run can be the paper's test.
IN_PASSING = ("converges-sooner",)
DEPARTURES = (
    "AdamW, where STL use Adam; a constant rate after the warm-up, where their code has a cosine "
    "schedule"
)


def with_grades(table: pd.DataFrame) -> pd.DataFrame:
    """With the column ``graded`` of `tables.add_correctness`; without rows to grade, the metric."""
    return table if "graded" in table else table.assign(graded=table.value)


def with_sums(scores: pd.DataFrame) -> pd.DataFrame:
    """With ``centred_three`` and ``raw_three``, where the first three scores are there."""
    sums = {
        f"{space}_three": scores[names].sum(axis=1)
        for space in ("centred", "raw")
        if set(names := [f"{space}_{k}" for k in (1, 2, 3)]) <= set(scores)
    }
    return scores.assign(**sums)


def add_best_epoch(runs: pd.DataFrame, evaluations: pd.DataFrame) -> pd.DataFrame:
    """Add what each run's evaluation of least loss found: the columns `AT_BEST` with ``_best``.

    And two of the course of its validation loss: ``first_loss``, after the first epoch, and
    ``late_change``, from the beginning of the last 30 % of the epochs to their end, NaN in runs of
    one epoch.

    Parameters
    ----------
    runs : DataFrame
        Of `summarize`.
    evaluations : DataFrame
        Of `tables.evaluations`: of these runs; epoch 0 is before fine-tuning and is left out.
    """
    trained = evaluations[evaluations.epoch > 0].reset_index(drop=True)
    best = trained.loc[trained.groupby(RUN, sort=False).loss.idxmin()]  # in grid and sweep: once
    names = {column: f"{column}_best" for column in AT_BEST}
    best = best.rename(columns={"value": "graded"})[[*RUN, *AT_BEST]].rename(columns=names)
    course = trained.groupby(RUN, sort=False).apply(_course, include_groups=False)
    return runs.join(best.set_index(RUN), on=RUN).join(course, on=RUN)


def _course(run: pd.DataFrame) -> pd.Series:
    losses = run.drop_duplicates("epoch").sort_values("epoch").loss.to_numpy()
    late = math.ceil(LATE * len(losses))
    change = losses[-1] - losses[-1 - late] if len(losses) > late else math.nan
    return pd.Series({"first_loss": losses[0], "late_change": change})


def table3(model: str, task: str) -> tuple[pd.DataFrame, str]:
    """STL's Table 3 for a model and task, arms × ``centred_1``, …; and what to call it.

    ``centred_three`` and ``raw_three`` are the sums of three scores.

    Its own cell where it has the model and task, else a mean, which tells the size to expect and no
    more: its name then says of how many.
    """
    table = pd.read_csv(data_dir() / "published" / "stl_table3.csv")
    for column, own in zip(TASK_OF_MODEL, (model.rsplit("/", 1)[-1], task), strict=True):
        same = table[table[column] == own]
        table = same if len(same) else table
    scores = table.assign(name=table.space + "_" + table.k.astype(str))
    scores = scores.groupby(["arm", "name"]).score.mean().unstack()
    for arm in SELECTED:
        scores.loc[arm] = scores.loc["selected"]
    scores = with_sums(scores)
    n_cells = len(table[TASK_OF_MODEL].drop_duplicates())
    return scores, TABLE3 if n_cells == 1 else f"{TABLE3}, mean of {n_cells}"


def stl_on(model: str, task: str, arm: str, *, beside: str) -> Callable[..., Claim]:
    """Makes claims about an arm; only beside STL's own cell of Table 3 are they a paper's test."""
    kind = "paper's test" if beside == TABLE3 else "scaled test"
    kind = "our control" if arm == "random" else kind
    return claims_on("stl", model, task, arm, kind=kind, departures=DEPARTURES)


@evaluated
def stl_claims(summary: pd.DataFrame) -> Iterator[Claim]:
    """On every model and task of the ablation; from `summarize`."""
    for (model, task), runs in with_sums(with_grades(summary)).groupby(TASK_OF_MODEL, sort=False):
        published = table3(model, task)
        for arm, rows in runs.groupby("arm", sort=False):
            claim = stl_on(model, task, arm, beside=published[1])
            yield from _converged(claim, rows)
            if arm == "none":
                yield from _rises(claim, rows)
            else:
                yield from _arm(claim, rows, runs, *published)


def _rises(claim: Callable[..., Claim], none: pd.DataFrame) -> Iterator[Claim]:
    """Scores of the validation rows, before and after fine-tuning."""
    for space in ("centred", "raw"):
        rise = per_seed(none, f"{space}_after") - per_seed(none, f"{space}_before")
        statement = f"plain fine-tuning raises the first {space} score"
        yield claim(f"rises-{space}", statement, "greater", rise, source="STL §5")


def _converged(claim: Callable[..., Claim], rows: pd.DataFrame) -> Iterator[Claim]:
    """Whether the validation loss stands still where STL average; ups and downs do not cancel."""
    if "late_change" in rows and rows.late_change.notna().all():
        statement = (
            f"over the last 30 % of the epochs the validation loss moves by less than {MARGIN}"
        )
        still = -per_seed(rows, "late_change").abs()
        kind = "our control" if rows.arm.iloc[0] == "random" else "analogue"
        yield claim("converged", statement, "no_worse", still, source="after STL §5", kind=kind)


def _arm(
    claim: Callable, rows: pd.DataFrame, runs: pd.DataFrame, scores: pd.DataFrame, source: str
) -> Iterator[Claim]:
    arm = rows.arm.iloc[0]
    others = {"none", "all"} if arm in SELECTED and "all" in set(runs.arm) else {"none"}

    def less(other: str, column: str) -> pd.Series:
        return per_seed(rows, column) - per_seed(runs[runs.arm == other], column)

    for name, other, direction, column, statement, *own in QUESTIONS:
        if other not in others or column not in runs:
            continue
        statement = statement.format(metric=rows.metric.iloc[0])
        known = {arm, other} <= set(scores.index) and column in scores
        published = scores.at[arm, column] - scores.at[other, column] if known else math.nan
        more = {"published": published, "source": own[0] if own else source}
        if name in IN_PASSING and arm != "random":
            more["kind"] = "analogue"
        yield claim(name, statement, direction, less(other, column), **more)
        best = f"{column}_best"
        if best in runs and direction != "no_worse":
            statement = f"at the epoch of least validation loss, {statement}"
            more = {"source": f"after {own[0] if own else TABLE3}"}
            more["kind"] = "our control" if arm == "random" else "analogue"
            yield claim(f"{name}-best", statement, direction, less(other, best), **more)
