"""Intervals for what is computed from pairs of models: models are left out, not pairs."""

from __future__ import annotations

from collections.abc import Callable, Collection

__all__ = ["pseudo_values"]


def pseudo_values(
    statistic: Callable[[Collection[int]], float], units: Collection[int]
) -> list[float]:
    """One number a unit, whose mean and spread are those of a statistic of all units together.

    Parameters
    ----------
    statistic : callable
        Takes some of the units and gives a number, such as the mean similarity of all pairs.
    units : collection of int
        The models that the statistic is computed from; at least 2, and as many as leave the
        statistic something to compute when one is left out.

    Returns
    -------
    list of float
        nθ − (n − 1)θ₍₋ᵢ₎ for each unit i, with θ₍₋ᵢ₎ the statistic without it. The t interval of
        their mean (`intervals.paired_interval`) is one for the statistic.

    Raises
    ------
    ValueError
        Fewer than 2 units.

    Notes
    -----
    n models make n(n − 1)/2 pairs, each model in n − 1 of them: an interval that takes the pairs
    for independent is far too narrow. For a mean of units the pseudo-values are the units.
    Resampling models with replacement will not do either, as it pairs models with themselves.

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
