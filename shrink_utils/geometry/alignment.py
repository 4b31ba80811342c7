"""Carry one space onto another: by a rotation, or by any affine map."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.checks import (
    as_rows,
    in_range,
    mean_row,
    ranked_svd,
    same_rows,
    unit_scale,
)

__all__ = ["Alignment", "affine", "procrustes"]


@dataclass(frozen=True)
class Alignment:
    """An affine map between two spaces, fitted on one set of rows and good for others."""

    matrix: Tensor  # (d_x, d_y), applied to the right of centred rows
    x_mean: Tensor  # (d_x,), of the rows that it was fitted on
    y_mean: Tensor  # (d_y,)

    def __call__(self, x: ArrayLike | Tensor) -> Tensor:
        """Map rows (n, d_x) into the other space, (n, d_y)."""
        x = as_rows(x)
        if x.shape[1] != len(self.x_mean):
            raise ValueError(f"x needs {len(self.x_mean)} columns, got shape {tuple(x.shape)}")
        return in_range((x - self.x_mean) @ self.matrix + self.y_mean, "mapped rows")

    def explained(self, x: ArrayLike | Tensor, y: ArrayLike | Tensor) -> float:
        """Share of the variance of y that mapped x explains, 1 − Σ‖Â(x) − y‖² / Σ‖y − ȳ‖².

        ȳ is the mean of the rows of the fit. At most 1; negative where the map does worse than that
        constant. Take held-out rows (n, d_x) and (n, d_y): on those of the fit it flatters the map.
        """
        mapped, y = self(x), as_rows(y, name="y")
        if mapped.shape != y.shape:
            raise ValueError(
                f"y needs shape {tuple(mapped.shape)} to go with x, got {tuple(y.shape)}"
            )
        size = (y - self.y_mean).abs().max()
        if size == 0:
            raise ValueError(f"y of shape {tuple(y.shape)} does not differ from the fitted mean")
        missed, spread = (mapped - y) / size, (y - self.y_mean) / size
        return float(1 - missed.square().sum() / spread.square().sum())


def procrustes(x: ArrayLike | Tensor, y: ArrayLike | Tensor, *, scaling: bool = False) -> Alignment:
    """The rotation (or reflection) that carries x closest to y, means onto each other.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample.
    scaling : bool
        Also fit one factor for all lengths. By default none is fitted: distances stay as they are.

    Raises
    ------
    ValueError
        Different numbers of rows, fewer than 2, or a matrix whose rows are all identical.

    Notes
    -----
    With centred X, Y and XᵀY = U S Vᵀ, the matrix is R = U Vᵀ, times tr S / ‖X R‖² when scaling
    (Schönemann 1966; Schönemann & Carroll 1970). Spaces of different width: R has orthonormal rows
    or columns, whichever are fewer. For d_x > d_y it is the rotation that is best when y is padded
    with zero columns; what of x it moves into the padding is dropped.
    """
    x, y = _side(x, "x"), _side(y, "y")
    same_rows(len(x.rows), len(y.rows))
    u, s, vt = torch.linalg.svd(x.rows.T @ y.rows, full_matrices=False)
    matrix = u @ vt  # (d_x, d_y)
    if scaling:
        matrix = matrix * (y.size / x.size * s.sum() / (x.rows @ matrix).square().sum())
    return Alignment(in_range(matrix, "factors between x and y"), x.mean, y.mean)


def affine(x: ArrayLike | Tensor, y: ArrayLike | Tensor) -> Alignment:
    """The affine map of x that is closest to y in least squares.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample.

    Returns
    -------
    Alignment
        Of all least-squares solutions that of least norm: directions in which the rows of the fit
        do not vary are mapped to nothing.

    Raises
    ------
    ValueError
        Different numbers of rows, fewer than 2, or a matrix whose rows are all identical.

    Warns
    -----
    UserWarning
        n − 1 ≤ d_x: the map then goes through the rows of the fit, whatever they are, and only
        other rows can tell whether it means anything.
    """
    x, y = _side(x, "x"), _side(y, "y")
    same_rows(len(x.rows), len(y.rows))
    n, d = x.rows.shape
    if n - 1 <= d:
        warnings.warn(
            f"x of shape ({n}, {d}) has too few rows for an affine map: with n − 1 ≤ d it goes "
            "through all of them; judge it on other rows",
            stacklevel=2,
        )
    svd = ranked_svd(x.rows)
    inverse = svd.axes.T / svd.sigma @ svd.basis.T  # (d_x, n)
    matrix = inverse @ y.rows * (y.size / x.size)
    return Alignment(in_range(matrix, "factors between x and y"), x.mean, y.mean)


class _Side(NamedTuple):
    """One matrix as mean + size · rows, with rows centred and their largest entry one."""

    rows: Tensor
    size: Tensor
    mean: Tensor


def _side(x: ArrayLike | Tensor, name: str) -> _Side:
    x = as_rows(x, min_rows=2, name=name)
    mean = in_range(mean_row(x), f"sums of {name}")
    return _Side(unit_scale(x, center=True, name=name), (x - mean).abs().max(), mean)
