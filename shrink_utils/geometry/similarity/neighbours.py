"""Shared nearest neighbours."""

import math

import torch
from torch import Tensor

from shrink_utils.geometry.rows import same_rows
from shrink_utils.geometry.similarity.rsa import cosine_steps
from shrink_utils.topology.arrays import Array, as_rows, unit_rows, whole_number


def mutual_knn(x: Array, y: Array, *, k: int = 10) -> float:
    """Share of the k nearest neighbours of a row in x that are also its nearest in y.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample; none of them zero.
    k : int
        Neighbours per row by cosine, the row itself left out; from 1 to n − 2.

    Returns
    -------
    float
        In [0, 1]: the mean over rows, k/(n − 1) on average for independent matrices. Invariant to
        a rotation of either space and to the length of every single row; not to a shift.

    Raises
    ------
    ValueError
        Zero rows, different numbers of rows, all pairs at the same distance, or a `k` that leaves
        nothing to choose.

    Notes
    -----
    Of neighbours at the same distance any may be taken. O(n²d) time and O(n²) memory. Huh et al.
    2024, *The Platonic Representation Hypothesis*, section 2.
    """
    return compare_neighbours(prepare_neighbours(x, "x", k=k), prepare_neighbours(y, "y", k=k))


def prepare_neighbours(x: Array, name: str = "x", *, k: int = 10) -> Tensor:
    """Of one matrix (n, n), one where row j is among the k nearest of row i."""
    x = unit_rows(as_rows(x, min_rows=3, name=name), name=name)
    if not 1 <= whole_number(k, "k") <= len(x) - 2:
        raise ValueError(f"k must lie between 1 and n − 2 = {len(x) - 2}, got {k}")
    distances = cosine_steps(x).fill_diagonal_(-math.inf)
    farthest = distances.amax(dim=1)
    if (farthest == distances.fill_diagonal_(math.inf).amin(dim=1)).all():
        raise ValueError(f"{name} has all {len(x)} rows at the same cosine distance: none is near")
    nearest = distances.topk(k, largest=False).indices
    return torch.zeros_like(distances).scatter_(1, nearest, 1.0)


def compare_neighbours(x: Tensor, y: Tensor) -> float:
    """Share of the neighbours that two matrices have in common."""
    same_rows(len(x), len(y))
    return float(x.flatten() @ y.flatten()) / float(x.sum())
