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
- from `LEAST_ROUNDED` points and `LEAST_COORDINATES`, where the processor has bfloat16 and its
  bound decides most comparisons, Borůvka's algorithm on the lower bounds of `topology.bfloat16`;
- up to `MOST_IN_TREE` coordinates, Borůvka's algorithm on neighbours from k-d trees.

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
from shrink_utils.topology.low_dimension import nearest_outside, neighbour_lists

LEAST_ROUNDED = 1536  # points from which a bfloat16 product is faster
LEAST_COORDINATES = 32  # as well
MOST_IN_TREE = 4  # coordinates up to which a k-d tree finds neighbours faster
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
    elif 0 < points.shape[1] <= MOST_IN_TREE:
        edges = _boruvka_by_trees(points, n_neighbours, block)
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


class _Forest:
    """What is known of a tree: its first edges, and in which component each point is."""

    def __init__(self, points: np.ndarray):
        self.points, self.component = points, np.arange(len(points))
        self.edges = np.empty((len(points) - 1, 2), np.int64)
        self.n_edges, self.m = 0, len(points)

    def grow(self, chosen: np.ndarray, ends: np.ndarray) -> None:
        """Enter the edges of the chosen components."""
        self.n_edges, self.m = join(self.component, chosen, ends, self.edges, self.n_edges)

    def grow_by_lists(
        self, lists: tuple[np.ndarray, np.ndarray], interval: tuple[float, float]
    ) -> None:
        """Enter what neighbour lists decide, until they decide nothing."""
        chosen = self.component
        while self.m > 1 and len(chosen):
            shortest, ends = np.empty(self.m), np.empty((self.m, 2), np.int64)
            decided = nearest_in_lists(
                self.points, self.component, *lists, *interval, shortest, ends
            )
            chosen = np.flatnonzero(decided)
            self.grow(chosen, ends)

    def grow_by_blocks(self, distances: _Summed | Rounded) -> None:
        """One exact round."""
        shortest, ends = np.full(self.m, np.inf), np.empty((self.m, 2), np.int64)
        shortest[np.bincount(self.component).argmax()] = -np.inf  # the others' edges join it too
        for i, j, part in _upper_blocks(distances, self.component):
            nearest_in_block(
                self.points, part, i, j, self.component, *distances.interval, shortest, ends
            )
        self.grow(np.flatnonzero(shortest >= 0), ends)


def _boruvka(points: np.ndarray, n_neighbours: int, distances: _Summed | Rounded) -> np.ndarray:
    """Edges of the tree; `distances` fills blocks with rounded squares or with lower bounds."""
    forest = _Forest(points)
    while forest.m > 1:
        at_first = forest.m
        lists = _neighbour_lists(distances, forest.component, n_neighbours)
        forest.grow_by_lists(lists, distances.interval)
        if forest.m > 1 and 2 * forest.m > at_first:  # more candidates than a list holds
            forest.grow_by_blocks(distances)
    return forest.edges


def _boruvka_by_trees(points: np.ndarray, n_neighbours: int, block: int) -> np.ndarray:
    """Edges of the tree in few dimensions."""
    forest = _Forest(points)
    forest.grow_by_lists(neighbour_lists(points, min(n_neighbours + 1, len(points))), (0.0, 0.0))
    while forest.m > 1:
        ends = nearest_outside(points, forest.component)
        if ends is None:
            forest.grow_by_blocks(_summed(points, block))
        else:
            forest.grow(np.arange(forest.m), ends)
    return forest.edges


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
