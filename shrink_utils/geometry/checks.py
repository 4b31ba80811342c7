"""What every function of this room does at its door: read the rows, refuse what has no answer."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor


def as_rows(
    x: ArrayLike | Tensor, *, min_rows: int = 1, min_columns: int = 1, name: str = "x"
) -> Tensor:
    """Read `x` as a finite float64 matrix whose rows are samples, outside of autograd.

    Parameters
    ----------
    x : array_like, shape (n, d)
        A tensor (it stays on its device) or anything that NumPy can view as real numbers.
    min_rows, min_columns : int
        Fewest rows and columns for which the caller's quantity is defined.
    name : str
        What the caller calls this argument, for the message of an error.

    Returns
    -------
    Tensor, shape (n, d), float64
        May share memory with `x`: never write to it.

    Raises
    ------
    ValueError
        Not real numbers, not two-dimensional, too few rows or columns, NaN, infinity, or masked
        entries.
    """
    if not isinstance(x, Tensor):
        x = _tensor_from_numpy(x, name)
    shape = tuple(x.shape)
    if x.is_complex():
        raise ValueError(f"{name} must hold real numbers, got dtype {x.dtype}, shape {shape}")
    if x.ndim != 2:
        raise ValueError(f"{name} must have two axes (rows, features), got shape {shape}")
    if shape[0] < min_rows or shape[1] < min_columns:
        raise ValueError(
            f"{name} needs at least {min_rows} row(s) and {min_columns} column(s), "
            f"got shape {shape}"
        )
    # Apple's MPS has no float64; on every other device the tensor stays where it is.
    x = x.detach().to("cpu" if x.device.type == "mps" else x.device).to(torch.float64)
    bad = int((~torch.isfinite(x)).any(dim=1).sum())
    if bad:
        raise ValueError(f"{name} of shape {shape} has NaN or infinity in {bad} row(s)")
    return x


def refuse_masked(x: object, name: str) -> None:
    """A ``ValueError`` for a masked array with masked entries, which NumPy would unmask."""
    if isinstance(x, np.ma.MaskedArray) and (n := int(np.ma.count_masked(x))):
        raise ValueError(
            f"{name} is a masked array of shape {x.shape} with {n} masked value(s); leave these "
            "rows out or fill them first"
        )


def _tensor_from_numpy(x: ArrayLike, name: str) -> Tensor:
    refuse_masked(x, name)
    try:
        array = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} is not a matrix: {error}") from error
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers, got dtype {array.dtype}, shape {array.shape}"
        )
    # A copy, because torch accepts neither read-only arrays nor negative strides.
    return torch.from_numpy(np.array(array, dtype=np.float64, order="C"))


def as_labels(
    labels: ArrayLike | Tensor, n_rows: int, *, name: str, device: torch.device | str = "cpu"
) -> tuple[list, Tensor]:
    """Read one label per row, such as the row's word or sentence.

    Returns
    -------
    distinct : list
        The different labels, sorted.
    index : Tensor, shape (n_rows,), long
        For each row the place of its label in `distinct`.

    Raises
    ------
    ValueError
        Another number of labels, NaN among them, text beside other labels, labels that cannot be
        ordered, or masked ones.
    """
    refuse_masked(labels, name)
    array = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} needs one label a row: {n_rows} rows, got shape {array.shape}")
    if _has_nan(labels, array):
        raise ValueError(f"{name} of shape {array.shape} has NaN labels")
    if array.dtype.kind == "U" and labels is not array:  # of a list: [1, "a"] are two texts by now
        if other := next((label for label in labels if not isinstance(label, str)), None):
            raise ValueError(f"{name} mixes text with {other!r}; make all labels text, or none")
    try:
        distinct, index = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"{name} mixes labels that cannot be ordered: {error}") from error
    return distinct.tolist(), torch.from_numpy(index).to(device)


def _has_nan(labels: ArrayLike | Tensor, array: np.ndarray) -> bool:
    if array.dtype.kind == "f":
        return bool(np.isnan(array).any())
    if array.dtype.kind not in "OU" or (labels is array and array.dtype.kind == "U"):
        return False
    # Not the array: beside strings, NumPy has made the string "nan" of a NaN.
    return any(isinstance(label, float | np.floating) and np.isnan(label) for label in labels)


def same_rows(n_x: int, n_y: int) -> None:
    """Refuse two matrices, x and y, that cannot be of the same samples."""
    if n_x != n_y:
        raise ValueError(f"x and y must have the same samples as rows, got {n_x} and {n_y} rows")


def centred(x: Tensor) -> Tensor:
    """Subtract the mean row. Identical rows give exact zeros, and large offsets cost no digits."""
    shifted = x - x[0]
    return shifted - shifted.mean(dim=0)


def mean_row(x: Tensor) -> Tensor:
    """Mean row, (d,); from the first row on, so that large offsets cost no digits."""
    return x[0] + (x - x[0]).mean(dim=0)


def unit_rows(x: Tensor, *, name: str = "x") -> Tensor:
    """Scale every row to length one; a zero row, which has no cosine, is a ``ValueError``."""
    largest = x.abs().amax(dim=1, keepdim=True)
    zero = (largest == 0).flatten()
    if zero.any():
        raise ValueError(
            f"{name} of shape {tuple(x.shape)} has {int(zero.sum())} zero row(s), the first at row "
            f"{int(zero.nonzero()[0])}: they have no cosine; drop them"
        )
    x = x / largest  # squares of very large or very small entries would leave float64
    return x / torch.linalg.vector_norm(x, dim=1, keepdim=True)


def power_of_two(x: Tensor) -> float:
    """The largest power of two up to the largest absolute entry, 1 for zeros.

    Dividing by it is exact, and squares of the quotients neither overflow nor vanish.
    """
    largest = float(x.abs().max())
    return math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0


def in_range(values: Tensor, what: str) -> Tensor:
    """Return values that float64 could hold, or raise a ``ValueError``."""
    if not torch.isfinite(values).all():
        raise ValueError(f"{what} of such large entries leave float64; take them in another unit")
    return values


def unit_scale(x: Tensor, *, center: bool, name: str = "x") -> Tensor:
    """Divide by the largest absolute entry, centred first if asked, for scale-free quantities.

    Where nothing is left to measure (zeros or, centred, identical rows) it is a ``ValueError``.
    """
    x = _by_largest(x)
    if center:
        x = _by_largest(centred(x))
    if not x.any():
        what = "no variance (all its rows are identical)" if center else "nothing but zeros"
        raise ValueError(f"{name} of shape {tuple(x.shape)} has {what}: the result is undefined")
    return x


def _by_largest(x: Tensor) -> Tensor:
    largest = x.abs().max()
    return x / largest if largest > 0 else x


_CUT = 1e-10  # singular values below this share of the largest are rounding, not directions


class RankedSVD(NamedTuple):
    """x = basis · diag(sigma) · axes, with r directions."""

    basis: Tensor  # (n, r), orthonormal columns: the space of all centred linear functions of x
    sigma: Tensor  # (r,), descending
    axes: Tensor  # (r, d), orthonormal rows


def ranked_svd(x: Tensor) -> RankedSVD:
    """Thin SVD without the directions whose singular value is at most 1e-10 of the largest."""
    basis, sigma, axes = torch.linalg.svd(x, full_matrices=False)
    rank = int((sigma > _CUT * sigma[0]).sum())
    return RankedSVD(basis[:, :rank], sigma[:rank], axes[:rank])
