"""The trade-off between task and isotropy: what every arm reaches as its weight grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd

from shrink_utils.study.figures import ARM_STYLE

CELL = ["model", "task"]
RUN = [*CELL, "arm", "weight", "seed"]
SCORES = {"centred_1": "first centred score", "raw_1": "first raw score"}


class OnSweep(NamedTuple):
    """A metric read off an arm's sweep."""

    value: float  # interpolated where the sweep passes the score, else of the nearest point
    passed: bool  # whether the sweep passes the score


def frontier_table(summary: pd.DataFrame) -> pd.DataFrame:
    """The runs that a frontier is drawn through, one per row.

    Parameters
    ----------
    summary : DataFrame
        Of `tables.summarize`, of the runs of the grid and of the sweep together; a run may stand
        there twice.

    Returns
    -------
    DataFrame
        Columns model, task, arm, weight, seed, centred_1, raw_1, metric, value, sorted; of the
        models and tasks with an arm at two weights or more. The arm ``none`` has weight 0.

    Raises
    ------
    ValueError
        If a model and task with a sweep lacks the arm ``none``, where every sweep begins.
    """
    table = summary[[*RUN, *SCORES, "metric", "value"]].copy()
    table.loc[table.arm == "none", "weight"] = 0.0
    table = table.drop_duplicates(RUN)
    kept = [rows for _, rows in table.groupby(CELL, sort=False) if _is_swept(rows)]
    for rows in kept:
        if "none" not in set(rows.arm):
            raise ValueError(
                f"summary: {rows.model.iloc[0]} on {rows.task.iloc[0]} has a sweep of weights and "
                "no arm 'none'; add it to the profile's grid"
            )
    place = {arm: i for i, arm in enumerate(ARM_STYLE)}
    ordered = [rows.sort_values(["arm", "weight", "seed"], key=_in(place)) for rows in kept]
    return pd.concat(ordered, ignore_index=True) if ordered else table.iloc[:0]


def sweep_of(frontier: pd.DataFrame, arm: str) -> pd.DataFrame:
    """Rows of an arm, and those of ``none`` in front: its weights from 0 up, of one cell."""
    rows = frontier[frontier.arm.isin(["none", arm])]
    return rows.sort_values(["weight", "seed"])


def metric_at(sweep: pd.DataFrame, score: float, *, column: str = "centred_1") -> OnSweep:
    """The metric that an arm has where its sweep passes an anisotropy score.

    Parameters
    ----------
    sweep : DataFrame
        Of `sweep_of`, of one seed: a row per weight, ascending from 0; else a ``ValueError``.
    score : float
        The value of `column` at which arms are compared.

    Returns
    -------
    OnSweep
        On the first pair of neighbouring weights that have the score between them, linear in the
        score. A sweep without such a pair gives its point nearest to the score.
    """
    if sweep.empty or not (np.diff(sweep.weight) > 0).all():
        raise ValueError(
            f"sweep: needs one row a weight, ascending; got weights {sweep.weight.tolist()}"
        )
    scores, values = sweep[column].to_numpy(), sweep.value.to_numpy()
    for i in range(len(scores) - 1):
        low, high = sorted(scores[i : i + 2])
        if low <= score <= high:
            share = (score - scores[i]) / (scores[i + 1] - scores[i]) if low < high else 0.0
            return OnSweep(float(values[i] + share * (values[i + 1] - values[i])), passed=True)
    nearest = int(np.abs(scores - score).argmin())
    return OnSweep(float(values[nearest]), passed=bool(scores[nearest] == score))


def _is_swept(rows: pd.DataFrame) -> bool:
    return bool((rows[rows.arm != "none"].groupby("arm").weight.nunique() > 1).any())


def _in(place: dict[str, int]) -> Callable[[pd.Series], pd.Series]:
    """Sort arms by their place, other columns by value."""
    return lambda values: values.map(place) if values.name == "arm" else values
