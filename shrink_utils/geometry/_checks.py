"""What every function of this room does at its door: read the rows, refuse what has no answer."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor


def as_rows(x: ArrayLike | Tensor, *, min_rows: int = 1, min_columns: int = 1) -> Tensor:
    """Read `x` as a finite float64 matrix whose rows are samples, outside of autograd.

    Parameters
    ----------
    x : array_like, shape (n, d)
        A tensor (it stays on its device) or anything that NumPy can view as real numbers.
    min_rows, min_columns : int
        Fewest rows and columns for which the caller's quantity is defined.

    Returns
    -------
    Tensor, shape (n, d), float64
        May share memory with `x`: never write to it.

    Raises
    ------
    ValueError
        Not real numbers, not two-dimensional, too few rows or columns, NaN or infinity.
    """
    if not isinstance(x, Tensor):
        x = _tensor_from_numpy(x)
    shape = tuple(x.shape)
    if x.is_complex():
        raise ValueError(f"x must hold real numbers, got dtype {x.dtype}, shape {shape}")
    if x.ndim != 2:
        raise ValueError(f"x must have two axes (rows, features), got shape {shape}")
    if shape[0] < min_rows or shape[1] < min_columns:
        raise ValueError(
            f"x needs at least {min_rows} row(s) and {min_columns} column(s), got shape {shape}"
        )
    # Apple's MPS has no float64; on every other device the tensor stays where it is.
    x = x.detach().to("cpu" if x.device.type == "mps" else x.device).to(torch.float64)
    bad = int((~torch.isfinite(x)).any(dim=1).sum())
    if bad:
        raise ValueError(f"x of shape {shape} has NaN or infinity in {bad} row(s)")
    return x


def _tensor_from_numpy(x: ArrayLike) -> Tensor:
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"x is not a matrix: {error}") from error
    if array.dtype.kind not in "fiub":
        raise ValueError(f"x must hold real numbers, got dtype {array.dtype}, shape {array.shape}")
    # A copy, because torch accepts neither read-only arrays nor negative strides.
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def centred(x: Tensor) -> Tensor:
    """Subtract the mean row. Identical rows give exact zeros, and large offsets cost no digits."""
    shifted = x - x[0]
    return shifted - shifted.mean(dim=0)


def unit_rows(x: Tensor) -> Tensor:
    """Scale every row to length one.

    Raises
    ------
    ValueError
        A zero row: it has no direction, so no cosine.
    """
    largest = x.abs().amax(dim=1, keepdim=True)
    zero = (largest == 0).flatten()
    if zero.any():
        raise ValueError(
            f"x of shape {tuple(x.shape)} has {int(zero.sum())} zero row(s), the first at row "
            f"{int(zero.nonzero()[0])}: they have no cosine; drop them"
        )
    x = x / largest  # squares of very large or very small entries would leave float64
    return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)


def unit_scale(x: Tensor, *, center: bool) -> Tensor:
    """Divide by the largest absolute entry, centred first if asked, for scale-free quantities.

    Raises
    ------
    ValueError
        Nothing is left to measure: all entries zero or, centred, all rows identical.
    """
    x = _by_largest(x)
    if center:
        x = _by_largest(centred(x))
    if not x.any():
        what = "no variance (all its rows are identical)" if center else "nothing but zeros"
        raise ValueError(f"x of shape {tuple(x.shape)} has {what}: the result is undefined")
    return x


def _by_largest(x: Tensor) -> Tensor:
    largest = x.abs().max()
    return x / largest if largest > 0 else x
