"""The confidence interval of a mean over units: seeds, models, words or sentences."""

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


class Interval(NamedTuple):
    """A mean over `n` units and the bounds of its confidence interval."""

    estimate: float
    low: float
    high: float
    n: int


def paired_interval(differences: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Student t interval for the mean of paired differences, one per unit.

    mean ± t · s/√n, s with ddof 1 and t the quantile of Student's distribution with n − 1 degrees
    of freedom. It assumes independent units and a roughly normal mean, and it speaks of the units
    only: the same rows and the same pretrained model stand behind every one of them.

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
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    values = np.asarray(differences, dtype=float)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"differences needs one number per unit, got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"differences has NaN or infinity: {values.tolist()}")
    n, mean = len(values), float(values.mean())
    if n == 1:
        return Interval(mean, -math.inf, math.inf, 1)
    half = float(stats.t.ppf((1 + confidence) / 2, df=n - 1) * values.std(ddof=1) / math.sqrt(n))
    return Interval(mean, mean - half, mean + half, n)


def p_value(interval: Interval, bound: float = 0.0, *, confidence: float = 0.95) -> float:
    """Two-sided p of the hypothesis that the mean is `bound`, from an interval of `confidence`.

    It lies below 1 − `confidence` exactly where the interval leaves `bound` out. One unit has no
    p, and equal differences have none, since they do not show how far they spread: NaN.
    """
    if interval.n == 1 or interval.low == interval.high:
        return math.nan
    quantile = stats.t.ppf((1 + confidence) / 2, df=interval.n - 1)
    error = (interval.high - interval.low) / 2 / quantile
    return float(2 * stats.t.sf(abs(interval.estimate - bound) / error, df=interval.n - 1))


def fisher_z(correlations: ArrayLike) -> np.ndarray:
    """Fisher's z, artanh r: correlations on a scale where their means are roughly normal.

    A t interval of the correlations themselves is symmetric, and can end beyond −1 or 1.
    A correlation of −1 or 1, which has no z, counts as the next number towards 0.

    Raises
    ------
    ValueError
        NaN, or a number beyond −1 or 1.

    References
    ----------
    Fisher 1921, *On the "probable error" of a coefficient of correlation*.
    """
    values = np.asarray(correlations, dtype=float)
    if not (np.abs(values) <= 1).all():
        raise ValueError(f"correlations must lie between −1 and 1, got {values.tolist()}")
    inside = np.nextafter(1.0, 0.0)
    return np.arctanh(values.clip(-inside, inside))


def of_correlations(interval: Interval) -> Interval:
    """An interval of `fisher_z` as one of correlations."""
    estimate, low, high = np.tanh(interval[:3]).tolist()
    return Interval(estimate, low, high, interval.n)


def crossed_interval(
    correct_a: ArrayLike, correct_b: ArrayLike, *, confidence: float = 0.95
) -> Interval:
    """Interval of a difference of accuracies, over more seeds and more rows like these.

    Every seed is judged on the same rows, so answers to one row depend on each other, and so do
    answers of one seed: see `two_way_variance`. With few seeds it can be smaller than the variance
    of seeds or of rows alone; the larger of these two is the least that is taken.

    Parameters
    ----------
    correct_a, correct_b : array_like of bool or float, shape (seeds, rows)
        Whether each seed's model is right on each row, of both arms.

    Returns
    -------
    Interval
        mean(a − b) ± t · s.e., t with seeds − 1 degrees of freedom; `n` is the number of seeds.
        `p_value` has its p. With one seed the bounds are infinite.

    Raises
    ------
    ValueError
        Shapes that differ or are no (seeds, rows), fewer than two rows, NaN or infinity.
    """
    a, b = np.asarray(correct_a, dtype=float), np.asarray(correct_b, dtype=float)
    if a.shape != b.shape or a.ndim != 2 or len(a) == 0 or a.shape[1] < 2:
        raise ValueError(
            f"correct_a and correct_b need one shape (seeds, rows), got {a.shape} and {b.shape}"
        )
    if not np.isfinite(a - b).all():
        raise ValueError("correct_a and correct_b have NaN or infinity")
    n, mean = len(a), float((a - b).mean())
    if n == 1:
        return Interval(mean, -math.inf, math.inf, 1)
    error = math.sqrt(max(two_way_variance(a - b)))
    half = float(stats.t.ppf((1 + confidence) / 2, df=n - 1)) * error
    return Interval(mean, mean - half, mean + half, n)


class Variances(NamedTuple):
    """Of the mean of (seeds, rows), with clusters by seeds and rows, by seeds and by rows alone."""

    both: float  # can be negative
    seeds: float
    rows: float


def two_way_variance(values: np.ndarray) -> Variances:
    """Of the mean of values, shape (seeds, rows): V_seed + V_row − V_cell, by statsmodels.

    Each is a sum of squared residuals over clusters, (Σ_g e_g²)/N² · G/(G − 1).

    References
    ----------
    Cameron, Gelbach & Miller 2011, *Robust inference with multiway clustering*.
    """
    from statsmodels.regression.linear_model import OLS  # a second to import
    from statsmodels.stats.sandwich_covariance import cov_cluster_2groups

    seeds, rows = (index.ravel() for index in np.indices(values.shape))
    fit = OLS(values.ravel(), np.ones(values.size)).fit()
    return Variances(*(cov.item() for cov in cov_cluster_2groups(fit, seeds, rows)))


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
    n = len(units)
    if n < 2:
        raise ValueError(f"units: {n}, expected at least 2")
    whole = statistic(units)
    left_out = [statistic([other for other in units if other != unit]) for unit in units]
    return [n * whole - (n - 1) * value for value in left_out]
