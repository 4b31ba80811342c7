"""Kudriashov et al. 2025, *Shrink the longest* (STL): what regularization does to fine-tuning.

Scores are of the last 30 % of the steps; rows whose name ends in ``-best`` are of the validation
rows at each run's epoch of least validation loss, which the paper does not look at. The arms
``prominent`` and ``published`` are two readings of the bars that STL call selected. Profile
``paper`` alone has the models and tasks of Table 3; where a study lacks them, the mean of the table
stands beside ours.
"""

import math
from collections.abc import Iterator

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import _as_table, _per_seed, claim
from shrink_utils.study.run_tables import TASK_OF_MODEL

ARM = "prominent"
TABLE3 = "STL Table 3"
SELECTED = (ARM, "published")
# Of an arm beside another one: the claim, that other arm, and the column of the runs.
QUESTIONS = [
    ("stl:lowers-centred-of-none", "none", "centred_1"),
    ("stl:lowers-centred-of-none-best", "none", "centred_1_best"),
    ("stl:lowers-raw-of-none", "none", "raw_1"),
    ("stl:lowers-raw-of-none-best", "none", "raw_1_best"),
    ("stl:metric-rises", "none", "graded"),
    ("stl:metric-rises-best", "none", "graded_best"),
    ("stl:metric-kept", "none", "graded"),
    ("stl:raises-centred-2", "none", "centred_2"),
    ("stl:raises-centred-3", "none", "centred_3"),
    ("stl:lowers-centred-of-all", "all", "centred_1"),
    ("stl:lowers-centred-of-all-best", "all", "centred_1_best"),
    ("stl:lowers-raw-of-all", "all", "raw_1"),
    ("stl:lowers-raw-of-all-best", "all", "raw_1_best"),
    ("stl:metric-above-all", "all", "graded"),
    ("stl:metric-above-all-best", "all", "graded_best"),
    ("stl:lowers-raw-2", "none", "raw_2"),
    ("stl:raises-raw-3", "none", "raw_3"),
    ("stl:lowers-three-centred", "none", "centred_three"),
    ("stl:lowers-three-raw", "none", "raw_three"),
    ("stl:converges-sooner", "none", "first_loss"),
]
DEPARTURES = (
    "AdamW, where STL use Adam; a constant rate after the warm-up, where their code has a cosine "
    "schedule"
)


def _with_sums(scores: pd.DataFrame) -> pd.DataFrame:
    """With ``centred_three`` and ``raw_three``, of the first three scores."""
    first_three = {space: [f"{space}_{k}" for k in (1, 2, 3)] for space in ("centred", "raw")}
    sums = {f"{space}_three": scores[names].sum(axis=1) for space, names in first_three.items()}
    return scores.assign(**sums)


def _table3(model: str, task: str) -> tuple[pd.DataFrame, str]:
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
    scores = _with_sums(scores)
    n_cells = len(table[TASK_OF_MODEL].drop_duplicates())
    return scores, TABLE3 if n_cells == 1 else f"{TABLE3}, mean of {n_cells}"


def _about_stl(model: str, task: str, arm: str, *, table3: str) -> dict[str, str]:
    """Words of a `claim` of an arm; only beside STL's own cell of Table 3 is one a paper's test."""
    kind, analogue = "scaled test", "analogue"
    if table3 == TABLE3:
        kind = "paper's test"
    if arm == "random":
        kind = analogue = "our control"
    return {
        "cell": f"{model}:{task}:{arm}",
        "task": task,
        "arm": arm,
        "kind": kind,
        "analogue": analogue,
        "table3": table3,
        "departures": DEPARTURES,
    }


@_as_table
def _stl_claims(graded: pd.DataFrame) -> Iterator[dict]:
    """On every model and task of the ablation; from `tables._graded_runs`."""
    for (model, task), runs in _with_sums(graded).groupby(TASK_OF_MODEL, sort=False):
        scores, name = _table3(model, task)
        for arm, rows in runs.groupby("arm", sort=False):
            about = _about_stl(model, task, arm, table3=name)
            yield from _converged(about, rows)
            if arm == "none":
                yield from _rises(about, rows)
            else:
                yield from _arm(about, rows, runs, scores)


def _rises(about: dict[str, str], none: pd.DataFrame) -> Iterator[dict]:
    """Scores of the validation rows, before and after fine-tuning."""
    for space in ("centred", "raw"):
        rise = _per_seed(none, f"{space}_after") - _per_seed(none, f"{space}_before")
        yield claim(f"stl:rises-{space}", rise, **about)


def _converged(about: dict[str, str], rows: pd.DataFrame) -> Iterator[dict]:
    """Whether the validation loss stands still where STL average; ups and downs do not cancel."""
    if "late_change" in rows and rows.late_change.notna().all():
        yield claim("stl:converged", -_per_seed(rows, "late_change").abs(), **about)


def _arm(
    about: dict[str, str], rows: pd.DataFrame, runs: pd.DataFrame, scores: pd.DataFrame
) -> Iterator[dict]:
    arm, metric = about["arm"], rows.metric.iloc[0]
    others = {"none", "all"} if arm in SELECTED and "all" in set(runs.arm) else {"none"}
    for name, other, column in QUESTIONS:
        if other in others and column in runs:
            less = _per_seed(rows, column) - _per_seed(runs[runs.arm == other], column)
            published = math.nan
            if {arm, other} <= set(scores.index) and column in scores:
                published = scores.at[arm, column] - scores.at[other, column]
            yield claim(name, less, published=published, metric=metric, **about)
