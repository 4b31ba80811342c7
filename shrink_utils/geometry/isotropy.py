"""Isotropy from cosines and distances: AvgSim, rogue dimensions, I(W)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.checks import (
    as_labels,
    as_rows,
    centred,
    in_range,
    power_of_two,
    unit_rows,
)


class Estimate(NamedTuple):
    """A value and its standard error (NaN where the sample allows none)."""

    value: float
    stderr: float


def avg_sim(x: ArrayLike | Tensor, *, groups: ArrayLike | Tensor | None = None) -> Estimate:
    """Average cosine similarity between different rows, over all pairs, with its standard error.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples, none of them zero.
    groups : array_like, shape (n,), optional
        A label per row, such as the sentence of a token. Only pairs of rows from different groups
        count, and the jackknife leaves out a group at a time, because rows of one group depend on
        each other. By default every row is its own group.

    Returns
    -------
    Estimate
        ``value`` in [−1, 1]; ``stderr``, the delete-one (group) jackknife standard error, NaN with
        two groups (leaving one out leaves no pair).

    Raises
    ------
    ValueError
        Zero rows, a length of `groups` other than n, or fewer than two groups.

    Notes
    -----
    With x̂ the unit rows, u_s their sum over group s of n_s rows and S = Σ_s u_s,
    value = (‖S‖² − Σ_s‖u_s‖²) / (n² − Σ_s n_s²). Leaving out group g turns the numerator T into
    T − 2⟨S, u_g⟩ + 2‖u_g‖² and the denominator P into P − 2n·n_g + 2n_g²: O(nd) in all.
    Ethayarajh 2019, *How Contextual are Contextualized Word Representations?*, section 3.4.
    """
    value, left_out = _avg_sims(x, groups)
    g = len(left_out)
    if g < 3:
        return Estimate(float(value), math.nan)
    variance = (g - 1) / g * (left_out - left_out.mean()).square().sum()
    return Estimate(float(value), math.sqrt(variance))


def avg_sim_pseudo_values(
    x: ArrayLike | Tensor, *, groups: ArrayLike | Tensor | None = None
) -> Tensor:
    """Jackknife pseudo-values of `avg_sim`, one per group: Gθ − (G − 1)θ₍₋g₎.

    Parameters
    ----------
    x, groups
        As in `avg_sim`, with at least three groups.

    Returns
    -------
    Tensor, shape (groups,), float64
        Sorted by label (rows in their order without groups). Their mean is θ up to the bias that a
        jackknife removes (Tukey 1958), its standard error the one of `avg_sim`. Differences of them
        between two clouds of the same samples are paired, group by group.

    Raises
    ------
    ValueError
        As `avg_sim`, or two groups only.
    """
    value, left_out = _avg_sims(x, groups)
    g = len(left_out)
    if g < 3:
        raise ValueError(f"groups needs at least 3 different labels to leave one out, got {g}")
    return g * value - (g - 1) * left_out


def _avg_sims(x: ArrayLike | Tensor, groups: ArrayLike | Tensor | None) -> tuple[Tensor, Tensor]:
    """The average, (), and the averages without one group after the other, (groups,)."""
    x = unit_rows(as_rows(x, min_rows=2))
    sums, sizes = (x, x.new_ones(len(x))) if groups is None else _group_sums(x, groups)
    n, total = sizes.sum(), sums.sum(dim=0)
    squares = sums.square().sum(dim=1)  # (groups,)
    dots, pairs = products_and_pairs(total, squares.sum(), n, sizes.square().sum())
    left_out = (dots - 2 * (sums @ total - squares)) / (pairs - 2 * (n * sizes - sizes.square()))
    return dots / pairs, left_out


def products_and_pairs(
    total: Tensor, squares: Tensor, n: Tensor, sizes: Tensor
) -> tuple[Tensor, Tensor]:
    """Sum of the cosines between groups and how many they are, from S, Σ‖u_s‖², n and Σn_s²."""
    return total @ total - squares, n**2 - sizes


def _group_sums(x: Tensor, groups: ArrayLike | Tensor) -> tuple[Tensor, Tensor]:
    """Sum of the rows of each group, (groups, d), and how many they are, (groups,)."""
    labels, index = as_labels(groups, len(x), name="groups", device=x.device)
    if len(labels) < 2:
        raise ValueError(f"groups needs at least 2 different labels, got 1 for {len(x)} rows")
    sums = x.new_zeros(len(labels), x.shape[1]).index_add_(0, index, x)
    return sums, torch.bincount(index).to(x.dtype)


def rogue_dimensions(x: ArrayLike | Tensor) -> Tensor:
    """Contribution of each dimension to the average cosine similarity of all pairs.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples, none of them zero; at least two.

    Returns
    -------
    Tensor, shape (d,), float64
        CC_i = ((Σx̂_i)² − Σx̂_i²) / (n² − n), whose sum is ``avg_sim(x).value``. A dimension can
        contribute negatively, though never below −1/(n − 1).

    Raises
    ------
    ValueError
        Zero rows, or fewer than two rows.

    References
    ----------
    Timkey & van Schijndel 2021, *All Bark and No Bite*, equation 3; here over all pairs, not
    sampled ones.
    """
    x = unit_rows(as_rows(x, min_rows=2))
    return contributions(x.sum(dim=0), x.square().sum(dim=0), len(x))


def contributions(total: Tensor, squares: Tensor, n: int | Tensor) -> Tensor:
    """CC of each dimension from Σx̂, Σx̂² and n, (d,)."""
    return (total.square() - squares) / (n * n - n)


def partition_isotropy(x: ArrayLike | Tensor) -> float:
    """Log of the isotropy I(W) = min_c F(c) / max_c F(c), with F(c) = Σ_w exp(⟨w, c⟩).

    Parameters
    ----------
    x : array_like, shape (n, d)
        W: rows are vectors. Neither centred nor scaled here, and the result depends on both.

    Returns
    -------
    float
        log I(W) ≤ 0; 0 is perfect isotropy.

    Notes
    -----
    c runs over both signs of the unit eigenvectors of WᵀW, so that the result does not depend on
    the sign that an eigensolver happens to return. Where non-zero eigenvalues coincide, the
    value is not unique. Mu & Viswanath 2018, *All-but-the-Top*, equation 2; the logarithm because
    I(W) itself underflows on raw vectors of transformers.
    """
    x = as_rows(x)
    scaled = x / power_of_two(x)  # its squares stay in float64, and the axes are those of x
    axes = torch.linalg.eigh(scaled.T @ scaled).eigenvectors
    projections = in_range(x @ axes, "projections of x")  # (n, d)
    log_f = torch.logsumexp(torch.cat([projections, -projections], dim=1), dim=0)  # (2d,)
    return float(log_f.min() - log_f.max())


def mean_squared_distance(x: ArrayLike | Tensor) -> float:
    """Mean squared Euclidean distance over all pairs of different rows, 2 tr C with ddof 1.

    Where it is too large for float64, as for entries of 1e160, it is a ``ValueError``.
    """
    x = as_rows(x, min_rows=2)
    unit = power_of_two(x)
    squared = 2 * centred(x / unit).square().sum() / (len(x) - 1) * unit * unit
    return float(in_range(squared, "squared distances of x"))


def pair_distances(
    x: ArrayLike | Tensor, *, metric: str = "cosine", n_pairs: int = 10_000, seed: int = 0
) -> Tensor:
    """Distances of pairs of different rows, drawn uniformly with replacement.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples; at least two.
    metric : {"cosine", "euclidean"}
        1 − cos, in [0, 2], or the Euclidean distance in units of `x`.
    seed : int
        The draw depends on nothing else but n.

    Returns
    -------
    Tensor, shape (n_pairs,), float64

    Raises
    ------
    ValueError
        Unknown `metric`, `n_pairs` below one or, for cosine, zero rows.
    """
    x = as_rows(x, min_rows=2)
    if metric not in ("cosine", "euclidean"):
        raise ValueError(f'metric must be "cosine" or "euclidean", got {metric!r}')
    if n_pairs < 1:
        raise ValueError(f"n_pairs must be at least 1, got {n_pairs}")
    rng = np.random.default_rng(seed)
    first = rng.integers(len(x), size=n_pairs)
    second = (first + rng.integers(1, len(x), size=n_pairs)) % len(x)  # any row but the first
    unit = power_of_two(x)  # squares of very large or small entries would leave float64
    points = unit_rows(x) if metric == "cosine" else x / unit
    lengths = torch.linalg.vector_norm(points[first] - points[second], dim=1)
    # ‖x̂ − ŷ‖² = 2 − 2 cos, without the cancellation of 1 − cos near zero.
    if metric == "cosine":
        return lengths.square() / 2
    return in_range(lengths * unit, "distances of x")
