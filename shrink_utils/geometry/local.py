"""Local geometry: measures inside clusters, and how many directions are far too long."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry._checks import as_labels, as_rows, centred
from shrink_utils.geometry.spectrum import anisotropy

__all__ = ["LocalMeasure", "by_cluster", "elongated_directions"]


class LocalMeasure(NamedTuple):
    """A measure taken inside clusters.

    Attributes
    ----------
    value : float
        Mean over the clusters measured, weighted by their rows.
    per_cluster : Tensor, shape (clusters,), float64
        In the order of the sorted labels; NaN for a cluster that was left out.
    sizes : Tensor, shape (clusters,), long
        Rows of each cluster.
    """

    value: float
    per_cluster: Tensor
    sizes: Tensor


def by_cluster(
    measure: Callable[[Tensor], float],
    x: ArrayLike | Tensor,
    labels: ArrayLike | Tensor,
    *,
    min_rows: int = 2,
) -> LocalMeasure:
    """A measure of each cluster after subtracting the cluster's own mean, and their mean.

    Parameters
    ----------
    measure : callable
        Takes the centred rows of a cluster, (n_c, d) float64, and returns a number.
    x : array_like, shape (n, d)
        Rows are samples.
    labels : array_like, shape (n,)
        The cluster of each row, such as the labels of k-means.
    min_rows : int
        Smaller clusters are left out, with a warning.

    Returns
    -------
    LocalMeasure

    Raises
    ------
    ValueError
        Another number of labels than rows, a missing label, or no cluster with `min_rows` rows;
        and whatever `measure` raises.

    Notes
    -----
    Clusters hold few rows, and most measures are biased there: IsoScore and the effective rank
    cannot exceed what n_c − 1 directions allow. Compare clouds at equal sizes, or use a corrected
    form. AvgSim says nothing here: centred rows give values near 0 whatever their shape.

    References
    ----------
    Cai et al. 2021, *Isotropy in the Contextual Embedding Space: Clusters and Manifolds*, who
    centre each cluster before they measure.
    """
    x = as_rows(x)
    _, index = as_labels(labels, len(x), name="labels", device=x.device)
    sizes = torch.bincount(index)
    large = sizes >= min_rows
    if not large.any():
        raise ValueError(
            f"labels: none of {len(sizes)} cluster(s) has min_rows = {min_rows} rows, the largest "
            f"has {int(sizes.max())}"
        )
    if not large.all():
        warnings.warn(
            f"{int((~large).sum())} of {len(sizes)} clusters have fewer than {min_rows} rows and "
            "are left out",
            stacklevel=2,
        )
    values = [
        float(measure(centred(x[index == c]))) if large[c] else torch.nan for c in range(len(sizes))
    ]
    per_cluster = torch.tensor(values, dtype=torch.float64)
    weights = sizes[large].to(torch.float64)
    value = float(per_cluster[large] @ weights / weights.sum())
    return LocalMeasure(value, per_cluster, sizes)


def elongated_directions(x: ArrayLike | Tensor, *, ratio: float = 5.0) -> int:
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
    The mean is over all d eigenvalues, those that are zero too. An isotropic cloud has no elongated
    direction, but a small sample of it may: the largest eigenvalue of n ≫ 1 isotropic rows is near
    (1 + √(d/n))² means (Marchenko & Pastur), above 5 when n < .65 d, and with n < d/5 nearly all
    n − 1 directions count. Take n ≥ d, and show an isotropic cloud of the same shape beside it.

    References
    ----------
    Rajaee & Pilehvar 2021, *How Does Fine-tuning Affect the Geometry of Embedding Space* (EMNLP
    Findings), who count the elongated directions before and after fine-tuning.
    """
    if not ratio > 0:
        raise ValueError(f"ratio must be above 0, got {ratio}")
    x = as_rows(x, min_rows=2)
    shares = anisotropy(x, k=min(x.shape), center=True)  # of the sum, d means
    return int((shares * x.shape[1] > ratio).sum())
