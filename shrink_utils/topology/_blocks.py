"""Squared distances between two blocks of points, and the nearest neighbours found among them."""

from __future__ import annotations

import numpy as np

from shrink_utils.topology._compiled import compiled

BLOCK = 96  # points a side: two blocks of 768 float32 coordinates fit a core's second-level cache


@compiled
def squared_distances(a: np.ndarray, b: np.ndarray, same: bool, out: np.ndarray) -> None:
    """Write ‖a_i − b_j‖² to ``out[i, j]``, in the precision of the points.

    Differences are taken first, so that nothing cancels. Three rows against three at a time:
    six coordinates are then read for nine products. At the border the last row is taken again.

    Parameters
    ----------
    a, b : ndarray, shape (p, d) and (q, d)
        Both float32 or both float64.
    same : bool
        Whether `a` and `b` are the same points: half is then worked out, and mirrored.
    out : ndarray, shape (≥ p, ≥ q)
        In the dtype of the points.
    """
    zero = out.dtype.type(0)
    last_a, last_b, d = len(a) - 1, len(b) - 1, a.shape[1]
    for i in range(0, len(a), 3):
        i1, i2 = min(i + 1, last_a), min(i + 2, last_a)
        for j in range(i if same else 0, len(b), 3):
            j1, j2 = min(j + 1, last_b), min(j + 2, last_b)
            s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = zero
            for k in range(d):
                x0, x1, x2, y0, y1, y2 = a[i, k], a[i1, k], a[i2, k], b[j, k], b[j1, k], b[j2, k]
                s00 += (x0 - y0) * (x0 - y0)
                s01 += (x0 - y1) * (x0 - y1)
                s02 += (x0 - y2) * (x0 - y2)
                s10 += (x1 - y0) * (x1 - y0)
                s11 += (x1 - y1) * (x1 - y1)
                s12 += (x1 - y2) * (x1 - y2)
                s20 += (x2 - y0) * (x2 - y0)
                s21 += (x2 - y1) * (x2 - y1)
                s22 += (x2 - y2) * (x2 - y2)
            out[i2, j], out[i2, j1], out[i2, j2] = s20, s21, s22
            out[i1, j], out[i1, j1], out[i1, j2] = s10, s11, s12
            out[i, j], out[i, j1], out[i, j2] = s00, s01, s02
            if same:
                out[j2, i], out[j2, i1], out[j2, i2] = s02, s12, s22
                out[j1, i], out[j1, i1], out[j1, i2] = s01, s11, s21
                out[j, i], out[j, i1], out[j, i2] = s00, s10, s20


@compiled
def enter(block: np.ndarray, i0: int, j0: int, p: int, q: int, out: np.ndarray) -> None:
    """Write a block (p, q) into a symmetric matrix, at row i0 and column j0 and mirrored."""
    for i in range(p):
        for j in range(q):
            out[i0 + i, j0 + j] = block[i, j]
    for j in range(q):  # along the rows of `out` again: the other way costs a cache line a number
        for i in range(p):
            out[j0 + j, i0 + i] = block[i, j]


@compiled
def keep_nearest(
    block: np.ndarray, i0: int, j0: int, p: int, q: int, squared: np.ndarray, neighbour: np.ndarray
) -> None:
    """Enter a block of squared distances into the neighbour lists of its rows and its columns.

    Parameters
    ----------
    block : ndarray, shape (≥ p, ≥ q)
        Between points i0 … i0 + p − 1 and j0 … j0 + q − 1; i0 = j0, or no point is in both.
    squared, neighbour : ndarray, shape (n, k)
        The lists, nearest first; changed in place.
    """
    last = squared.shape[1] - 1
    for i in range(p):
        for j in range(i + 1 if i0 == j0 else 0, q):
            value = block[i, j]
            if value < squared[i0 + i, last]:
                _insert(value, j0 + j, squared[i0 + i], neighbour[i0 + i])
            if value < squared[j0 + j, last]:
                _insert(value, i0 + i, squared[j0 + j], neighbour[j0 + j])


@compiled
def _insert(value: float, index: int, squared: np.ndarray, neighbour: np.ndarray) -> None:
    """Put a neighbour in its place in an ascending list; the farthest drops out."""
    place = len(squared) - 1
    while place > 0 and squared[place - 1] > value:
        squared[place], neighbour[place] = squared[place - 1], neighbour[place - 1]
        place -= 1
    squared[place], neighbour[place] = value, index
