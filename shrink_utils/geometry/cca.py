"""Canonical correlations, and two ways of averaging them."""

from __future__ import annotations

import warnings

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.checks import RankedSVD, as_rows, ranked_svd, same_rows, unit_scale


def cca(x: ArrayLike | Tensor, y: ArrayLike | Tensor) -> Tensor:
    """Canonical correlations: how well linear functions of x and of y can agree.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample. Centred here.

    Returns
    -------
    Tensor, shape (min(rank x, rank y),), float64
        Descending, in [0, 1] up to rounding (1e-14). Invariant to shifts and to invertible linear
        maps of either side.

    Raises
    ------
    ValueError
        Different numbers of rows, fewer than 2, or a matrix whose rows are all identical.

    Warns
    -----
    UserWarning
        A matrix has fewer directions than columns (constant columns, n ≤ d, dependent columns), or
        rank x + rank y > n − 1: then some correlations are 1 by counting alone.

    Notes
    -----
    With Q an orthonormal basis of the centred columns, they are the singular values of Q_xᵀQ_y
    (Hotelling 1936; Björck & Golub 1973). Directions below 1e-10 of the largest singular value are
    rounding and are left out. Even independent matrices have a mean correlation near √(d/n):
    compare with shuffled rows and take n far above d_x + d_y.
    """
    return correlations(prepare_cca(x, "x"), prepare_cca(y, "y"))


def svcca(x: ArrayLike | Tensor, y: ArrayLike | Tensor, *, variance: float = 0.99) -> float:
    """Mean canonical correlation of the principal directions that hold most of the variance.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        As in `cca`, with its errors and warnings.
    variance : float
        In (0, 1]. On each side the fewest leading directions with Σσ² of at least this share stay.

    Returns
    -------
    float
        In [0, 1] up to rounding. Invariant to shift, rotation and isotropic scaling of either side;
        not to other invertible maps, which change which directions lead (Raghu et al. 2017,
        *SVCCA*, section 2).
    """
    if not 0 < variance <= 1:
        raise ValueError(f"variance must lie above 0 and not above 1, got {variance}")
    prepared = [leading(prepare_cca(m, name), variance) for m, name in ((x, "x"), (y, "y"))]
    return float(correlations(*prepared).mean())


def pwcca(x: ArrayLike | Tensor, y: ArrayLike | Tensor, *, symmetric: bool = False) -> float:
    """Projection-weighted mean of the canonical correlations, with the weights of x.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        As in `cca`, with its errors and warnings.
    symmetric : bool
        The mean of PWCCA(x, y) and PWCCA(y, x) instead.

    Returns
    -------
    float
        In [0, 1] up to rounding. Invariant to shifts, to isotropic scaling of either side and to
        invertible linear maps of *y only*: the weights read the columns of x one by one, so that
        even a rotation of x changes them.

    Notes
    -----
    ρ̄ = Σα_iρ_i / Σα_i with α_i = Σ_j |⟨h_i, x_j⟩|, where h_i, of unit length, is the i-th canonical
    variate of x and x_j the j-th column of centred x (Morcos, Raghu & Bengio 2018). Where
    correlations coincide, the weights are not unique.
    """
    first, second = prepare_cca(x, "x"), prepare_cca(y, "y")
    value = weighted_mean(first, second)
    return (value + weighted_mean(second, first)) / 2 if symmetric else value


def prepare_cca(x: ArrayLike | Tensor, name: str = "x") -> RankedSVD:
    """Decompose one centred matrix."""
    rows = as_rows(x, min_rows=2, name=name)
    svd = ranked_svd(unit_scale(rows, center=True, name=name))
    if len(svd.sigma) < rows.shape[1]:
        warnings.warn(
            f"{name} of shape {tuple(rows.shape)} has {len(svd.sigma)} linearly independent "
            "direction(s), fewer than columns: canonical correlations are of these alone",
            stacklevel=3,
        )
    return svd


def leading(svd: RankedSVD, variance: float) -> RankedSVD:
    """Keep the fewest leading directions with this share of the variance."""
    held = svd.sigma.square().cumsum(0)
    k = int((held < variance * held[-1]).sum()) + 1
    return RankedSVD(svd.basis[:, :k], svd.sigma[:k], svd.axes[:k])


def correlations(x: RankedSVD, y: RankedSVD) -> Tensor:
    """Canonical correlations of two decomposed matrices."""
    _check_pair(x, y)
    return torch.linalg.svdvals(x.basis.T @ y.basis)


def weighted_mean(x: RankedSVD, y: RankedSVD) -> float:
    """PWCCA of two decomposed matrices, with the weights of the first."""
    _check_pair(x, y)
    variates, rho, _ = torch.linalg.svd(x.basis.T @ y.basis, full_matrices=False)
    # ⟨h_i, x_j⟩ with h = basis · variates and x = basis · diag(σ) · axes. (r, d_x)
    inner = (variates.T * x.sigma) @ x.axes
    weights = inner.abs().sum(dim=1)
    return float(weights @ rho / weights.sum())


def _check_pair(x: RankedSVD, y: RankedSVD) -> None:
    n, rank_x, rank_y = len(x.basis), len(x.sigma), len(y.sigma)
    same_rows(n, len(y.basis))
    forced = rank_x + rank_y - (n - 1)
    if forced > 0:
        warnings.warn(
            f"x and y have {rank_x} and {rank_y} directions over {n} rows: {forced} canonical "
            "correlation(s) are 1 by counting alone (rank x + rank y > n − 1); take more rows",
            stacklevel=3,
        )
