"""07 and 07b: what arms cost and gain, by step, in pairs, and as frontiers over their weights."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from shrink_utils.study.config import ARMS
from shrink_utils.study.run_tables import RUN, TASK_OF_MODEL


class FrontierPoint(NamedTuple):
    """A point between two of a sweep: `share` of the way from the first to the second."""

    first: int
    second: int
    share: float
    passed: bool  # whether the sweep passes the score

    def of(self, values: Sequence) -> float | np.ndarray:
        """What the point has of a quantity that each point of the sweep has a value of."""
        first, second = list(values)[self.first], list(values)[self.second]
        return first + self.share * (second - first)


def frontier_table(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that a frontier is drawn through, one per row.

    Parameters
    ----------
    runs : DataFrame
        The table ``runs``, of the grid and of the sweep together; a run may stand there twice.

    Returns
    -------
    DataFrame
        Columns model, task, arm, weight, seed, centred_1, raw_1, metric, value (and ``graded``, if
        `tables.add_correctness` has added it), sorted; of the models and tasks with an arm at two
        weights or more. The arm ``none`` has weight 0.

    Raises
    ------
    ValueError
        If a model and task with a sweep lacks the arm ``none``, where every sweep begins.
    """
    table = runs.filter([*RUN, "centred_1", "raw_1", "metric", "value", "graded"])
    table.loc[table.arm == "none", "weight"] = 0.0
    table = table.drop_duplicates(RUN)
    kept = []
    for (model, task), rows in table.groupby(TASK_OF_MODEL, sort=False):
        n_weights = rows[rows.arm != "none"].groupby("arm").weight.nunique()
        if (n_weights > 1).any():
            if "none" not in set(rows.arm):
                raise ValueError(
                    f"runs: {model} on {task} has a sweep of weights and no arm 'none'; add it "
                    "to the profile's grid"
                )
            kept.append(rows.sort_values(["arm", "weight", "seed"], key=_in_order))
    return pd.concat(kept, ignore_index=True) if kept else table.iloc[:0]


def _in_order(column: pd.Series) -> pd.Series:
    """What sorts a column: of arms their place in `ARMS`."""
    return column.map([*ARMS].index) if column.name == "arm" else column


def sweep_of(frontier: pd.DataFrame, arm: str) -> pd.DataFrame:
    """Rows of an arm, and those of ``none`` in front: its weights from 0 up, of one cell."""
    rows = frontier[frontier.arm.isin(["none", arm])]
    return rows.sort_values(["weight", "seed"])


def interpolate_frontier(scores: ArrayLike, score: float) -> FrontierPoint:
    """Where an arm's sweep, by weight from 0 up, passes a score.

    On the first pair of neighbouring weights that have the score between them, linear in the
    score. A sweep without such a pair gives its point nearest to the score.
    """
    scores = np.asarray(scores)
    for i in range(len(scores) - 1):
        low, high = sorted(scores[i : i + 2])
        if low <= score <= high:
            share = (score - scores[i]) / (scores[i + 1] - scores[i]) if low < high else 0.0
            return FrontierPoint(i, i + 1, float(share), passed=True)
    nearest = int(np.abs(scores - score).argmin())
    return FrontierPoint(nearest, nearest, 0.0, passed=bool(scores[nearest] == score))
