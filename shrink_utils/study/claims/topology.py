"""Is topology what helps? Prominent bars against random bars, all bars, and other penalties.

These claims are ours: *Shrink the longest* compares with nothing but all bars. Each is a difference
between prominent bars and another arm, seed by seed. At equal weights arms differ in strength,
since a nat of entropy and a unit of cosine are no common currency; so they are also compared where
they are equally strong, at the anisotropy that prominent bars reach.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from shrink_utils.study.claims.claim import Claim, Direction, evaluate
from shrink_utils.study.claims.stl import MARGIN
from shrink_utils.study.finetuned.frontier import CELL, metric_at, sweep_of

__all__ = ["OTHERS", "topology_claims"]

ARM = "prominent"
OTHERS = {
    "random": "as many random bars",
    "all": "all bars",
    "cosine": "the average cosine",
    "isoscore": "IsoScore*",
    "spectral": "spectral entropy",
    "loops": "prominent loops",
}

Tested = tuple[Claim, pd.Series]  # a claim and its differences, one a seed


def topology_claims(frontier: pd.DataFrame, *, weight: float = 1.0) -> pd.DataFrame:
    """Test every claim on every model and task of the weight sweep.

    Parameters
    ----------
    frontier : DataFrame
        Of `frontier.frontier_table`.
    weight : float
        The weight at which arms are compared, that of the profile's grid.

    Returns
    -------
    DataFrame
        Of `claim.evaluate`; empty without a sweep.

    Raises
    ------
    ValueError
        If an arm lacks a seed that the prominent bars have.
    """
    tested: dict[Claim, pd.Series] = {}
    for (model, task), rows in frontier.groupby(CELL, sort=False):
        at_weight = dict(iter(rows[rows.weight == weight].set_index("seed").groupby("arm")))
        if (ours := at_weight.get(ARM)) is None:
            continue
        where = {"cell": f"{model}:{task}", "task": task}
        for other in (arm for arm in OTHERS if arm in set(rows.arm)):
            _check_seeds(set(ours.index) - set(rows[rows.arm == other].seed), other, where["cell"])
            if other in at_weight:
                found = _at_equal_weight(
                    ours, at_weight[other], other=other, weight=weight, **where
                )
                tested |= dict(found)
            sweep = sweep_of(rows, other)
            tested |= [_at_equal_score(ours, sweep, other=other, weight=weight, **where)]
    return evaluate(tested, tested.__getitem__)


def _check_seeds(missing: set[int], other: str, cell: str) -> None:
    if missing:
        raise ValueError(
            f"frontier: {other} lacks the seeds {sorted(missing)} of {ARM} on {cell}; run it too"
        )


def _at_equal_weight(
    ours: pd.DataFrame, theirs: pd.DataFrame, *, other: str, weight: float, cell: str, task: str
) -> Iterator[Tested]:
    """The score is lower, and the metric no worse, with both arms at one weight."""
    spoken, metric = OTHERS[other], ours.metric.iloc[0]
    yield (
        _claim(
            f"lowers-more:{cell}:{other}",
            f"prominent bars lower the first centred score more than {spoken}, at weight "
            f"{weight:g} each",
            "less",
            task,
        ),
        ours.centred_1 - theirs.centred_1,
    )
    yield (
        _claim(
            f"metric-no-worse:{cell}:{other}",
            f"{metric} with prominent bars is no worse (by {MARGIN}) than with {spoken}, at weight "
            f"{weight:g} each",
            "no_worse",
            task,
            margin=MARGIN,
        ),
        ours.value - theirs.value,
    )


def _at_equal_score(
    ours: pd.DataFrame, sweep: pd.DataFrame, *, other: str, weight: float, cell: str, task: str
) -> Tested:
    """The metric is higher where the other arm's sweep passes the score of the prominent bars."""
    theirs = {
        seed: metric_at(sweep[sweep.seed == seed], ours.centred_1[seed]) for seed in ours.index
    }
    missed = sum(not at.passed for at in theirs.values())
    statement = (
        f"at the first centred score that prominent bars reach at weight {weight:g}, "
        f"{ours.metric.iloc[0]} is higher than with {OTHERS[other]} of the weight that reaches it"
    )
    if missed:
        statement += f" (none does in {missed} of {len(theirs)} seeds: the nearest is taken)"
    claim = _claim(f"matched:{cell}:{other}", statement, "greater", task)
    return claim, ours.value - pd.Series({seed: at.value for seed, at in theirs.items()})


def _claim(
    name: str, statement: str, direction: Direction, task: str, *, margin: float = 0.0
) -> Claim:
    return Claim(
        id=f"topology:{name}",
        source="ours",
        statement=statement,
        direction=direction,
        task=task,
        arm=ARM,
        margin=margin,
    )
