"""Treatments that make a cloud more isotropic: subtract means, remove dominant directions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry._checks import as_rows, centred

__all__ = ["PrincipalAxes", "Treatment", "nearest_centre", "principal_axes"]

_RANK_CUT = 1e-10  # singular values below this share of the largest are rounding, as in CCA


@dataclass(frozen=True)
class Treatment:
    """A map fitted on one cloud and applied to any rows: x ↦ (x − μ_c) − U_cᵀU_c (x − μ_c).

    Attributes
    ----------
    centres : Tensor, shape (clusters, d)
        A row belongs to the cluster c of the nearest one (the first of equally near ones).
    means : Tensor, shape (clusters, d)
        μ_c, subtracted from the rows of cluster c.
    directions : Tensor, shape (clusters, k, d)
        U_c, orthonormal rows, removed after centring; k = 0 only centres.
    """

    centres: Tensor
    means: Tensor
    directions: Tensor

    def __call__(self, x: ArrayLike | Tensor) -> Tensor:
        """Treat rows, those that the treatment was fitted on or others.

        Parameters
        ----------
        x : array_like, shape (n, d)

        Returns
        -------
        Tensor, shape (n, d), float64
            In the order and units of `x`.

        Raises
        ------
        ValueError
            Another number of columns than the treatment was fitted on.
        """
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
    """Mean and principal directions of a cloud, or of each cluster of it.

    Attributes
    ----------
    centres, means : Tensor, shape (clusters, d)
        As in `Treatment`.
    directions : tuple of Tensor, each of shape (rank_c, d)
        Orthonormal rows by falling variance, one for every direction in which the cluster varies.
    """

    centres: Tensor
    means: Tensor
    directions: tuple[Tensor, ...]

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
            A negative number, or more directions than a cluster varies in.
        """
        if remove < 0 or skip < 0:
            raise ValueError(f"remove and skip must not be negative, got {remove} and {skip}")
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


def principal_axes(
    x: ArrayLike | Tensor, *, centres: ArrayLike | Tensor | None = None
) -> PrincipalAxes:
    """Means and principal directions from which the treatments of a cloud are made.

    Parameters
    ----------
    x : array_like, shape (n, d)
        The rows to fit on.
    centres : array_like, shape (clusters, d), optional
        Cluster centres, such as those of k-means; every row of `x` joins the nearest. None takes
        the whole cloud as one cluster.

    Returns
    -------
    PrincipalAxes

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

    Directions are the right singular vectors of the centred rows, those with singular values above
    1e-10 of the largest: n rows have at most n − 1. Where singular values coincide their directions
    are not unique. Mu & Viswanath print the projection with the uncentred vector; here, as in
    Rajaee & Pilehvar, the mean is gone before.

    References
    ----------
    Mu & Viswanath 2018, *All-but-the-Top*, algorithm 1; Rajaee & Pilehvar 2021a, *A Cluster-based
    Approach for Improving Isotropy in Contextual Embedding Space* (ACL); 2021b, *How Does
    Fine-tuning Affect the Geometry of Embedding Space* (EMNLP Findings).
    """
    x = as_rows(x)
    centres = _mean(x)[None] if centres is None else as_rows(centres, name="centres")
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
        means=torch.stack([_mean(part) for part in parts]),
        directions=tuple(_directions(part) for part in parts),
    )


def nearest_centre(x: ArrayLike | Tensor, centres: ArrayLike | Tensor) -> Tensor:
    """Index of the centre nearest to each row, the first of equally near ones.

    Parameters
    ----------
    x : array_like, shape (n, d)
    centres : array_like, shape (clusters, d)

    Returns
    -------
    Tensor, shape (n,), long

    Raises
    ------
    ValueError
        Different numbers of columns.
    """
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


def _mean(x: Tensor) -> Tensor:
    """Mean row; from the first row on, so that large offsets cost no digits."""
    return x[0] + (x - x[0]).mean(dim=0)


def _directions(x: Tensor) -> Tensor:
    _, sigma, v = torch.linalg.svd(centred(x), full_matrices=False)  # v: (min(n, d), d)
    return v[: int((sigma > _RANK_CUT * sigma[0]).sum())]
