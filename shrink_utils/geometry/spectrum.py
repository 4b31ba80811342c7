"""How variance spreads over directions: quantities of the singular values of a cloud."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.checks import as_rows, unit_scale

__all__ = ["anisotropy", "effective_rank", "iso_score", "participation_ratio"]

UNDEFINED = (
    "the bias-corrected form is undefined for these {n:.0f} rows: it divides by an estimate of "
    "‖C‖_F² that is 0: differences of pairs without a common row are all orthogonal (equidistant "
    "rows, or identical ones but for one); take more rows, or bias_corrected=False"
)


def _gram(x: Tensor) -> Tensor:
    """XXᵀ or XᵀX, whichever is smaller: both have the non-zero σ² as eigenvalues."""
    return x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x


def anisotropy(x: ArrayLike | Tensor, *, k: int = 3, center: bool = False) -> Tensor:
    """First `k` anisotropy scores, σ_k² / Σσ²: the share of each leading direction.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples.
    k : int
        How many scores, at most min(n, d).
    center : bool
        Subtract the mean row first.

    Returns
    -------
    Tensor, shape (k,), float64
        Descending; all min(n, d) of them sum to one.

    Raises
    ------
    ValueError
        `k` outside 1 … min(n, d), or nothing to share out: `x` all zero or, centred, all rows
        identical.

    Notes
    -----
    Kudriashov et al. 2025, *Shrink the longest*, Table 3, after Razzhigaev et al. 2024. From the
    smaller Gram matrix, which a step of training can afford: good to about 1e-16.
    """
    x = as_rows(x)
    check_k(k, min(x.shape), f"for x of shape {tuple(x.shape)}")
    squared = torch.linalg.eigvalsh(_gram(unit_scale(x, center=center))).clamp(min=0).flip(0)
    return leading_shares(squared, k)


def check_k(k: int, most: int, where: str) -> None:
    """Refuse another number of scores than there are."""
    if not 1 <= k <= most:
        raise ValueError(f"k must be between 1 and min(n, d) = {most}, got {k} {where}")


def leading_shares(squared: Tensor, k: int) -> Tensor:
    """σ_k² / Σσ² from all σ², descending: (k,)."""
    return squared[:k] / squared.sum()


def participation_ratio(x: ArrayLike | Tensor, *, bias_corrected: bool = False) -> float:
    """Participation ratio of the covariance, PR = (tr C)² / ‖C‖_F²: how many directions take part.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples; at least two, or four for the corrected form.
    bias_corrected : bool
        Replace both traces by their unbiased estimates.

    Returns
    -------
    float
        Plug-in: between 1 and min(n − 1, d), and far below the population's value unless n ≫ d.
        Corrected: close to the population's value on average, and may leave [1, d].

    Raises
    ------
    ValueError
        Too few rows, or all rows identical. In the corrected form also where the estimate of
        ‖C‖_F² vanishes: mutually equidistant rows, or identical ones but for one.

    Notes
    -----
    The corrected form assumes independent rows with fourth moments and no Gaussian shape. With S
    the sample covariance and Q = Σ‖x_i − x̄‖⁴ / (n − 1),

    - (tr C)² is estimated by f · [(n² − 3n + 1)(tr S)² + 2 tr S² − nQ],
    - ‖C‖_F² by f · [(n − 1)(n − 2) tr S² + (tr S)² − nQ], with f = (n − 1) / (n(n − 2)(n − 3)).

    Each is unbiased; their ratio is so to first order only (Himeno & Yamada 2014, J. Multivariate
    Analysis 130).
    """
    x = unit_scale(as_rows(x, min_rows=4 if bias_corrected else 2), center=True)
    n = x.shape[0]
    squares = x.square().sum(dim=1)  # (n,)
    trace = squares.sum() / (n - 1)
    frobenius, fourth = (_gram(x) / (n - 1)).square().sum(), squares.square().sum()
    fourth = fourth if bias_corrected else None
    return float(trace_ratio(trace.square(), frobenius, fourth, n))


def trace_ratio(
    squared_trace: Tensor, frobenius: Tensor, fourth: Tensor | None, n: int | Tensor
) -> Tensor:
    """PR from (tr S)² and ‖S‖_F²; corrected for bias where Σ‖x_i − x̄‖⁴ is given (f drops out)."""
    if fourth is None:
        return squared_trace / frobenius
    fourth = n * fourth / (n - 1)  # nQ
    above = (n * n - 3 * n + 1) * squared_trace + 2 * frobenius - fourth
    plug_in = (n - 1) * (n - 2) * frobenius + squared_trace
    below = plug_in - fourth
    if below <= 1e-12 * plug_in:  # zero, up to rounding
        raise ValueError(UNDEFINED.format(n=float(n)))
    return above / below


def iso_score(x: ArrayLike | Tensor, *, bias_corrected: bool = False) -> float:
    """IsoScore: the share of the d dimensions that the cloud uses, (PR − 1) / (d − 1).

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples; d ≥ 2.
    bias_corrected : bool
        Use the bias-corrected participation ratio (needs n ≥ 4). The plug-in score of a perfectly
        isotropic cloud is near .5 when n = d; the corrected one is near 1, above it half the time.

    Returns
    -------
    float
        0 for a line, 1 for a covariance that is a multiple of the identity.

    Raises
    ------
    ValueError
        Too few rows or columns, all rows identical, or the corrected form is undefined.

    References
    ----------
    Rudman et al. 2022, *IsoScore*. Their seven steps (PCA, normalized eigenvalues, distance to
    the uniform spectrum) simplify to this.
    """
    x = as_rows(x, min_columns=2)
    return (participation_ratio(x, bias_corrected=bias_corrected) - 1) / (x.shape[1] - 1)


def effective_rank(x: ArrayLike | Tensor, *, center: bool = True) -> float:
    """Effective rank: exp of the entropy of the singular values taken as a distribution, σ/Σσ.

    Parameters
    ----------
    x : array_like, shape (n, d)
    center : bool
        Subtract the mean row first.

    Returns
    -------
    float
        Between 1 and the rank of (centred) `x`.

    Raises
    ------
    ValueError
        `x` all zero or, centred, all rows identical.

    References
    ----------
    Roy & Vetterli 2007, *The effective rank*; Garrido et al. 2023, *RankMe*, equation 1 (without
    its ε: here 0 · ln 0 = 0).
    """
    x = as_rows(x)
    # Not from a Gram matrix: √ of its rounding would count null directions at 1e-8 each.
    return float(entropy_rank(torch.linalg.svdvals(unit_scale(x, center=center))))


def entropy_rank(sigma: Tensor) -> Tensor:
    """exp H(σ/Σσ)."""
    return torch.special.entr(sigma / sigma.sum()).sum().exp()
