"""Are the same pairs of rows far apart (RSA), and the same rows near (shared neighbours)?"""

import math
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from shrink_utils.geometry.rows import _centred, _mean_row, _same_rows
from shrink_utils.topology.arrays import Array, _as_rows, _unit_rows, _whole_number

# What is equal but for rounding must tie: that of a share of the largest distance, and that of
# unit rows, which are off by this share of their length.
_TIED, _OFF_UNIT = 1e-12, 4e-15


class _Ranks(NamedTuple):
    """What one matrix brings to the comparison."""

    n: int
    ranks: Tensor  # (n(n − 1)/2,), centred and of length one


def rsa(x: Array, y: Array) -> float:
    """Spearman correlation between the cosine distances of all pairs of rows, in x and in y.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample; at least 3 rows, none of them zero.

    Returns
    -------
    float
        In [−1, 1], up to rounding (1e-15). Invariant to a rotation of either space and to the
        length of every single row; not to a shift and not to other linear maps.

    Raises
    ------
    ValueError
        Zero rows, different numbers of rows, fewer than 3, or all pairs at the same distance, which
        leaves nothing to order.

    Notes
    -----
    Distances 1 − cos of the pairs i < j are rounded to 12 decimals of the largest before they are
    ranked, tied ones sharing their mean rank: otherwise rounding decides the order of pairs that
    are equal. They are taken as ‖x̂ − ŷ‖²/2, which keeps their digits where all cosines are near 1.
    O(n²d) time and O(n²) memory. Repeated rows raise the correlation. Kriegeskorte, Mur &
    Bandettini 2008, *Representational similarity analysis*.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> round(rsa(x, 3 * x), 6)
    1.0
    """
    return _compare_rsa(_prepare_rsa(x, "x"), _prepare_rsa(y, "y"))


def _prepare_rsa(x: Array, name: str = "x") -> _Ranks:
    """Rank the pairs of one matrix."""
    steps = _cosine_steps(_unit_rows(_as_rows(x, min_rows=3, name=name), name=name)).cpu().numpy()
    n = len(steps)
    ranks = torch.from_numpy(rankdata(steps[np.triu_indices(n, 1)]))
    ranks -= ranks.mean()
    if not ranks.any():
        raise ValueError(
            f"{name} has all {len(ranks)} pairs of its {n} rows at the same cosine distance: "
            "there is no order to compare"
        )
    return _Ranks(n, ranks / torch.linalg.vector_norm(ranks))


def _cosine_steps(x: Tensor, y: Tensor | None = None) -> Tensor:
    """Distances 1 − cos of unit rows, of x and y or of x alone, (n, m), in whole steps.

    A step is what rounding can tell apart. ‖x̂ − ŷ‖²/2 by products of centred rows: what cancels is
    relative to the largest distance.
    """
    if y is None:
        x = y = _centred(x)
    else:
        mean = _mean_row(y)
        x, y = x - mean, y - mean
    distances = x.square().sum(dim=1)[:, None] / 2 + y.square().sum(dim=1) / 2 - x @ y.T
    largest = float(distances.max())
    step = max(_TIED * largest, _OFF_UNIT * math.sqrt(max(largest, 0.0)))
    return (distances / step).round() if step > 0 else torch.zeros_like(distances)


def _compare_rsa(x: _Ranks, y: _Ranks) -> float:
    """Correlate the ranks of two matrices."""
    _same_rows(x.n, y.n)
    return float(x.ranks @ y.ranks)


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

    Examples
    --------
    >>> import torch
    >>> angle = torch.arange(6) ** 1.5 / 10
    >>> x = torch.stack([angle.cos(), angle.sin()], dim=1)
    >>> mutual_knn(x, x.flip(1), k=2)
    1.0
    """
    return _compare_neighbours(_prepare_neighbours(x, "x", k=k), _prepare_neighbours(y, "y", k=k))


def _prepare_neighbours(x: Array, name: str = "x", *, k: int = 10) -> Tensor:
    """Of one matrix (n, n), what row j is of the k nearest of row i: 1, 0, or by ties a part."""
    x = _unit_rows(_as_rows(x, min_rows=3, name=name), name=name)
    if not 1 <= _whole_number(k, "k") <= len(x) - 2:
        raise ValueError(f"k must lie between 1 and n − 2 = {len(x) - 2}, got {k}")
    distances = _cosine_steps(x).fill_diagonal_(-math.inf)
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


def _compare_neighbours(x: Tensor, y: Tensor) -> float:
    """Share of the neighbours that two matrices have in common."""
    _same_rows(len(x), len(y))
    return float(x.flatten() @ y.flatten()) / float(x.sum())
