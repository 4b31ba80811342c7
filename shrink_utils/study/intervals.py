"""The confidence interval of a mean over units: seeds, models, words or sentences."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

__all__ = ["Interval", "paired_interval"]


class Interval(NamedTuple):
    """A mean over `n` units and the bounds of its confidence interval."""

    estimate: float
    low: float
    high: float
    n: int


def paired_interval(differences: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Student t interval for the mean of paired differences, one a unit.

    Parameters
    ----------
    differences : array_like, shape (n,)
        One condition minus the other, of the same unit: seed, word or sentence.
    confidence : float
        Between 0 and 1.

    Returns
    -------
    Interval
        With one unit the bounds are infinite: a single difference says nothing about its spread.
        Equal differences give an interval without width, which overstates what is known where the
        quantity moves in coarse steps.

    Raises
    ------
    ValueError
        No differences, more than one axis, NaN or infinity, or an impossible `confidence`.

    Notes
    -----
    mean ± t · s/√n, s with ddof 1 and t the quantile of Student's distribution with n − 1 degrees
    of freedom. It assumes independent units and a roughly normal mean, and it speaks of the units
    only: the same rows and the same pretrained model stand behind every one of them.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    values = np.asarray(differences, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"differences needs one number a unit, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"differences has NaN or infinity: {values.tolist()}")
    n, mean = len(values), float(values.mean())
    if n == 1:
        return Interval(mean, -math.inf, math.inf, 1)
    half = float(stats.t.ppf((1 + confidence) / 2, df=n - 1) * values.std(ddof=1) / math.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)
