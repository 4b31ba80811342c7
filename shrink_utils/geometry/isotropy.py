"""How evenly directions are taken: cosines between rows, and the partition function."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry._checks import as_labels, as_rows, unit_rows

__all__ = [
    "Estimate",
    "avg_sim",
    "avg_sim_pseudo_values",
    "partition_isotropy",
    "rogue_dimensions",
]


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
        A label a row, such as the sentence of a token. Only pairs of rows from different groups
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

    References
    ----------
    Ethayarajh 2019, *How Contextual are Contextualized Word Representations?*, section 3.4;
    Vázquez et al. 2021.
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
    """Jackknife pseudo-values of `avg_sim`, one a group: what each group has to say about it.

    Parameters
    ----------
    x, groups
        As in `avg_sim`, with at least three groups.

    Returns
    -------
    Tensor, shape (groups,), float64
        Gθ − (G − 1)θ₍₋g₎ for each of the G groups, sorted by label (rows in their order without
        groups): θ is the average, θ₍₋g₎ the same without group g. Their mean is θ up to the bias
        that a jackknife removes, its standard error the one of `avg_sim`. Differences of them
        between two clouds of the same samples are paired, group by group.

    Raises
    ------
    ValueError
        As `avg_sim`, or two groups only.

    References
    ----------
    Tukey 1958, *Bias and confidence in not quite large samples*.
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
    dots, pairs = total @ total - squares.sum(), n**2 - sizes.square().sum()
    left_out = (dots - 2 * (sums @ total - squares)) / (pairs - 2 * (n * sizes - sizes.square()))
    return dots / pairs, left_out


def _group_sums(x: Tensor, groups: ArrayLike | Tensor) -> tuple[Tensor, Tensor]:
    """Sum of the rows of each group, (groups, d), and how many they are, (groups,)."""
    labels, index = as_labels(groups, len(x), name="groups", device=x.device)
    if len(labels) < 2:
        raise ValueError(f"groups needs at least 2 different labels, got 1 for {len(x)} rows")
    sums = x.new_zeros(len(labels), x.shape[1]).index_add_(0, index, x)
    return sums, torch.bincount(index).to(x.dtype)


def rogue_dimensions(x: ArrayLike | Tensor) -> Tensor:
    """Exact contribution of each dimension to the average cosine similarity.

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
    Timkey & van Schijndel 2021, *All Bark and No Bite: Rogue Dimensions in Transformer Language
    Models Obscure Representational Quality*, equation 3; here over all pairs, not sampled ones.
    """
    x = unit_rows(as_rows(x, min_rows=2))
    n = len(x)
    return (x.sum(dim=0).square() - x.square().sum(dim=0)) / (n * n - n)


def partition_isotropy(x: ArrayLike | Tensor) -> float:
    """Logarithm of I(W) = min_c F(c) / max_c F(c), with the partition function F(c) = Σ_w exp(w·c).

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
    eigenvectors and with them the value are not unique; any basis of the null space gives F = n.

    References
    ----------
    Mu & Viswanath 2018, *All-but-the-Top*, equation 2 (after Arora et al. 2016); the logarithm
    because I(W) itself underflows on raw vectors of transformers.
    """
    x = as_rows(x)
    projections = x @ torch.linalg.eigh(x.T @ x).eigenvectors  # (n, d)
    log_f = torch.logsumexp(torch.cat([projections, -projections], dim=1), dim=0)  # (2d,)
    return float(log_f.min() - log_f.max())
