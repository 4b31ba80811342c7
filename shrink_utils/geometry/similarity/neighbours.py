"""Shared nearest neighbours."""

import math

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
        In [0, 1]: the mean over rows, k/(n − 1) on average over all orders of the rows of y.
        Invariant to a rotation of either space, to the length of every single row and to an order
        of the rows that both have; not to a shift.

    Raises
    ------
    ValueError
        Zero rows, different numbers of rows, all pairs at the same distance, or a `k` that leaves
        nothing to choose.

    Notes
    -----
    Rows that are equally far share the places that are left among the k: each counts as a part of
    a neighbour, so that no order of rows matters (and a matrix with such ties shares less than 1
    with itself). O(n²d) time and O(n²) memory. Huh et al. 2024, *The Platonic Representation
    Hypothesis*, section 2.
    """
    return compare_neighbours(prepare_neighbours(x, "x", k=k), prepare_neighbours(y, "y", k=k))


def prepare_neighbours(x: Array, name: str = "x", *, k: int = 10) -> Tensor:
    """Of one matrix (n, n), what row j is of the k nearest of row i: 1, 0, or by ties a part."""
    x = unit_rows(as_rows(x, min_rows=3, name=name), name=name)
    if not 1 <= whole_number(k, "k") <= len(x) - 2:
        raise ValueError(f"k must lie between 1 and n − 2 = {len(x) - 2}, got {k}")
    distances = cosine_steps(x).fill_diagonal_(-math.inf)
    farthest = distances.amax(dim=1)
    if (farthest == distances.fill_diagonal_(math.inf).amin(dim=1)).all():
        raise ValueError(f"{name} has all {len(x)} rows at the same cosine distance: none is near")
    return _nearest_shares(distances, k)


def _nearest_shares(distances: Tensor, k: int) -> Tensor:
    """What each column is of the k nearest of a row: 1, 0 or, of those tied at the end, a part."""
    last = distances.kthvalue(k, dim=1, keepdim=True).values  # (n, 1)
    nearer, tied = distances < last, distances == last
    places = k - nearer.sum(dim=1, keepdim=True)
    return nearer + tied * (places.double() / tied.sum(dim=1, keepdim=True))


def compare_neighbours(x: Tensor, y: Tensor) -> float:
    """Share of the neighbours that two matrices have in common."""
    same_rows(len(x), len(y))
    return float(x.flatten() @ y.flatten()) / float(x.sum())
