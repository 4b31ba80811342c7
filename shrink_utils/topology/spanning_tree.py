r"""The Euclidean minimum spanning tree, exact to float64, and the lengths of its edges by torch.

Prim's algorithm only compares distances. One matrix product gives the squared ones of centred
points, s = ‖x‖² + ‖y‖² − 2 x·y. With u the unit roundoff of its precision and N the largest ‖x‖²,
none is off by more than δ = 4 (d + 8) u N (Higham 2002, *Accuracy and Stability of Numerical
Algorithms*, §3.1 and §4.2; half of it is enough, and the rest covers squares that vanish).

**Near ties.** In the tree of the rounded distances, a pair of points belongs to the true tree only
if it is nearer than the longest edge on the path between the two, up to 2 δ. These pairs, the edges
of the tree among them, are measured again by differences of coordinates, and the tree is taken of
them alone: the same lengths as if all pairs had been measured.

**Clusters.** Float32 leaves a few near ties per hundred points, and very many where clusters are a
hundred times smaller than the cloud, or points are copies: then copies are merged, and the product
is taken in float64, for which clusters may be a million times smaller.

**Many points.** Above `MOST_IN_MATRIX`, every two parts of the cloud have their tree, and the tree
of the whole is made of their edges: an edge that is the longest of a circle in a part is so in the
whole, too.

Where numba is installed it compiles Prim's loop; the tree is the same.
"""

import math
from itertools import combinations

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree as shortest_of_graph
from torch import Tensor

from shrink_utils.topology.arrays import _on_float64_device, _power_of_two, _safe_unit

try:
    from numba import njit
except ImportError:  # not installed, or made for another NumPy
    njit = None

FLOAT32_FROM = 1024  # points from which a product in float32 saves more than its near ties cost
MOST_TIES = 8  # near ties per point, beyond which they are left to float64
MOST_IN_MATRIX = 8192  # points: 256 MiB in float32
AT_A_TIME = 256  # pairs that are measured at a time


def minimum_spanning_tree(points: np.ndarray) -> np.ndarray:
    """Edges (n − 1, 2) of the tree of a finite cloud (n, d), in no order; the same each time."""
    n = len(points)
    if n < 2:
        return np.empty((0, 2), np.int64)
    unit = _safe_unit(points)
    points = points / unit if unit != 1.0 else points
    if n <= MOST_IN_MATRIX:
        return _tree(points)
    parts = np.array_split(np.arange(n), math.ceil(2 * n / MOST_IN_MATRIX))
    pairs = [np.concatenate(pair) for pair in combinations(parts, 2)]
    edges = np.concatenate([rows[_tree(points[rows])] for rows in pairs])
    return _shortest(points, np.unique(np.sort(edges, axis=1), axis=0))


def _tree(points: np.ndarray) -> np.ndarray:
    n = len(points)
    pairs = _near_ties(points, np.float64 if n < FLOAT32_FROM else np.float32)
    if pairs is None:
        distinct, first, copy_of = np.unique(points, axis=0, return_index=True, return_inverse=True)
        original = first[copy_of.ravel()]
        copies = np.flatnonzero(original != np.arange(n))
        of_copies = np.stack([copies, original[copies]], axis=1)
        pairs = first[_near_ties(distinct, np.float64, most=math.inf)]
        pairs = np.concatenate([of_copies, pairs])
    return pairs if len(pairs) == n - 1 else _shortest(points, pairs)


def _near_ties(
    points: np.ndarray, dtype: type[np.floating], most: float | None = None
) -> np.ndarray | None:
    """Pairs (m, 2) among which the tree is: its edges, and what rounding may have hidden.

    None where there are more than `most`, unless told `MOST_TIES` per point.
    """
    n, d = points.shape
    rows = points - points[0]  # so that equal rows are exact zeros
    rows -= rows.mean(axis=0)
    rows /= _power_of_two(rows)
    rows = rows.astype(dtype, copy=False)
    squared = rows @ rows.T  # NumPy takes half of the products, and mirrors them
    halves = squared.diagonal() / 2
    np.subtract(halves, squared, out=squared)
    squared += halves[:, None]  # ‖x − y‖² / 2, which is ordered alike
    slack = 4 * (d + 8) * np.finfo(dtype).eps * halves.max()  # 2 δ / 2, as eps is 2 u
    return prim(squared, slack, MOST_TIES * n if most is None else most)


def prim(distances: np.ndarray, slack: float = 0.0, most: float = math.inf) -> np.ndarray | None:
    """Prim's algorithm on a symmetric matrix (n, n): edges (n − 1, 2), as they are found.

    With slack, all pairs nearer than the longest edge between them in the tree, plus the slack;
    None where there are more than `most`.
    """
    by = _prim_by_rows if njit is None else _prim_by_points
    pairs = by(distances, distances.dtype.type(slack), most)
    return pairs if len(pairs) <= most else None


def _prim_by_rows(distances: np.ndarray, slack: np.floating, most: float) -> np.ndarray:
    n, dtype = len(distances), distances.dtype
    inside = np.zeros(n, dtype)  # infinite for points of the tree
    distance = np.full(n, np.inf, dtype)  # of each point outside from the tree
    nearest = np.zeros(n, np.int64)  # and the point of the tree that is so near
    order = np.zeros(n, np.int64)  # points as they joined the tree
    longest = np.full(n, -np.inf, dtype)  # edge from each of them to the newest, plus the slack
    newest, found, others = 0, 0, []
    for size in range(1, n):
        inside[newest] = distance[newest] = np.inf
        row = distances[newest] + inside
        closer = row < distance
        np.copyto(distance, row, where=closer)
        np.copyto(nearest, newest, where=closer)
        order[size] = newest = distance.argmin()
        if slack:
            before = longest[:size]
            np.maximum(before, distance[newest] + slack, out=before)
            near = distances[newest].take(order[:size]) < before
            others.append(order[near.nonzero()])
            found += len(others[-1])
            if found > most:
                break
    if not slack:
        return np.stack([nearest[order[1:]], order[1:]], axis=1)
    of_each = [len(those) for those in others]
    newer = order[1 : len(others) + 1].repeat(of_each)
    return np.stack([np.concatenate(others), newer], axis=1)


def _prim_by_points(distances: np.ndarray, slack: np.floating, most: float) -> np.ndarray:
    """The same, a point at a time, to be compiled."""
    n = len(distances)
    outside = np.ones(n, np.bool_)
    distance = np.full(n, np.inf, distances.dtype)
    nearest = np.zeros(n, np.int64)
    order = np.zeros(n, np.int64)
    longest = np.full(n, -np.inf, distances.dtype)
    newest, pairs = 0, [(0, 0) for _ in range(0)]
    for size in range(1, n):
        outside[newest] = False
        next_one, shortest = -1, np.inf
        for j in range(n):
            if outside[j]:
                if distances[newest, j] < distance[j]:
                    distance[j] = distances[newest, j]
                    nearest[j] = newest
                if next_one < 0 or distance[j] < shortest:
                    next_one, shortest = j, distance[j]
        order[size] = newest = next_one
        if not slack:
            pairs.append((nearest[newest], newest))
            continue
        for k in range(size):
            longest[k] = max(longest[k], distance[newest] + slack)
            if distances[newest, order[k]] < longest[k]:
                pairs.append((order[k], newest))
        if len(pairs) > most:
            break
    found = np.empty((len(pairs), 2), np.int64)
    for i in range(len(pairs)):
        found[i, 0], found[i, 1] = pairs[i]
    return found


if njit is not None:
    _prim_by_points = njit(cache=True)(_prim_by_points)


def _shortest(points: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The tree among pairs (m, 2) that connect all points, (n − 1, 2)."""
    squared = np.empty(len(pairs))
    for start in range(0, len(pairs), AT_A_TIME):
        first, second = pairs[start : start + AT_A_TIME].T
        difference = points[first] - points[second]
        squared[start : start + AT_A_TIME] = np.einsum("ij,ij->i", difference, difference)
    order = np.argsort(squared, kind="stable")
    rank = np.empty(len(pairs))  # SciPy would take a length of zero for no edge
    rank[order] = np.arange(1, len(pairs) + 1)
    ends = pairs.T.astype(np.int32)  # SciPy before 1.14 reads no others
    graph = csr_array((rank, ends), shape=(len(points),) * 2)
    kept = shortest_of_graph(graph).data.astype(np.int64)
    return pairs[order[kept - 1]]


def edge_lengths(points: Tensor, edges: np.ndarray) -> Tensor:
    """‖x_a − x_b‖ of edges (m, 2) between points, (m,), float64, in the graph of the points.

    No square overflows or vanishes. The gradient of an edge of length 0 is 0.
    """
    points = _on_float64_device(points).double()
    unit = _safe_unit(points.detach())
    both = points.index_select(0, torch.from_numpy(edges.ravel()).to(points.device))
    first, second = both.view(*edges.shape, points.shape[1]).unbind(1)  # (m, d) each
    difference = first - second if unit == 1.0 else first / unit - second / unit
    return unit * torch.linalg.vector_norm(difference, dim=1)
