"""Confidence intervals for scalar measures of rows, by resampling without replacement."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import stats
from torch import Tensor

from shrink_utils.geometry.checks import as_labels, as_rows

__all__ = ["BootstrapInterval", "bootstrap_interval"]


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
    matrices = _read(arrays)
    group = _group_of_rows(groups, len(matrices[0]))  # (n,)
    count = int(group.max()) + 1
    if count < 4:
        raise ValueError(f"groups: {count} to draw from, halves need at least 4")
    value = _finite(measure(*matrices), "all rows")
    rng, kept = np.random.default_rng(seed), count // 2
    resampled = []
    for i in range(n_resamples):
        chosen = np.zeros(count, dtype=bool)
        chosen[rng.permutation(count)[:kept]] = True
        rows = torch.from_numpy(chosen[group])
        resampled.append(_finite(measure(*(x[rows] for x in matrices)), f"resample {i}"))
    stderr = float(np.std(resampled, ddof=1)) * math.sqrt(kept / (count - kept))
    half = float(stats.t.ppf((1 + confidence) / 2, df=count - 1)) * stderr
    return BootstrapInterval(value, value - half, value + half, stderr)


def _read(arrays: tuple[ArrayLike | Tensor, ...]) -> list[Tensor]:
    if not arrays:
        raise ValueError("arrays: none given, expected at least one matrix")
    matrices = [as_rows(x, name=f"arrays[{i}]") for i, x in enumerate(arrays)]
    sizes = [len(x) for x in matrices]
    if len(set(sizes)) > 1:
        raise ValueError(f"arrays must have the same samples as rows, got {sizes} rows")
    return matrices


def _group_of_rows(groups: ArrayLike | Tensor | None, n: int) -> np.ndarray:
    if groups is None:
        return np.arange(n)
    return as_labels(groups, n, name="groups")[1].numpy()


def _finite(value: float, of: str) -> float:
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"measure gave {value} for {of}: it must be a finite number")
    return value
