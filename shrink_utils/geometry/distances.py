"""Distances between rows: their mean square, exact, and a sample of them for a figure."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry._checks import as_rows, centred, unit_rows

__all__ = ["mean_squared_distance", "pair_distances"]


def mean_squared_distance(x: ArrayLike | Tensor) -> float:
    """Mean squared Euclidean distance over all pairs of different rows, 2 tr C with ddof 1.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples; at least two.

    Returns
    -------
    float
        In squared units of `x`; 0 when all rows are identical.
    """
    x = as_rows(x, min_rows=2)
    return float(2 * centred(x).square().sum() / (len(x) - 1))


def pair_distances(
    x: ArrayLike | Tensor, *, metric: str = "cosine", n_pairs: int = 10_000, seed: int = 0
) -> Tensor:
    """Distances of pairs of different rows, drawn uniformly with replacement.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples; at least two.
    metric : {"cosine", "euclidean"}
        1 − cos, in [0, 2], or the Euclidean distance in units of `x`.
    n_pairs : int
        How many pairs to draw.
    seed : int
        The draw depends on nothing else but n.

    Returns
    -------
    Tensor, shape (n_pairs,), float64

    Raises
    ------
    ValueError
        Unknown `metric`, `n_pairs` below one or, for cosine, zero rows.
    """
    x = as_rows(x, min_rows=2)
    if metric not in ("cosine", "euclidean"):
        raise ValueError(f'metric must be "cosine" or "euclidean", got {metric!r}')
    if n_pairs < 1:
        raise ValueError(f"n_pairs must be at least 1, got {n_pairs}")
    rng = np.random.default_rng(seed)
    first = rng.integers(len(x), size=n_pairs)
    second = (first + rng.integers(1, len(x), size=n_pairs)) % len(x)  # any row but the first
    points = unit_rows(x) if metric == "cosine" else x
    lengths = torch.linalg.vector_norm(points[first] - points[second], dim=1)
    # ‖x̂ − ŷ‖² = 2 − 2 cos, without the cancellation of 1 − cos near zero.
    return lengths.square() / 2 if metric == "cosine" else lengths
