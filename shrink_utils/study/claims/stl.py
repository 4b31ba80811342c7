"""Kudriashov et al. 2025, *Shrink the longest* (STL): what regularization does to fine-tuning.

Scores are of the last 30 % of the steps. The arms ``prominent`` and ``published`` are two readings
of the bars that STL call selected. Profile ``paper`` alone has the models and tasks of Table 3;
where a study lacks them, the mean of the table stands beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.ablation import CELL
from shrink_utils.study.claims.claim import MARGIN, Claim, by_unit, judged

ARM = "prominent"
TABLE3 = "STL Table 3"
SELECTED = (ARM, "published")
DEPARTURES = (
    "AdamW, where STL use Adam; a constant rate after the warm-up, where their code has a cosine "
    "schedule"
)


def with_grades(table: pd.DataFrame) -> pd.DataFrame:
    """With the column ``graded`` (`tables.graded`); without rows to grade, it is the metric."""
    return table if "graded" in table else table.assign(graded=table.value)


def table3(model: str, task: str) -> tuple[pd.DataFrame, str]:
    """STL's Table 3 for a model and task, arms × ``centred_1``, …; and what to call it.

    Its own cell where it has the model and task, else a mean, which tells the size to expect and no
    more: its name then says of how many.
    """
    table = pd.read_csv(data_dir() / "published" / "stl_table3.csv")
    same_model = table[table.model == model.rsplit("/", 1)[-1]]
    table = same_model if len(same_model) else table
    same_task = table[table.task == task]
    near = same_task if len(same_task) else table
    scores = near.assign(name=near.space + "_" + near.k.astype(str))
    scores = scores.groupby(["arm", "name"]).score.mean().unstack()
    for arm in SELECTED:
        scores.loc[arm] = scores.loc["selected"]
    exact = len(same_model) and len(same_task)
    return scores, TABLE3 if exact else f"{TABLE3}, mean of {len(near[CELL].drop_duplicates())}"


def claims_on(model: str, task: str, arm: str, *, beside: str) -> Callable[..., Claim]:
    """Makes claims about an arm; only beside STL's own cell of Table 3 are they a paper's test."""
    kind = "paper's test" if beside == TABLE3 else "scaled test"
    kind = "our control" if arm == "random" else kind
    shared = {"task": task, "arm": arm, "kind": kind, "departures": DEPARTURES}

    def claim(name: str, *rest: object, **more: object) -> Claim:
        return Claim(f"stl:{name}:{model}:{task}:{arm}", *rest, **shared | more)

    return claim


@judged
def stl_claims(summary: pd.DataFrame) -> Iterator[Claim]:
    """On every model and task of the ablation; from `summarize`."""
    for (model, task), runs in with_grades(summary).groupby(CELL, sort=False):
        scores, source = table3(model, task)
        for arm, rows in runs.groupby("arm", sort=False):
            claim = claims_on(model, task, arm, beside=source)
            if arm == "none":
                yield from _rises(claim, rows)
            else:
                yield from _arm(claim, rows, runs, scores, source)


def _rises(claim: Callable[..., Claim], none: pd.DataFrame) -> Iterator[Claim]:
    """Scores of the validation rows, before and after fine-tuning."""
    for space in ("centred", "raw"):
        rise = by_unit(none, f"{space}_after") - by_unit(none, f"{space}_before")
        statement = f"plain fine-tuning raises the first {space} score"
        yield claim(f"rises-{space}", statement, "greater", rise, source="STL §4")


def _arm(
    claim: Callable[..., Claim],
    rows: pd.DataFrame,
    runs: pd.DataFrame,
    scores: pd.DataFrame,
    source: str,
) -> Iterator[Claim]:
    arm, metric = rows.arm.iloc[0], rows.metric.iloc[0]

    def less(column: str, other: str) -> dict:
        """Ours less another arm's, and the paper's own difference."""
        found = by_unit(rows, column) - by_unit(runs[runs.arm == other], column)
        known = {arm, other} <= set(scores.index) and column in scores
        published = scores.at[arm, column] - scores.at[other, column] if known else None
        return {"differences": found, "published": published}

    for space in ("centred", "raw"):
        statement = f"regularization lowers the first {space} score"
        of_none = less(f"{space}_1", "none")
        yield claim(f"lowers-{space}-of-none", statement, "less", source=source, **of_none)
    statement = f"{metric} does not suffer (by {MARGIN})"
    kept = less("graded", "none")
    yield claim("metric-kept", statement, "no_worse", source="STL Table 2", **kept)
    for k, ordinal in ((2, "second"), (3, "third")):
        statement = f"regularization raises the {ordinal} centred score"
        of_none = less(f"centred_{k}", "none")
        yield claim(f"raises-centred-{k}", statement, "greater", source=source, **of_none)
    if arm in SELECTED and "all" in set(runs.arm):
        for space in ("centred", "raw"):
            statement = f"the {space} score is lower with selected bars than with all"
            of_all = less(f"{space}_1", "all")
            yield claim(f"lowers-{space}-of-all", statement, "less", source=source, **of_all)
