"""Affine maps: onto another space, by a rotation or least squares; off a cloud's own directions."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shrink_utils.geometry.rows import (
    _centred,
    _in_range,
    _mean_row,
    _ranked_svd,
    _same_rows,
    _unit_scale,
    _warn,
)
from shrink_utils.topology.arrays import Array, _as_rows, _power_of_two, _whole_number


@dataclass(frozen=True)
class Alignment:
    """An affine map between two spaces, fitted on one set of rows and good for others."""

    matrix: Tensor  # (d_x, d_y), applied to the right of centred rows
    x_mean: Tensor  # (d_x,), of the rows that it was fitted on
    y_mean: Tensor  # (d_y,)

    def __call__(self, x: Array) -> Tensor:
        """Map rows (n, d_x) into the other space, (n, d_y)."""
        x = _as_rows(x)
        if x.shape[1] != len(self.x_mean):
            raise ValueError(f"x needs {len(self.x_mean)} columns, got shape {tuple(x.shape)}")
        return _in_range((x - self.x_mean) @ self.matrix + self.y_mean, "mapped rows")

    def explained(self, x: Array, y: Array) -> float:
        """Share of the variance of y that mapped x explains, 1 − Σ‖Â(x) − y‖² / Σ‖y − ȳ‖².

        ȳ is the mean of the rows of the fit. At most 1; negative where the map does worse than that
        constant. Take held-out rows (n, d_x) and (n, d_y): on those of the fit it flatters the map.
        """
        mapped, y = self(x), _as_rows(y, name="y")
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

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    >>> found = procrustes(x, x @ quarter + 2)
    >>> torch.allclose(found.matrix, quarter.double())
    True
    """
    (x, x_size, x_mean), (y, y_size, y_mean) = _side(x, "x"), _side(y, "y")
    _same_rows(len(x), len(y))
    u, s, vt = torch.linalg.svd(x.T @ y, full_matrices=False)
    matrix = u @ vt  # (d_x, d_y)
    if scaling:
        matrix = matrix * (y_size / x_size * s.sum() / (x @ matrix).square().sum())
    return Alignment(_in_range(matrix, "factors between x and y"), x_mean, y_mean)


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

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    >>> affine(x, 2 * x + 1)([[10.0]]).round()
    tensor([[21.]], dtype=torch.float64)
    """
    (x, x_size, x_mean), (y, y_size, y_mean) = _side(x, "x"), _side(y, "y")
    _same_rows(len(x), len(y))
    n, d = x.shape
    if n - 1 <= d:
        _warn(
            f"x of shape ({n}, {d}) has too few rows for an affine map: with n − 1 ≤ d it goes "
            "through all of them; judge it on other rows"
        )
    svd = _ranked_svd(x)
    if len(svd.sigma) < min(n - 1, d):
        left_out = torch.linalg.matrix_norm(x - svd.basis * svd.sigma @ svd.axes)
        offset = 1 + float(x_mean.abs().max() / x_size)  # entries were rounded before the centring
        if left_out > max(n, d) * torch.finfo(x.dtype).eps * offset * svd.sigma[0]:
            _warn(
                f"x of shape ({n}, {d}) varies in {len(svd.sigma)} direction(s) above 1e-10 of the "
                "longest, and by more than rounding in others, which the map takes to nothing; "
                "scale the columns if they are in different units"
            )
    inverse = svd.axes.T / svd.sigma @ svd.basis.T  # (d_x, n)
    matrix = inverse @ y * (y_size / x_size)
    return Alignment(_in_range(matrix, "factors between x and y"), x_mean, y_mean)


def _side(x: Array, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, size and mean of mean + size · rows, with rows centred and their largest entry one."""
    x = _as_rows(x, min_rows=2, name=name)
    mean = _in_range(_mean_row(x), f"sums of {name}")
    return _unit_scale(x, center=True, name=name), (x - mean).abs().max(), mean


@dataclass(frozen=True)
class Treatment:
    """A map fitted on one cloud and applied to any rows: x ↦ (x − μ_c) − U_cᵀU_c (x − μ_c)."""

    centres: Tensor  # (clusters, d): a row belongs to the nearest, the first of equally near ones
    means: Tensor  # (clusters, d), μ_c
    directions: Tensor  # (clusters, k, d), U_c: orthonormal rows; k = 0 only centres

    def __call__(self, x: Array) -> Tensor:
        """Treat rows (n, d), those of the fit or others; order and units stay."""
        x = _as_rows(x).to(self.means.device)
        cluster = nearest_centre(x, self.centres)  # (n,)
        treated = x - self.means[cluster]
        for c in range(len(self.means)):
            rows = (cluster == c).nonzero().flatten()
            along = treated[rows] @ self.directions[c].T  # (rows, k)
            treated[rows] -= along @ self.directions[c]
        return treated


@dataclass(frozen=True)
class PrincipalAxes:
    """Mean and principal directions of a cloud, or of each cluster of it."""

    centres: Tensor  # (clusters, d)
    means: Tensor  # (clusters, d)
    directions: tuple[Tensor, ...]  # (rank_c, d) each: orthonormal rows by falling variance

    def treatment(self, *, remove: int = 0, skip: int = 0) -> Treatment:
        """The treatment that centres, and removes directions ``skip + 1`` … ``skip + remove``.

        Parameters
        ----------
        remove : int
            How many directions; 0 subtracts the means and nothing else.
        skip : int
            How many of the strongest directions stay: ``skip=k, remove=k`` is the control that
            removes the next k.

        Raises
        ------
        ValueError
            No whole number ≥ 0, or more directions than a cluster varies in.
        """
        remove, skip = _whole_number(remove, "remove"), _whole_number(skip, "skip")
        smallest = min(range(len(self.means)), key=lambda c: len(self.directions[c]))
        rank = len(self.directions[smallest])
        if remove and skip + remove > rank:
            raise ValueError(
                f"remove {remove} after skip {skip}: cluster {smallest} of {len(self.means)} "
                f"varies in {rank} direction(s) only; remove fewer, or fit on more rows or fewer "
                "clusters"
            )
        removed = [found[skip : skip + remove] for found in self.directions]  # (remove, d) each
        return Treatment(self.centres, self.means, torch.stack(removed))


def principal_axes(x: Array, *, centres: Array | None = None) -> PrincipalAxes:
    """Means and principal directions from which the treatments of a cloud are made.

    Parameters
    ----------
    x : array_like, shape (n, d)
        The rows to fit on.
    centres : array_like, shape (clusters, d), optional
        Cluster centres, such as those of k-means; every row of `x` joins the nearest. None takes
        the whole cloud as one cluster.

    Raises
    ------
    ValueError
        Centres of another width than `x`, or a centre to which no row of `x` is nearest.

    Notes
    -----
    The four treatments, with k the number of directions:

    ======================  =======================================================
    zero mean               ``principal_axes(x).treatment()``
    clustered zero mean     ``principal_axes(x, centres=c).treatment()``
    global removal          ``principal_axes(x).treatment(remove=k)``
    cluster-based removal   ``principal_axes(x, centres=c).treatment(remove=k)``
    ======================  =======================================================

    Directions are the right singular vectors of the centred rows (Mu & Viswanath 2018, algorithm
    1; per cluster, Rajaee & Pilehvar 2021), those below 1e-10 of the largest singular value left
    out as rounding. Where singular values coincide they are not unique.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[5.0, 1.0], [-5.0, 1.0], [5.0, -1.0], [-5.0, -1.0]])
    >>> principal_axes(x).treatment(remove=1)(x).abs().round()
    tensor([[0., 1.],
            [0., 1.],
            [0., 1.],
            [0., 1.]], dtype=torch.float64)
    """
    x = _as_rows(x)
    centres = _mean_row(x)[None] if centres is None else _as_rows(centres, name="centres")
    centres = centres.to(x.device)
    cluster = nearest_centre(x, centres)
    sizes = torch.bincount(cluster, minlength=len(centres))
    if not sizes.all():
        raise ValueError(
            f"centres: no row of x is nearest to {int((sizes == 0).sum())} of {len(centres)}, the "
            f"first is centre {int((sizes == 0).nonzero()[0])}; leave it out"
        )
    parts = [x[cluster == c] for c in range(len(centres))]
    return PrincipalAxes(
        centres=centres,
        means=torch.stack([_mean_row(part) for part in parts]),
        directions=tuple(_ranked_svd(_centred(part)).axes for part in parts),
    )


def nearest_centre(x: Array, centres: Array) -> Tensor:
    """Index (n,) of the centre (clusters, d) nearest to each row (n, d); of equals the first."""
    x, centres = _as_rows(x), _as_rows(centres, name="centres")
    if x.shape[1] != centres.shape[1]:
        raise ValueError(
            f"x of shape {tuple(x.shape)} has other columns than the centres, "
            f"{tuple(centres.shape)}"
        )
    unit = max(_power_of_two(x), _power_of_two(centres))  # squares must stay inside float64
    x, centres = x / unit, centres / unit
    # Not by matrix multiplication, which cannot tell centres apart that lie far from the origin.
    distances = torch.cdist(x, centres, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.argmin(dim=1)
