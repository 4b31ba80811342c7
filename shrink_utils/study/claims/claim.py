"""Verdicts on published claims, computed from paired differences.

A claim says that one condition lowers, raises or does not harm a quantity against another. Its
evidence is one difference a unit (arm − none of one seed; last − first layer of one word), and its
verdict is read off the confidence interval of their mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import pandas as pd
from numpy.typing import ArrayLike

from shrink_utils.study.intervals import Interval, paired_interval

__all__ = ["COLUMNS", "Claim", "Direction", "Verdict", "evaluate", "verdict"]

Direction = Literal["less", "greater", "no_worse"]
Verdict = Literal["replicated", "not replicated", "inconclusive"]
Unit = Literal["seeds", "models", "words", "sentences"]

COLUMNS = "claim source statement task arm published estimate low high n unit floor verdict"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published claim about the mean difference of a quantity between two arms.

    Attributes
    ----------
    id : str
        Short name, unique in the table.
    source : str
        Where it is made, such as "STL §4, Table 3".
    statement : str
        The claim in a sentence.
    direction : {"less", "greater", "no_worse"}
        The claimed sign; "no_worse" is for quantities where higher is better.
    task, arm : str
        Of the fine-tuning that it is about; empty where there is none.
    margin : float
        "no_worse" only: the loss that still counts as none, in units of the quantity.
    published : float or None
        The paper's own difference, where it gives one.
    unit : {"seeds", "models", "words", "sentences"}
        What there is one difference of: the interval speaks of more of these, and of nothing else.
    floor : float or None
        Noise floor: how much the quantity differs between models that differ in their seed alone.
    """

    id: str
    source: str
    statement: str
    direction: Direction
    task: str = ""
    arm: str = ""
    margin: float = 0.0
    published: float | None = None
    unit: Unit = "seeds"
    floor: float | None = None

    def __post_init__(self) -> None:
        _check_direction(self.direction, self.margin)
        if self.unit not in get_args(Unit):
            raise ValueError(f"unit must be one of {get_args(Unit)}, got {self.unit!r}")


def verdict(interval: Interval, direction: Direction, margin: float = 0.0) -> Verdict:
    """Read a verdict off a confidence interval of arm − baseline.

    Parameters
    ----------
    interval : Interval
        Of the mean difference.
    direction : {"less", "greater", "no_worse"}
        What is claimed of the difference.
    margin : float
        "no_worse" only, in units of the difference and not negative: the loss to tolerate.

    Returns
    -------
    {"replicated", "not replicated", "inconclusive"}
        Replicated when the whole interval agrees with the claim, not replicated when the whole of
        it contradicts the claim, else inconclusive.

    Raises
    ------
    ValueError
        An unknown direction, or a margin that is negative, not finite or has no meaning.

    Notes
    -----
    An interval that includes 0 is *inconclusive*, and no evidence that there is no effect: it holds
    differences of both signs, all compatible with what was seen, and with few seeds it is wide
    whatever the truth. Showing an absence takes an interval that lies inside a stated margin, which
    is what "no_worse" asks on one side.
    """
    _check_direction(direction, margin)
    if direction == "less":
        agrees, contradicts = interval.high < 0, interval.low > 0
    else:  # "greater" is "no_worse" without tolerance
        agrees, contradicts = interval.low > -margin, interval.high < -margin
    return "replicated" if agrees else "not replicated" if contradicts else "inconclusive"


def evaluate(
    claims: Iterable[Claim], differences: Callable[[Claim], ArrayLike], *, confidence: float = 0.95
) -> pd.DataFrame:
    """Table of claims: each with its estimate, interval and verdict.

    Parameters
    ----------
    claims : iterable of Claim
        In the order of the table.
    differences : callable
        Gives a claim's paired differences, one a unit.
    confidence : float
        Of the intervals.

    Returns
    -------
    pandas.DataFrame
        Columns claim, source, statement, task, arm, published, estimate, low, high, n, unit,
        floor, verdict; one row a claim. `published` is NaN where the paper gives no number, `floor`
        where none was measured.

    Raises
    ------
    ValueError
        Differences that `paired_interval` refuses; the message names the claim.
    """
    rows = []
    for claim in claims:
        try:
            interval = paired_interval(differences(claim), confidence=confidence)
        except ValueError as error:
            raise ValueError(f"claim {claim.id!r}: {error}") from error
        rows.append(
            {
                "claim": claim.id,
                "source": claim.source,
                "statement": claim.statement,
                "task": claim.task,
                "arm": claim.arm,
                "published": math.nan if claim.published is None else claim.published,
                "estimate": interval.estimate,
                "low": interval.low,
                "high": interval.high,
                "n": interval.n,
                "unit": claim.unit,
                "floor": math.nan if claim.floor is None else claim.floor,
                "verdict": verdict(interval, claim.direction, claim.margin),
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS.split())


def _check_direction(direction: str, margin: float) -> None:
    if direction not in get_args(Direction):
        raise ValueError(f"direction must be one of {get_args(Direction)}, got {direction!r}")
    if not 0 <= margin < math.inf:
        raise ValueError(f"margin must be a finite number, not negative, got {margin}")
    if margin and direction != "no_worse":
        raise ValueError(f'margin {margin} has no meaning for direction "{direction}"')
