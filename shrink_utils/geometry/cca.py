"""Canonical correlations and their means: CCA, SVCCA, PWCCA."""

from numbers import Real

import torch
from torch import Tensor

from shrink_utils.geometry.rows import _ranked_svd, _RankedSVD, _same_rows, _unit_scale, _warn
from shrink_utils.topology.arrays import Array, _as_rows


def cca(x: Array, y: Array) -> Tensor:
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

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    >>> cca(x, 3 * x.flip(1) + 1).round()
    tensor([1., 1.], dtype=torch.float64)
    """
    return torch.linalg.svdvals(_between(_prepare_cca(x, "x"), _prepare_cca(y, "y")))


def svcca(x: Array, y: Array, *, variance: float = 0.99) -> float:
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
        not to other invertible maps, which change which directions lead.

    Notes
    -----
    Raghu et al. 2017, *SVCCA*, section 2. The share is of variance, Σσ²; the tutorial of the
    authors' code takes it of Σσ, which keeps other directions and gives up to .3 less or more.

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    >>> round(svcca(x, x[:, :1]), 6)
    1.0
    """
    if not isinstance(variance, Real | Tensor) or not 0 < variance <= 1:
        raise ValueError(f"variance must lie above 0 and not above 1, got {variance!r}")
    return _mean_cca(_prepare_svcca(x, "x", variance), _prepare_svcca(y, "y", variance))


def pwcca(x: Array, y: Array, *, symmetric: bool = False) -> float:
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
    correlations coincide, the weights are not unique. The authors' reference implementation gives
    other numbers, .003 to .03 apart: it takes the weights from the side with fewer columns, by
    directions that are not whitened and activations that are not centred.

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    >>> round(pwcca(x, x @ torch.tensor([[2.0, 1.0], [0.0, 1.0]])), 6)
    1.0
    """
    first, second = _prepare_cca(x, "x"), _prepare_cca(y, "y")
    value = _weighted_mean(first, second)
    return (value + _weighted_mean(second, first)) / 2 if symmetric else value


def _prepare_cca(x: Array, name: str = "x") -> _RankedSVD:
    """Decompose one centred matrix."""
    rows = _as_rows(x, min_rows=2, name=name)
    svd = _ranked_svd(_unit_scale(rows, center=True, name=name))
    if len(svd.sigma) < rows.shape[1]:
        _warn(
            f"{name} of shape {tuple(rows.shape)} has {len(svd.sigma)} linearly independent "
            "direction(s) above 1e-10 of the longest, fewer than columns: canonical correlations "
            "are of these alone; scale the columns if they are in different units"
        )
    return svd


def _prepare_svcca(x: Array, name: str = "x", variance: float = 0.99) -> _RankedSVD:
    """Decompose one matrix, and keep the fewest leading directions with this much variance."""
    svd = _prepare_cca(x, name)
    held = svd.sigma.square().cumsum(0)
    # What is left out may be more than the rest by rounding: shares that are just met stay so.
    k = int((held[-1] - held > (1 - variance) * held[-1] * (1 + 1e-12)).sum()) + 1
    return _RankedSVD(svd.basis[:, :k], svd.sigma[:k], svd.axes[:k])


def _weighted_mean(x: _RankedSVD, y: _RankedSVD) -> float:
    """PWCCA of two decomposed matrices, with the weights of the first."""
    variates, rho, _ = torch.linalg.svd(_between(x, y), full_matrices=False)
    # ⟨h_i, x_j⟩ with h = basis · variates and x = basis · diag(σ) · axes. (r, d_x)
    inner = (variates.T * x.sigma) @ x.axes
    weights = inner.abs().sum(dim=1)
    return float(weights @ rho / weights.sum())


def _between(x: _RankedSVD, y: _RankedSVD) -> Tensor:
    """Inner products of two bases of column spaces, (r_x, r_y)."""
    n, rank_x, rank_y = len(x.basis), len(x.sigma), len(y.sigma)
    _same_rows(n, len(y.basis))
    forced = rank_x + rank_y - (n - 1)
    if forced > 0:
        _warn(
            f"x and y have {rank_x} and {rank_y} directions over {n} rows: {forced} canonical "
            "correlation(s) are 1 by counting alone (rank x + rank y > n − 1); take more rows"
        )
    return x.basis.T @ y.basis


def _mean_cca(x: _RankedSVD, y: _RankedSVD) -> float:
    return float(torch.linalg.svdvals(_between(x, y)).mean())
