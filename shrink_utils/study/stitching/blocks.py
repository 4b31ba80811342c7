"""Block structure: do the layers of a model fall into groups that are alike within?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Blocks", "two_blocks"]


class Blocks(NamedTuple):
    """The best cut of a model's layers into a lower and an upper block.

    Attributes
    ----------
    first_above : int
        The lowest layer of the upper block, counted along the matrix.
    contrast : float
        Mean similarity of two layers of one block less that of two layers of different blocks.
    beyond_distance : float
        `contrast` less what it is for a matrix in which similarity depends on the distance of two
        layers and on nothing else, with the same mean at every distance. Similarity that merely
        fades with distance gives 0.
    """

    first_above: int
    contrast: float
    beyond_distance: float


def two_blocks(similarity: ArrayLike) -> Blocks:
    """Cut the layers of one model in two where that separates most.

    Parameters
    ----------
    similarity : array_like, shape (layers, layers)
        Symmetric, such as CKA; the diagonal is not looked at. At least 3 layers.

    Returns
    -------
    Blocks

    Raises
    ------
    ValueError
        Another shape, or NaN.

    Notes
    -----
    Nguyen, Raghu & Kornblith 2021 (*Do wide and deep networks learn the same things?*) and Brown et
    al. 2023 point at blocks in heatmaps. This is a number for what they see. Any similarity that
    fades with distance has a contrast above 0, so that the second number stands beside it.
    """
    matrix = np.asarray(similarity, dtype=float)
    if matrix.ndim != 2 or len(set(matrix.shape)) > 1 or len(matrix) < 3:
        raise ValueError(f"similarity: shape {matrix.shape}, expected a square of at least 3 rows")
    if np.isnan(matrix).any():
        raise ValueError(f"similarity of shape {matrix.shape} has NaN")
    contrasts = _contrasts(matrix)
    best = int(np.argmax(contrasts))
    faded = _contrasts(_by_distance(matrix))
    return Blocks(best + 1, float(contrasts[best]), float(contrasts[best] - faded.max()))


def _contrasts(matrix: np.ndarray) -> np.ndarray:
    """Of every cut, with 1 … n − 1 layers below it."""
    n = len(matrix)
    i, j = np.triu_indices(n, k=1)
    values = matrix[i, j]
    apart = [(i < cut) & (j >= cut) for cut in range(1, n)]
    return np.array([values[~across].mean() - values[across].mean() for across in apart])


def _by_distance(matrix: np.ndarray) -> np.ndarray:
    n = len(matrix)
    means = np.array([np.diagonal(matrix, offset=k).mean() for k in range(n)])
    return means[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))]
