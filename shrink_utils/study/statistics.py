"""The mean over units (seeds, models, words, sentences): its error, interval and p value."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import stats
from torch import Tensor

from shrink_utils.geometry.rows import as_labels
from shrink_utils.topology.arrays import as_rows


class Interval(NamedTuple):
    """A mean over `n` units and the bounds of its confidence interval."""

    estimate: float
    low: float
    high: float
    n: int


class Mean(NamedTuple):
    """A mean over `n` units and its standard error, NaN for a single unit."""

    estimate: float
    error: float
    n: int
    of_rows: float = 0.0  # the part of the squared error that more units do not reduce

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


def mean_of(differences: ArrayLike, *, least: bool = True) -> Mean:
    """Mean of differences, one per unit, or one per unit and row.

    Every seed is judged on the same rows, so answers to one row depend on each other, and so do
    answers of one seed. Differences by row therefore have the variance of `two_way_variance`, and
    speak of other rows as well as of other seeds.

    Parameters
    ----------
    differences : array_like, shape (units,) or (units, rows)
        Paired differences; by row, those of correctness.
    least : bool
        By row: the variance is at least that of seeds or of rows alone, which few seeds can fall
        short of. Without it, only a variance below 0 is replaced.

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
        return Mean(mean, math.nan, n)
    if values.ndim == 1:
        return Mean(mean, float(values.std(ddof=1)) / math.sqrt(n), n)
    found = two_way_variance(values)
    variance = max(found) if least or found.both <= 0 else found.both
    return Mean(mean, math.sqrt(variance), n, of_rows=max(variance - found.seeds, 0.0))


def paired_interval(differences: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Interval of the mean of paired differences: mean ± t · standard error, see `mean_of`.

    It assumes independent units and a roughly normal mean, and it speaks of the units only: the
    same pretrained model stands behind every one of them. Equal differences give an interval
    without width, which overstates what is known where the quantity moves in coarse steps.
    """
    return mean_of(differences).interval(confidence)


class Variances(NamedTuple):
    """Of the mean of (seeds, rows), with clusters by seeds and rows, by seeds and by rows alone."""

    both: float  # can be negative
    seeds: float
    rows: float


def two_way_variance(values: np.ndarray) -> Variances:
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
    return Variances(seeds + rows - cells, seeds, rows)


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


class BootstrapInterval(NamedTuple):
    """A value, the bounds of its confidence interval, and its standard error."""

    value: float
    low: float
    high: float
    stderr: float


def bootstrap_interval(
    measure: Callable[..., float],
    *arrays: ArrayLike | Tensor,
    groups: ArrayLike | Tensor | None = None,
    n_resamples: int = 200,
    confidence: float = 0.95,
    seed: int = 0,
) -> BootstrapInterval:
    """Interval for a scalar measure of matrices whose rows are the same samples.

    Parameters
    ----------
    measure : callable
        Takes as many matrices as there are `arrays`, gives a number; for instance ``cka``.
    *arrays : array_like, each (n, d)
        Row i of all of them is sample i. Rows are drawn from all of them together.
    groups : array_like, shape (n,), optional
        A label per row, such as the sentence of a word. Whole groups are drawn, because rows of one
        group depend on each other. By default every row is its own group.
    n_resamples : int
        At least 2; 200 give the standard error to about 5 %.
    seed : int
        The draws depend on nothing else but the number of groups.

    Returns
    -------
    BootstrapInterval
        ``value`` is the measure of all rows. The interval is symmetric about it and may leave the
        measure's range, where the measure is close to an end of it.

    Raises
    ------
    ValueError
        No arrays, different numbers of rows, fewer than 4 groups, an impossible `confidence` or
        `n_resamples`, or a measure that is NaN.

    Notes
    -----
    Each resample is a random *half* of the groups without replacement (the delete-half jackknife:
    Shao & Wu 1989; Politis & Romano 1994), and the interval is value ± t · s.e., with s.e. the
    standard deviation of the resampled values and Student's t of G − 1 degrees of freedom. For a
    smooth function of means, half of the sample scatters about the whole just as the whole scatters
    about the population; for odd G the factor √(kept / left out) mends the difference.

    Not the ordinary bootstrap: drawing with replacement makes copies of rows, whose distance is 0
    in every representation. RSA and canonical correlations then rise, and the debiased measures
    lose their correction. CCA still needs n/2 well above d_x + d_y.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    if n_resamples < 2:
        raise ValueError(f"n_resamples must be at least 2, got {n_resamples}")
    matrices = [as_rows(x, name=f"arrays[{i}]") for i, x in enumerate(arrays)]
    sizes = {len(x) for x in matrices}
    if len(sizes) != 1:
        raise ValueError(f"arrays must be matrices of the same samples, got {sorted(sizes)} rows")
    (n,) = sizes
    group = np.arange(n) if groups is None else as_labels(groups, n, name="groups")[1].numpy()
    count = int(group.max()) + 1
    if count < 4:
        raise ValueError(f"groups: {count} to draw from, halves need at least 4")
    rng, kept = np.random.default_rng(seed), count // 2
    values = [float(measure(*matrices))]
    for _ in range(n_resamples):
        chosen = np.zeros(count, dtype=bool)
        chosen[rng.permutation(count)[:kept]] = True
        rows = torch.from_numpy(chosen[group])
        values.append(float(measure(*(x[rows] for x in matrices))))
    if not np.isfinite(values).all():
        raise ValueError("measure must give a finite number for all rows and for every half")
    value, resampled = values[0], values[1:]
    stderr = float(np.std(resampled, ddof=1)) * math.sqrt(kept / (count - kept))
    half = float(stats.t.ppf((1 + confidence) / 2, df=count - 1)) * stderr
    return BootstrapInterval(value, value - half, value + half, stderr)
