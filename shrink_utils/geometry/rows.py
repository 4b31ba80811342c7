"""What the measures do with their rows and labels before they measure."""

import sys
import warnings
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology.arrays import Array, _refuse_masked


def _as_labels(
    labels: Array, n_rows: int, *, name: str, device: torch.device | str = "cpu"
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
        Another number of labels, NaN among them, labels that cannot be ordered (text beside
        numbers), or masked ones.
    """
    _refuse_masked(labels, name)
    if isinstance(labels, Tensor):
        wide = labels.detach().to_dense().cpu()
        array = (wide.double() if wide.is_floating_point() else wide).numpy()
    else:  # of a list, [1, "a"] stay a number and a text
        array = labels if isinstance(labels, np.ndarray) else np.asarray(labels, dtype=object)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} needs one label per row: {n_rows} rows, got shape {array.shape}")
    try:
        if (array != array).any():  # of pandas' NA, a TypeError
            raise ValueError(f"{name} of shape {array.shape} has NaN labels")
        distinct, index = np.unique(array, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"{name} mixes labels that cannot be ordered: {error}") from error
    return distinct.tolist(), torch.from_numpy(index).to(device)


def _warn(message: str) -> None:
    """Warn at the line, outside of this package, that called into it: it is shown once for each."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals["__name__"].partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _same_rows(n_x: int, n_y: int) -> None:
    """Refuse two matrices, x and y, that cannot be of the same samples."""
    if n_x != n_y:
        raise ValueError(f"x and y must have the same samples as rows, got {n_x} and {n_y} rows")


def _centred(x: Tensor) -> Tensor:
    """Subtract the mean row. Identical rows give exact zeros, and large offsets cost no digits."""
    shifted = x - x[0]
    return shifted.sub_(shifted.mean(dim=0))


def _mean_row(x: Tensor) -> Tensor:
    """Mean row, (d,); from the first row on, so that large offsets cost no digits."""
    return x[0] + (x - x[0]).mean(dim=0)


def _jackknifed(whole: float | Tensor, left_out: np.ndarray | Tensor) -> np.ndarray | Tensor:
    """Pseudo-values nθ − (n − 1)θ₍₋ᵢ₎ of a statistic θ of n units, and of all but unit i, (n,)."""
    n = len(left_out)
    return n * whole - (n - 1) * left_out


def _in_range(values: Tensor, what: str) -> Tensor:
    """Return values that float64 could hold, or raise a ``ValueError``."""
    if not torch.isfinite(values).all():
        raise ValueError(f"{what} of such large entries leave float64; take them in another unit")
    return values


def _unit_scale(x: Tensor, *, center: bool, name: str = "x") -> Tensor:
    """Divide by the largest absolute entry, centred first if asked, for scale-free quantities.

    Where nothing is left to measure (zeros or, centred, identical rows) it is a ``ValueError``.
    """
    x = _by_largest(x)
    if center:
        x = _by_largest(_centred(x))
    if not x.any():
        what = "no variance (all its rows are identical)" if center else "nothing but zeros"
        raise ValueError(f"{name} of shape {tuple(x.shape)} has {what}: the result is undefined")
    return x


def _by_largest(x: Tensor) -> Tensor:
    largest = float(torch.stack(x.aminmax()).abs().max())  # without a copy of the rows
    return x / largest if largest > 0 else x


_PACKAGE = __name__.partition(".")[0]
_CUT = 1e-10  # singular values below this share of the largest are rounding, not directions


class _RankedSVD(NamedTuple):
    """x = basis · diag(sigma) · axes, with r directions."""

    basis: Tensor  # (n, r), orthonormal columns: the space of all centred linear functions of x
    sigma: Tensor  # (r,), descending
    axes: Tensor  # (r, d), orthonormal rows


def _ranked_svd(x: Tensor) -> _RankedSVD:
    """Thin SVD without the directions whose singular value is at most 1e-10 of the largest."""
    basis, sigma, axes = torch.linalg.svd(x, full_matrices=False)
    rank = int((sigma > _CUT * sigma[0]).sum())
    return _RankedSVD(basis[:, :rank], sigma[:rank], axes[:rank])
