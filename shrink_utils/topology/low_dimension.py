"""Neighbours in few dimensions by a k-d tree: all that a round of Borůvka's algorithm needs."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from shrink_utils.topology.edges import edge_lengths

MARGIN = 1e-12  # relative, for what a tree and the measured lengths round differently
MOST_TIES = 32  # neighbours per point that are measured because no distance is shorter


def neighbour_lists(points: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower bounds of the squared distances to each point's nearest (n, k), and their indices."""
    distances, neighbour = KDTree(points).query(points, k=k)
    return (distances * (1 - MARGIN)) ** 2, neighbour


def nearest_outside(points: np.ndarray, component: np.ndarray) -> np.ndarray | None:
    """Ends (m, 2) of the shortest edge from each component to the rest, by measured length.

    Components differ in a bit of their numbers: for each bit, points with 1 ask a tree of those
    with 0, and the other way round. Near ties are measured; None where there are too many.
    """
    m = int(component.max()) + 1
    nearest = np.full(len(points), np.inf)  # distance of each point to other components
    for bit in range((m - 1).bit_length()):
        is_set = (component >> bit & 1).astype(bool)
        for inside in (is_set, ~is_set):
            found = KDTree(points[inside]).query(points[~inside])[0]
            nearest[~inside] = np.minimum(nearest[~inside], found)
    least = np.full(m, np.inf)
    np.minimum.at(least, component, nearest)
    rows = np.flatnonzero(nearest <= least[component] * (1 + MARGIN))
    edges = _within(points, rows, nearest[rows] * (1 + MARGIN))
    if edges is None:
        return None
    edges = edges[component[edges[:, 0]] != component[edges[:, 1]]]
    lengths = edge_lengths(points, edges)
    order = np.lexsort((lengths, component[edges[:, 0]]))  # the first per component is shortest
    first = np.unique(component[edges[order, 0]], return_index=True)[1]
    return edges[order[first]]


def _within(points: np.ndarray, rows: np.ndarray, radius: np.ndarray) -> np.ndarray | None:
    """Edges (e, 2) from the given points to all within a radius of each."""
    tree = KDTree(points)
    counts = tree.query_ball_point(points[rows], radius, return_length=True)
    if counts.sum() > MOST_TIES * len(points):
        return None
    found = tree.query_ball_point(points[rows], radius)
    return np.stack([rows.repeat(counts), np.concatenate(found).astype(np.int64)], axis=1)
