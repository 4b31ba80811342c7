"""Affine maps between two spaces: the closest rotation, and least squares."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shrink_utils.geometry.rows import in_range, mean_row, ranked_svd, same_rows, unit_scale, warn
from shrink_utils.topology.arrays import Array, as_rows


@dataclass(frozen=True)
class Alignment:
    """An affine map between two spaces, fitted on one set of rows and good for others."""

    matrix: Tensor  # (d_x, d_y), applied to the right of centred rows
    x_mean: Tensor  # (d_x,), of the rows that it was fitted on
    y_mean: Tensor  # (d_y,)

    def __call__(self, x: Array) -> Tensor:
        """Map rows (n, d_x) into the other space, (n, d_y)."""
        x = as_rows(x)
        if x.shape[1] != len(self.x_mean):
            raise ValueError(f"x needs {len(self.x_mean)} columns, got shape {tuple(x.shape)}")
        return in_range((x - self.x_mean) @ self.matrix + self.y_mean, "mapped rows")

    def explained(self, x: Array, y: Array) -> float:
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


def procrustes(x: Array, y: Array, *, scaling: bool = False) -> Alignment:
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
    (x, x_size, x_mean), (y, y_size, y_mean) = _side(x, "x"), _side(y, "y")
    same_rows(len(x), len(y))
    u, s, vt = torch.linalg.svd(x.T @ y, full_matrices=False)
    matrix = u @ vt  # (d_x, d_y)
    if scaling:
        matrix = matrix * (y_size / x_size * s.sum() / (x @ matrix).square().sum())
    return Alignment(in_range(matrix, "factors between x and y"), x_mean, y_mean)


def affine(x: Array, y: Array) -> Alignment:
    """The affine map of x that is closest to y in least squares.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample.

    Returns
    -------
    Alignment
        Of all least-squares solutions that of least norm: directions in which the rows of the fit
        do not vary, or by a singular value below 1e-10 of the largest, are mapped to nothing.

    Raises
    ------
    ValueError
        Different numbers of rows, fewer than 2, or a matrix whose rows are all identical.

    Warns
    -----
    UserWarning
        n − 1 ≤ d_x: the map then goes through the rows of the fit, whatever they are, and only
        other rows can tell whether it means anything. Or some of what is below 1e-10 is more than
        rounding, as where columns are in very different units: scale the columns then.
    """
    (x, x_size, x_mean), (y, y_size, y_mean) = _side(x, "x"), _side(y, "y")
    same_rows(len(x), len(y))
    n, d = x.shape
    if n - 1 <= d:
        warn(
            f"x of shape ({n}, {d}) has too few rows for an affine map: with n − 1 ≤ d it goes "
            "through all of them; judge it on other rows"
        )
    svd = ranked_svd(x)
    if len(svd.sigma) < min(n - 1, d):
        left_out = torch.linalg.matrix_norm(x - svd.basis * svd.sigma @ svd.axes)
        offset = 1 + float(x_mean.abs().max() / x_size)  # entries were rounded before the centring
        if left_out > max(n, d) * torch.finfo(x.dtype).eps * offset * svd.sigma[0]:
            warn(
                f"x of shape ({n}, {d}) varies in {len(svd.sigma)} direction(s) above 1e-10 of the "
                "longest, and by more than rounding in others, which the map takes to nothing; "
                "scale the columns if they are in different units"
            )
    inverse = svd.axes.T / svd.sigma @ svd.basis.T  # (d_x, n)
    matrix = inverse @ y * (y_size / x_size)
    return Alignment(in_range(matrix, "factors between x and y"), x_mean, y_mean)


def _side(x: Array, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, size and mean of mean + size · rows, with rows centred and their largest entry one."""
    x = as_rows(x, min_rows=2, name=name)
    mean = in_range(mean_row(x), f"sums of {name}")
    return unit_scale(x, center=True, name=name), (x - mean).abs().max(), mean
