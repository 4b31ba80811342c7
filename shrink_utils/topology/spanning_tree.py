r"""The Euclidean minimum spanning tree, exact to float64.

Prim's algorithm only compares distances, and most comparisons are far from close: they can be made
on *rounded* squared distances s, summed in the precision of the points (float32 for a network's
embeddings), as long as it is known how wrong these can be.

**The bound.** With u the unit roundoff (2⁻²⁴ in float32), a difference of two coordinates is off
by a factor 1 + δ, :math:`|\delta| \le u`, its square by three such factors, and the sum of d
squares by d − 1 more, in whatever order it is taken (Higham 2002, *Accuracy and Stability of
Numerical Algorithms*, §3.1 and §4.2). So the true squared distance lies in

.. math:: [(1 - \varepsilon)\, s - \tau,\ (1 + \varepsilon)\, s + \tau],
    \qquad \varepsilon = 2 (d + 4)\, u,

for d u ≤ 1/8, and so does what float64 makes of it. τ = d · (the smallest normal number) stands
for squares that vanish. The bound is relative to the distance itself because differences are taken
first. Through matrix products, ‖x‖² + ‖y‖² − 2 x·y, it would be relative to the norms: tight
clusters far apart cancel to distance zero there, and no comparison within them is decided.

**The certificate.** Two distances whose intervals do not overlap are compared by them; otherwise
both are measured again, in float64. Every comparison thus comes out as in float64.

Above `MOST_IN_MATRIX` points no matrix is held: distances are summed as they are needed, each only
as far as it can still be the shortest.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from shrink_utils.topology.arrays import COMPILED, compiled, power_of_two, sum_of_squares

MOST_IN_MATRIX = 2048  # points: 16 MiB in float32
BLOCK = 96  # points a side: two blocks of 768 float32 coordinates fit a core's second-level cache
PART = 64  # coordinates that are summed before it is asked whether the sum is too long already
SAFE = 2.0**-64, 2.0**64  # a sum of squares from which no square overflows or vanishes in float32


def minimum_spanning_tree(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges (n − 1, 2) of a cloud's tree and their lengths (n − 1,), float64, longest first.

    `points` (n, d) are finite, contiguous, float32 or float64. The same tree each time.
    """
    n, d = points.shape
    if n < 2:
        return np.empty((0, 2), np.int64), np.empty(0)
    unit = 1.0 if SAFE[0] < sum_of_squares(points) < SAFE[1] else power_of_two(points)
    if unit != 1.0:
        points = points / unit
    if not COMPILED:
        edges, squared = prim_by_rows(n, lambda i: _from_row(points, i))
    else:
        none = np.empty((0, 0), points.dtype)
        matrix = _squared_distances(points) if n <= MOST_IN_MATRIX else none
        edges, squared = _prim(points, matrix, *rounding_of(points.dtype, d))
    edges, lengths = _longest_first(edges, squared)
    return edges, lengths if unit == 1.0 else lengths * unit


@cache
def rounding_of(dtype: np.dtype, d: int) -> tuple[float, float]:
    """ε and τ of the module's description."""
    precision = np.finfo(dtype)  # its eps is 2 u
    return (d + 4) * float(precision.eps), d * float(precision.tiny)


@compiled
def _longest_first(edges: np.ndarray, squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-squared, kind="mergesort")  # stable
    return edges[order], np.sqrt(squared[order])


def prim_by_rows(
    n: int, distances_from: Callable[[int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Prim's algorithm from a function that gives the distances (n,) of all points from one."""
    edges, lengths = np.empty((max(n - 1, 0), 2), np.int64), np.empty(max(n - 1, 0))
    nearest = np.zeros(n, np.int64)  # the point of the tree nearest to each point outside
    distance = np.full(n, np.inf)  # and how far it is
    outside = np.ones(n, bool)
    newest = 0
    for step in range(len(edges)):
        outside[newest] = False
        row = distances_from(newest)
        closer = outside & (row < distance)
        distance[closer], nearest[closer] = row[closer], newest
        newest = int(np.where(outside, distance, np.inf).argmin())
        edges[step], lengths[step] = (nearest[newest], newest), distance[newest]
    return edges, lengths


def _from_row(points: np.ndarray, i: int) -> np.ndarray:
    """‖x_i − x_j‖² in float64, (n,)."""
    difference = points.astype(np.float64) - points[i]  # (n, d)
    return np.einsum("ij,ij->i", difference, difference)


def _squared_distances(points: np.ndarray) -> np.ndarray:
    """All ‖x_i − x_j‖², (n, n), in the precision of the points."""
    n = len(points)
    squared = np.empty((n, n), points.dtype)
    if n <= BLOCK:
        _fill(points, points, True, squared)
        return squared
    for i in range(0, n, BLOCK):
        for j in range(i, n, BLOCK):
            _fill(points[i : i + BLOCK], points[j : j + BLOCK], i == j, squared[i:, j:])
            if i != j:
                squared[j : j + BLOCK, i : i + BLOCK] = squared[i : i + BLOCK, j : j + BLOCK].T
    return squared


@compiled
def _fill(a: np.ndarray, b: np.ndarray, same: bool, out: np.ndarray) -> None:
    """Write ‖a_i − b_j‖² to ``out[i, j]``, in the precision of the points.

    Differences are taken first, so that nothing cancels. Three rows meet three at a time: six
    coordinates are then read for nine products, which halves the time. At the border the last row
    is taken again. With `same`, a and b are the same points: half is worked out, and mirrored.
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
def _measured(points: np.ndarray, a: int, b: int) -> float:
    """‖x_a − x_b‖² in float64."""
    total = 0.0
    for k in range(points.shape[1]):
        difference = np.float64(points[a, k]) - np.float64(points[b, k])
        total += difference * difference
    return total


@compiled
def _rounded(points: np.ndarray, a: int, b: int, most: float) -> float:
    """‖x_a − x_b‖² in the precision of the points; where it is above `most`, any number above."""
    total, d = points.dtype.type(0), points.shape[1]
    for start in range(0, d, PART):
        for k in range(start, min(start + PART, d)):
            total += (points[a, k] - points[b, k]) * (points[a, k] - points[b, k])
        if total > most:
            break
    return np.float64(total)


@compiled
def _prim(
    points: np.ndarray, squared: np.ndarray, epsilon: float, tau: float
) -> tuple[np.ndarray, np.ndarray]:
    """Grow the tree from point 0, always by the nearest point outside.

    `squared` (n, n) holds the rounded squared distances, or (0, 0) none of them: then they are
    summed as they are needed. Returns edges (n − 1, 2) and measured squared lengths (n − 1,), as
    they were found.
    """
    n, in_matrix = len(points), len(squared) > 0
    edges, lengths = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
    outside = np.arange(1, n)  # its first n − 1 − step entries are
    nearest = np.zeros(n, np.int64)  # the point of the tree nearest to each point outside
    distance = np.full(n, np.inf)  # and their squared distance, rounded or measured
    newest = 0
    for step in range(n - 1):
        best, least, second = 0, np.inf, np.inf
        for place in range(n - 1 - step):
            j = outside[place]
            held = distance[j]
            most = held + 3 * (epsilon * held + tau)
            s = np.float64(squared[newest, j]) if in_matrix else _rounded(points, newest, j, most)
            if s < most:
                if s + 3 * (epsilon * s + tau) >= held:  # too close to call
                    held = distance[j] = _measured(points, nearest[j], j)
                    s = _measured(points, newest, j)
                if s < held:
                    nearest[j], distance[j], held = newest, s, s
            if held < least:
                best, least, second = place, held, least
            elif held < second:
                second = held
        length = _measured(points, nearest[outside[best]], outside[best])
        limit = least + 3 * (epsilon * least + tau)
        if second <= limit:  # others might be nearer than the one found
            for place in range(n - 1 - step):
                j = outside[place]
                if distance[j] <= limit:
                    distance[j] = _measured(points, nearest[j], j)
                    if distance[j] < length:
                        best, length = place, distance[j]
        newest = outside[best]
        outside[best] = outside[n - 2 - step]
        edges[step, 0], edges[step, 1], lengths[step] = nearest[newest], newest, length
    return edges, lengths
