"""Elongated directions of a cloud, and the removal of dominant ones, globally or by cluster."""

from dataclasses import dataclass
from numbers import Real

import torch
from torch import Tensor

from shrink_utils.geometry.isotropy import anisotropy
from shrink_utils.geometry.rows import centred, mean_row, ranked_svd
from shrink_utils.topology.arrays import Array, as_rows, whole_number


def elongated_directions(x: Array, *, ratio: float = 5.0) -> int:
    """How many eigenvalues of the covariance exceed `ratio` times their mean.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples; at least two.
    ratio : float
        Above 0.

    Returns
    -------
    int
        At most d / `ratio`, because all eigenvalues together are d means.

    Raises
    ------
    ValueError
        Fewer than two rows, all rows identical, or an impossible `ratio`.

    Notes
    -----
    The mean is over all d eigenvalues, those that are zero too. The largest eigenvalue of n ≫ 1
    isotropic rows is near (1 + √(d/n))² means (Marchenko & Pastur), above 5 when n < .65 d: take
    n ≥ d, and show an isotropic cloud of the same shape beside it. After Rajaee & Pilehvar 2021.
    """
    if not isinstance(ratio, Real | Tensor) or not ratio > 0:
        raise ValueError(f"ratio must be a number above 0, got {ratio!r}")
    x = as_rows(x, min_rows=2)
    shares = anisotropy(x, k=min(x.shape), center=True)  # of the sum, d means
    return int((shares * x.shape[1] > ratio).sum())


@dataclass(frozen=True)
class Treatment:
    """A map fitted on one cloud and applied to any rows: x ↦ (x − μ_c) − U_cᵀU_c (x − μ_c)."""

    centres: Tensor  # (clusters, d): a row belongs to the nearest, the first of equally near ones
    means: Tensor  # (clusters, d), μ_c
    directions: Tensor  # (clusters, k, d), U_c: orthonormal rows; k = 0 only centres

    def __call__(self, x: Array) -> Tensor:
        """Treat rows (n, d), those of the fit or others; order and units stay."""
        x = as_rows(x).to(self.means.device)
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
        remove, skip = whole_number(remove, "remove"), whole_number(skip, "skip")
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
    """
    x = as_rows(x)
    centres = mean_row(x)[None] if centres is None else as_rows(centres, name="centres")
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
        means=torch.stack([mean_row(part) for part in parts]),
        directions=tuple(ranked_svd(centred(part)).axes for part in parts),
    )


def nearest_centre(x: Array, centres: Array) -> Tensor:
    """Index (n,) of the centre (clusters, d) nearest to each row (n, d); of equals the first."""
    x, centres = as_rows(x), as_rows(centres, name="centres")
    if x.shape[1] != centres.shape[1]:
        raise ValueError(
            f"x of shape {tuple(x.shape)} has other columns than the centres, "
            f"{tuple(centres.shape)}"
        )
    largest = torch.maximum(x.abs().max(), centres.abs().max())
    if largest > 0:  # squares of very small or large entries would leave float64
        x, centres = x / largest, centres / largest
    # Not by matrix multiplication, which cannot tell centres apart that lie far from the origin.
    distances = torch.cdist(x, centres, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.argmin(dim=1)
