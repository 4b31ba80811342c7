"""The mean over units (seeds, models, words, sentences): its error, interval and p value."""

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from shrink_utils.geometry.rows import _jackknifed


class Interval(NamedTuple):
    """A mean over `n` units and the bounds of its confidence interval."""

    estimate: float
    low: float
    high: float
    n: int


class _Mean(NamedTuple):
    """A mean over `n` units and its standard error, NaN for a single unit."""

    estimate: float
    error: float
    n: int

    def interval(self, confidence: float = 0.95) -> Interval:
        """Student's interval, n − 1 degrees of freedom; of one unit, without bounds."""
        if not 0 < confidence < 1:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
        half = math.inf
        if self.n > 1:
            half = float(stats.t.ppf((1 + confidence) / 2, df=self.n - 1)) * self.error
        return Interval(self.estimate, self.estimate - half, self.estimate + half, self.n)

    def p(self, bound: float = 0.0) -> float:
        """Two-sided p of the hypothesis that the mean is `bound`.

        It lies below .05 exactly where the interval leaves `bound` out. One unit has no p, and
        equal differences have none, since they do not show how far they spread: NaN.
        """
        if self.n == 1 or self.error == 0:
            return math.nan
        return float(2 * stats.t.sf(abs(self.estimate - bound) / self.error, df=self.n - 1))


def _mean_of(differences: ArrayLike) -> _Mean:
    """Mean of differences, one per unit, or one per unit and row.

    Every seed is judged on the same rows, so answers to one row depend on each other, and so do
    answers of one seed. Differences by row therefore have the variance of `_two_way_variance`, and
    speak of other rows as well as of other seeds. It is at least that of seeds or of rows alone,
    which few seeds can fall short of.

    Parameters
    ----------
    differences : array_like, shape (units,) or (units, rows)
        Paired differences; by row, those of correctness.

    Raises
    ------
    ValueError
        No differences, fewer than two rows, another shape, NaN or infinity.
    """
    values = np.asarray(differences, dtype=float)
    if values.ndim not in (1, 2) or len(values) == 0 or (values.ndim == 2 and values.shape[1] < 2):
        raise ValueError(
            f"differences needs one number per unit, or (units, rows), got shape {values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"differences has NaN or infinity: {values.tolist()}")
    n, mean = len(values), float(values.mean())
    if n == 1:
        return _Mean(mean, math.nan, n)
    if values.ndim == 1:
        return _Mean(mean, float(values.std(ddof=1)) / math.sqrt(n), n)
    return _Mean(mean, math.sqrt(max(_two_way_variance(values))), n)


def paired_interval(differences: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Interval of the mean of paired differences: mean ± t · standard error, see `_mean_of`.

    It assumes independent units and a roughly normal mean, and it speaks of the units only: the
    same pretrained model stands behind every one of them. Equal differences give an interval
    without width, which overstates what is known where the quantity moves in coarse steps.
    """
    return _mean_of(differences).interval(confidence)


class _Variances(NamedTuple):
    """Of the mean of (seeds, rows), with clusters by seeds and rows, by seeds and by rows alone."""

    both: float  # can be negative
    seeds: float
    rows: float


def _two_way_variance(values: np.ndarray) -> _Variances:
    """Of the mean of values, shape (seeds, rows): V_seed + V_row − V_cell.

    Each is a sum of squared residuals over clusters, (Σ_g e_g²)/N² · G/(G − 1).

    References
    ----------
    Cameron, Gelbach & Miller 2011, *Robust inference with multiway clustering*.
    """
    residuals = values - values.mean()
    clusters = (residuals.sum(axis=1), residuals.sum(axis=0), residuals.ravel())
    seeds, rows, cells = (
        float((of**2).sum()) / values.size**2 * len(of) / (len(of) - 1) for of in clusters
    )
    return _Variances(seeds + rows - cells, seeds, rows)


def pseudo_values(
    statistic: Callable[[Collection[int]], float], units: Collection[int]
) -> list[float]:
    """One number per unit, whose mean and spread are those of a statistic of all units together.

    n models make n(n − 1)/2 pairs, each model in n − 1 of them: an interval that takes the pairs
    for independent is far too narrow. So models are left out, not pairs. Resampling models with
    replacement will not do either, as it pairs models with themselves.

    Parameters
    ----------
    statistic : callable
        Takes some of the units and gives a number, such as the mean similarity of all pairs.

    Returns
    -------
    list of float
        nθ − (n − 1)θ₍₋ᵢ₎ for each unit i, with θ₍₋ᵢ₎ the statistic without it. The t interval of
        their mean is one for the statistic; for a mean of units they are the units.

    Raises
    ------
    ValueError
        Fewer than 2 units.

    References
    ----------
    Tukey 1958, *Bias and confidence in not quite large samples*; for functions of pairs, Arvesen
    1969, *Jackknifing U-statistics*.
    """
    units = list(units)
    if len(units) < 2:
        raise ValueError(f"units: {len(units)}, expected at least 2")
    left_out = [statistic([other for other in units if other != unit]) for unit in units]
    return _jackknifed(statistic(units), np.array(left_out)).tolist()
