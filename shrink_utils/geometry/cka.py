"""Linear centred kernel alignment, and the distance that is made of it."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from shrink_utils.geometry.rows import _same_rows, _unit_scale, _warn
from shrink_utils.topology.arrays import Array, _as_rows, _as_tensor

_NO_HSIC = 1e-12  # an HSIC₁ below this share of its first term is zero up to rounding
_ROUNDING = 1e-9  # how far above 1 `cka_distance` takes for rounding


class _Centred(NamedTuple):
    """What one matrix brings to the comparison."""

    rows: Tensor  # (n, d), column means zero, largest entry one
    squares: Tensor  # (n,), squared lengths of the rows
    gram: Tensor | None  # X Xᵀ, (n, n), where it is smaller than XᵀX
    debiased: bool
    own: float  # HSIC of the matrix with itself


def cka(x: Array, y: Array, *, debiased: bool = False) -> float:
    """Linear centred kernel alignment of two representations of the same samples.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample. Centred here.
    debiased : bool
        From the unbiased estimates of the three HSIC (needs n ≥ 4).

    Returns
    -------
    float
        Biased: in [0, 1], and well above 0 for independent matrices unless n ≫ d. Debiased: in
        [−1, 1], near 0 for independent matrices, slightly negative half the time. Nothing is
        clamped. Invariant to shift, rotation and isotropic scaling of either side; not to other
        linear maps.

    Raises
    ------
    ValueError
        Different numbers of rows, too few, or a matrix whose rows are all identical.

    Warns
    -----
    UserWarning
        Debiased only, with the result NaN: the unbiased HSIC of a matrix with itself is 0 (mutually
        equidistant rows, such as an identity matrix), so there is nothing to divide by.

    Notes
    -----
    Biased: ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖) for centred columns (Kornblith et al. 2019, section 3). Debiased:
    HSIC₁(X, Y) over the root of HSIC₁(X, X) · HSIC₁(Y, Y) (Song et al. 2012). For centred rows with
    squared lengths k_i = ‖x_i‖², l_i = ‖y_i‖² it simplifies to

    n(n − 3) HSIC₁ = ‖XᵀY‖² − n/(n − 2) Σk_i l_i + Σk_i Σl_i / ((n − 1)(n − 2)).

    O(n d_x d_y) time and, for n < d, ‖XᵀY‖² = ⟨X Xᵀ, Y Yᵀ⟩ in O(n² d): the smaller matrix is held.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> round(cka(x, 5 * x + 1), 6), round(cka(x, x[:, :1]), 4)
    (1.0, 0.7071)
    """
    return _compare_cka(
        _prepare_cka(x, "x", debiased=debiased), _prepare_cka(y, "y", debiased=debiased)
    )


def cka_distance(ckas: Array) -> float:
    """Distance between two models of equal depth from the CKA of their layers, √Σ arccos(CKA_l)².

    Parameters
    ----------
    ckas : array_like, shape (layers,)
        CKA of layer l of one model with layer l of the other.

    Returns
    -------
    float
        In radians: 0 for models alike up to rotation and scale, at most π/2 √layers for biased CKA.

    Raises
    ------
    ValueError
        No layers, NaN, or values outside [−1, 1] by more than 1e-9, which rounding does not reach.

    References
    ----------
    Brown et al. 2023; that arccos of CKA is a metric: Williams et al. 2021.

    Examples
    --------
    >>> round(cka_distance([1.0, 0.5, 0.0]), 4)
    1.8879
    """
    values = _as_rows(_as_tensor(ckas, "ckas").reshape(1, -1), name="ckas")
    if values.abs().max() > 1 + _ROUNDING:
        raise ValueError(f"ckas must lie in [−1, 1], got {values.flatten().tolist()}")
    return float(torch.linalg.vector_norm(values.clamp(-1, 1).arccos()))


def _prepare_cka(x: Array, name: str = "x", *, debiased: bool = False) -> _Centred:
    """Centre and scale one matrix, and take its HSIC with itself."""
    rows = _as_rows(x, min_rows=4 if debiased else 2, name=name)
    rows = _unit_scale(rows, center=True, name=name)
    n, d = rows.shape
    gram = rows @ rows.T if n < d else None
    squares = rows.square().sum(dim=1) if gram is None else gram.diagonal()
    prepared = _Centred(rows, squares, gram, debiased, math.nan)
    own, cross = _hsic(prepared, prepared)
    return prepared._replace(own=own if own > _NO_HSIC * cross else 0.0)


def _compare_cka(x: _Centred, y: _Centred) -> float:
    """CKA of two prepared matrices."""
    _same_rows(len(x.rows), len(y.rows))
    if x.own <= 0 or y.own <= 0:
        _warn(
            f"CKA is NaN: the unbiased HSIC of {'x' if x.own <= 0 else 'y'} with itself is 0, as "
            "for mutually equidistant rows, so its alignment with anything is undefined; take more "
            "rows"
        )
        return math.nan
    return _hsic(x, y)[0] / (math.sqrt(x.own) * math.sqrt(y.own))


def _hsic(x: _Centred, y: _Centred) -> tuple[float, float]:
    """n(n − 3) HSIC₁, or (n − 1)² times the biased HSIC₀: the factor cancels in CKA; and ‖XᵀY‖²."""
    if x.gram is not None and y.gram is not None:  # ‖XᵀY‖² = ⟨X Xᵀ, Y Yᵀ⟩
        cross = float(torch.vdot(x.gram.flatten(), y.gram.flatten()))
    else:
        cross = float((x.rows.T @ y.rows).square().sum())
    if not x.debiased:
        return cross, cross
    n, both, apart = len(x.rows), x.squares @ y.squares, x.squares.sum() * y.squares.sum()
    return float(cross - n / (n - 2) * both + apart / ((n - 1) * (n - 2))), cross
