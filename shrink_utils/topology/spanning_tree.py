r"""The Euclidean minimum spanning tree, exact to float64, without n² float64 distances.

Any algorithm that finds a minimum spanning tree only compares edges, and most comparisons are far
from close: they can be made on *rounded* squared distances s, summed in the precision of the points
(float32 for a network's embeddings), as long as it is known how wrong these can be.

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

**The certificate.** Two edges whose intervals do not overlap are compared by them; otherwise both
are measured again, in float64. Every comparison thus comes out as it would in float64, and an edge
is measured before it enters the tree. The lengths are therefore those of Prim's algorithm in
float64, whichever of these finds them:

- up to `MOST_IN_MATRIX` points, **Prim's algorithm** on the matrix of rounded distances;
- above, **Borůvka's algorithm**: each component takes its shortest edge to the rest. Blocks of
  distances pass by, and each point keeps its `N_NEIGHBOURS` nearest. An edge that the lists show is
  certainly shortest if no list that has run out, all its points being inside, may hide a shorter
  one: that is known from the last distance in the list. Where this decides no component any more,
  blocks pass by again, for the nearest points of other components; where that decides few either,
  for one exact round of Borůvka. Memory grows with n, not n²;
- from `LEAST_ROUNDED` points and `LEAST_COORDINATES`, where the processor has bfloat16 and its bound
  decides most comparisons, Borůvka's algorithm on the lower bounds of `topology.bfloat16`.

Without numba: Prim's algorithm with a row of float64 distances at a time, at any n.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from shrink_utils.topology.arrays import COMPILED
from shrink_utils.topology.bfloat16 import Rounded, decides, native, rounded
from shrink_utils.topology.certified import (
    BLOCK,
    enter,
    join,
    keep_nearest,
    longest_first,
    nearest_in_block,
    nearest_in_lists,
    prim,
    squared_distances,
)
from shrink_utils.topology.edges import edge_lengths

LEAST_ROUNDED = 1536  # points from which a bfloat16 product is faster
LEAST_COORDINATES = 32  # as well
MOST_IN_MATRIX = 2048  # points: 16 MiB in float32
N_NEIGHBOURS = 16


class SpanningTree(NamedTuple):
    """Edges (n − 1, 2) of a tree, int64, and their lengths (n − 1,), float64, longest first."""

    edges: np.ndarray
    lengths: np.ndarray


def minimum_spanning_tree(
    points: np.ndarray,
    *,
    least_rounded: int = LEAST_ROUNDED,
    most_in_matrix: int = MOST_IN_MATRIX,
    n_neighbours: int = N_NEIGHBOURS,
    block: int = BLOCK,
) -> SpanningTree:
    """Euclidean minimum spanning tree of a point cloud: the same one each time.

    Parameters
    ----------
    points : ndarray, shape (n, d)
        Finite, contiguous, float32 or float64, of a size whose squares neither overflow nor vanish.
    least_rounded : int
        Fewest points for which bfloat16 is tried.
    most_in_matrix : int
        Most points of which all distances are held at a time.
    n_neighbours, block : int
        Length of the neighbour lists above that, and points per side of a block of distances.
    """
    if len(points) < 2:
        edges = np.empty((0, 2), np.int64)
    elif not COMPILED:
        edges = _prim_by_rows(points)
    elif len(points) >= least_rounded and (cloud := _in_bfloat16(points)) is not None:
        edges = _boruvka(points, n_neighbours, cloud)
    elif len(points) <= most_in_matrix:
        return SpanningTree(*_prim_in_matrix(points, block))
    else:
        edges = _boruvka(points, n_neighbours, _summed(points, block))
    return SpanningTree(*longest_first(edges, edge_lengths(points, edges) ** 2))


@cache
def _interval(dtype: np.dtype, d: int) -> tuple[float, float]:
    """ε and τ of the module's description."""
    precision = np.finfo(dtype)
    return (d + 4) * float(precision.eps), d * float(precision.tiny)  # NumPy's eps is 2 u


def _prim_in_matrix(points: np.ndarray, block: int) -> tuple[np.ndarray, np.ndarray]:
    n = len(points)
    squared = np.empty((n, n), points.dtype)
    if n <= block:
        squared_distances(points, points, True, squared)
    else:
        for i, j, part in _upper_blocks(_summed(points, block), np.arange(n)):
            enter(part, i[0], j[0], len(i), len(j), squared)
    return prim(points, squared, *_interval(points.dtype, points.shape[1]))


class _Summed(NamedTuple):
    """Rounded squared distances, and their interval."""

    points: np.ndarray
    block: int
    dtype: np.dtype
    interval: tuple[float, float]

    def fill(self, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        squared_distances(self.points[rows], self.points[columns], columns is rows, out)


def _summed(points: np.ndarray, block: int) -> _Summed:
    return _Summed(points, block, points.dtype, _interval(points.dtype, points.shape[1]))


def _in_bfloat16(points: np.ndarray) -> Rounded | None:
    """The cloud in bfloat16, where that is fast and decides most comparisons."""
    if points.shape[1] < LEAST_COORDINATES or not native():
        return None
    cloud = rounded(points)
    return cloud if cloud is not None and decides(cloud, points) else None


def _boruvka(points: np.ndarray, n_neighbours: int, distances: _Summed | Rounded) -> np.ndarray:
    """Edges of the tree; `distances` fills blocks with rounded squares or with lower bounds."""
    n, interval = len(points), distances.interval
    edges, component = np.empty((n - 1, 2), np.int64), np.arange(n)
    n_edges, m = 0, n
    while m > 1:
        at_first, chosen = m, component
        lists = _neighbour_lists(distances, component, n_neighbours)
        while m > 1 and len(chosen):
            shortest, ends = np.empty(m), np.empty((m, 2), np.int64)
            decided = nearest_in_lists(points, component, *lists, *interval, shortest, ends)
            chosen = np.flatnonzero(decided)
            n_edges, m = join(component, chosen, ends, edges, n_edges)
        if m > 1 and 2 * m > at_first:  # more candidates than a list holds
            shortest, ends = np.full(m, np.inf), np.empty((m, 2), np.int64)
            shortest[np.bincount(component).argmax()] = -np.inf  # the others' edges join it too
            for i, j, part in _upper_blocks(distances, component):
                nearest_in_block(points, part, i, j, component, *interval, shortest, ends)
            n_edges, m = join(component, np.flatnonzero(shortest >= 0), ends, edges, n_edges)
    return edges


def _neighbour_lists(
    distances: _Summed | Rounded, component: np.ndarray, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distances and indices (n, k) of the points nearest to each in other components."""
    squared = np.full((len(component), k), np.inf, distances.dtype)
    neighbour = np.zeros((len(component), k), np.int64)
    for i, j, part in _upper_blocks(distances, component):
        keep_nearest(part, i, j, component, squared, neighbour)
    return squared, neighbour


def _upper_blocks(
    distances: _Summed | Rounded, component: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, columns and squared distances of the blocks on and above the diagonal.

    The points come component by component, and blocks within one are left out. Each block is
    written over the one before.
    """
    block, order = distances.block, np.argsort(component, kind="stable")
    out = np.empty((block, block), distances.dtype)
    parts = [order[start : start + block] for start in range(0, len(order), block)]
    for p, rows in enumerate(parts):
        for columns in parts[p:]:
            if component[rows[0]] != component[columns[-1]]:
                distances.fill(rows, columns, out)
                yield rows, columns, out


def _prim_by_rows(points: np.ndarray) -> np.ndarray:
    """Edges found by Prim's algorithm with one row of float64 distances at a time, in NumPy."""
    rest = points[1:].astype(np.float64)  # the points outside, in the order of `index`
    index = np.arange(1, len(points))
    distance = np.full(len(rest), np.inf)  # squared, from each point outside to the tree
    nearest = np.zeros(len(rest), np.int64)  # the point of the tree at that distance
    edges = np.empty((len(rest), 2), np.int64)
    newest, coordinates = 0, points[0].astype(np.float64)
    for step in range(len(edges)):
        difference = rest - coordinates  # (outside, d)
        squared = np.einsum("ij,ij->i", difference, difference)
        closer = squared < distance
        distance[closer], nearest[closer] = squared[closer], newest
        best = int(np.argmin(distance))
        newest, coordinates = int(index[best]), rest[best].copy()
        edges[step] = nearest[best], newest
        for array in (rest, index, distance, nearest):  # the last one takes the place left
            array[best] = array[-1]
        rest, index, distance, nearest = rest[:-1], index[:-1], distance[:-1], nearest[:-1]
    return edges
