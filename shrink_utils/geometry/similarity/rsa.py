"""Representational similarity analysis: do two representations order the pairs of samples alike?"""

from __future__ import annotations

from typing import NamedTuple

import torch
from numpy.typing import ArrayLike
from scipy.stats import rankdata
from torch import Tensor

from shrink_utils.geometry._checks import as_rows, same_rows, unit_rows

__all__ = ["compare_rsa", "prepare_rsa", "rsa"]

_DECIMALS = 12  # of a cosine: what is equal but for rounding must tie


class Ranks(NamedTuple):
    """What one matrix brings to the comparison."""

    n: int
    ranks: Tensor  # (n(n − 1)/2,), centred and of length one


def rsa(x: ArrayLike | Tensor, y: ArrayLike | Tensor) -> float:
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
    Distances 1 − cos of the pairs i < j are rounded to 12 decimals before they are ranked, tied
    ones sharing their mean rank: otherwise rounding decides the order of pairs that are equal.
    O(n²d) time and O(n²) memory. Repeated rows (a bootstrap sample has many) put pairs of distance
    zero into both lists and raise the correlation.

    References
    ----------
    Kriegeskorte, Mur & Bandettini 2008, *Representational similarity analysis*.
    """
    return compare_rsa(prepare_rsa(x, "x"), prepare_rsa(y, "y"))


def prepare_rsa(x: ArrayLike | Tensor, name: str = "x") -> Ranks:
    """Rank the pairs of one matrix."""
    x = unit_rows(as_rows(x, min_rows=3, name=name), name=name)
    n = len(x)
    i, j = torch.triu_indices(n, n, offset=1)
    distances = 1 - (x @ x.T)[i, j].cpu().numpy()
    ranks = torch.from_numpy(rankdata(distances.round(_DECIMALS)))
    ranks -= ranks.mean()
    if not ranks.any():
        raise ValueError(
            f"{name} has all {len(ranks)} pairs of its {n} rows at the same cosine distance: "
            "there is no order to compare"
        )
    return Ranks(n, ranks / torch.linalg.vector_norm(ranks))


def compare_rsa(x: Ranks, y: Ranks) -> float:
    """Correlate the ranks of two matrices."""
    same_rows(x.n, y.n)
    return float(x.ranks @ y.ranks)
