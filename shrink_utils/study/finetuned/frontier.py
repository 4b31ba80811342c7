"""The trade-off between task and isotropy: what every arm reaches as its weight grows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from shrink_utils.study.figures import ARM_STYLE

__all__ = ["CELL", "OnSweep", "frontier_figure", "frontier_table", "metric_at", "sweep_of"]

CELL = ["model", "task"]
RUN = [*CELL, "arm", "weight", "seed"]
SCORES = {"centred_1": "first centred score", "raw_1": "first raw score"}


class OnSweep(NamedTuple):
    """A metric read off an arm's sweep.

    Attributes
    ----------
    value : float
        The metric, interpolated where the sweep passes the score, else that of the nearest point.
    passed : bool
        Whether the sweep passes the score.
    """

    value: float
    passed: bool


def frontier_table(summary: pd.DataFrame) -> pd.DataFrame:
    """The runs that a frontier is drawn through, one a row.

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
    """Rows of an arm, and those of ``none`` in front: its weights from 0 up.

    Parameters
    ----------
    frontier : DataFrame
        Of `frontier_table`, of one model and task.
    arm : str
    """
    rows = frontier[frontier.arm.isin(["none", arm])]
    return rows.sort_values(["weight", "seed"])


def metric_at(sweep: pd.DataFrame, score: float, *, column: str = "centred_1") -> OnSweep:
    """The metric that an arm has where its sweep passes an anisotropy score.

    Parameters
    ----------
    sweep : DataFrame
        Of `sweep_of`, of one seed: a row a weight, ascending from 0.
    score : float
        The anisotropy score at which arms are compared.
    column : str
        Which score that is.

    Returns
    -------
    OnSweep
        On the first pair of neighbouring weights that have the score between them, linear in the
        score. A sweep without such a pair gives its point nearest to the score.

    Raises
    ------
    ValueError
        If the sweep is empty or its weights do not ascend: it then holds more than one seed.
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


def frontier_figure(frontier: pd.DataFrame, *, column: str = "centred_1") -> Figure:
    """Task metric against anisotropy, a line an arm through its weights, a panel a model and task.

    Parameters
    ----------
    frontier : DataFrame
        Of `frontier_table`.
    column : str
        The score on the horizontal axis, ``"centred_1"`` or ``"raw_1"``.

    Returns
    -------
    Figure
        Large symbols are means over seeds, larger ones of larger weights, with bars of ± one
        standard deviation; small ones are the runs. Every line begins at ``none``.

    Raises
    ------
    ValueError
        An empty table: no arm was run at several weights.
    """
    if frontier.empty:
        raise ValueError("frontier: empty, the profile sweeps no weights: see `sweep` in its file")
    cells = list(frontier.groupby(CELL, sort=False))
    fig, axes = plt.subplots(
        1, len(cells), figsize=(5.4 * len(cells) + 1.4, 4.4), squeeze=False, sharey=False
    )
    for ax, ((model, task), rows) in zip(axes[0], cells, strict=True):
        for arm in dict.fromkeys(rows.arm):
            _draw_arm(ax, sweep_of(rows, arm), arm, column)
        label = f"{SCORES[column]} (last 30 % of steps)"
        ax.set(title=f"{model} · {task}", xlabel=label, ylabel=rows.metric.iloc[0])
    handles = {}
    for ax in axes[0]:
        found, labels = ax.get_legend_handles_labels()
        handles |= dict(zip(labels, found, strict=True))
    fig.legend(handles.values(), handles, title="arm", loc="outside right center", labelspacing=0.8)
    return fig


def _draw_arm(ax: Axes, sweep: pd.DataFrame, arm: str, column: str) -> None:
    style = ARM_STYLE[arm]
    look = {"marker": style["marker"], "color": style["color"], "linestyle": "none", "gid": arm}
    runs = sweep[sweep.arm == arm]
    ax.plot(runs[column], runs.value, markersize=3, alpha=0.45, **look)
    by_weight = sweep.groupby("weight")[[column, "value"]]
    mean, sd = by_weight.mean(), by_weight.std()
    ax.plot(mean[column], mean.value, color=style["color"], linestyle=style["linestyle"], lw=1.4)
    weights = sorted(runs.weight.unique())
    for i, weight in enumerate(weights):  # the later the larger
        at, error = mean.loc[weight], sd.loc[weight]
        size = 5 + 5 * (i + 1) / len(weights)
        ax.errorbar(
            at[column],
            at.value,
            error.value,
            error[column],
            markersize=size,
            elinewidth=0.6,
            **look,
        )
    ax.plot([], [], label=arm, markersize=7, **{**look, "linestyle": style["linestyle"]})


def _is_swept(rows: pd.DataFrame) -> bool:
    return bool((rows[rows.arm != "none"].groupby("arm").weight.nunique() > 1).any())


def _in(place: dict[str, int]) -> Callable[[pd.Series], pd.Series]:
    """Sort arms by their place, other columns by value."""
    return lambda values: values.map(place) if values.name == "arm" else values
