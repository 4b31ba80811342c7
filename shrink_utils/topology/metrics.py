"""Distances other than Euclidean: cosine, and any that come as a matrix."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology.arrays import coordinates, result_dtype

METRICS = ("euclidean", "cosine", "precomputed")


def check_metric(metric: str) -> str:
    """Return the name of a metric, or raise a ``ValueError``."""
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(map(repr, METRICS))}; got {metric!r}")
    return metric


def unit_rows(points: Tensor) -> Tensor:
    """Rows of length one, (n, d) float64, in the graph of `points`; a zero row has no cosine.

    Their Euclidean distances grow with the cosine ones: ‖x̂ − ŷ‖² = 2 (1 − cos).
    """
    coordinates(points)  # refuses NaN and infinity
    wide = (points.cpu() if points.device.type == "mps" else points).double()
    if len(wide) == 0:
        return wide
    largest = wide.detach().abs().amax(dim=1, keepdim=True) if wide.shape[1] else wide.new_zeros(1)
    if not largest.all():
        row = int((largest.flatten() == 0).nonzero()[0])
        raise ValueError(
            f"points of shape {tuple(points.shape)} have zero rows, the first of them row {row}: "
            "they have no cosine; drop them"
        )
    wide = wide / largest  # squares of very large or very small entries would leave float64
    return wide / torch.linalg.vector_norm(wide, dim=1, keepdim=True)


def check_distances(points: Tensor) -> Tensor:
    """Return a matrix of distances (n, n), made exactly symmetric, or raise a ``ValueError``.

    The two entries of a pair may differ, and those of the diagonal from 0, by √eps of the largest,
    which is what ``torch.cdist`` makes of rounding.
    """
    shape = tuple(points.shape)
    if shape[0] != shape[1]:
        raise ValueError(
            f"points must be a square matrix of distances for metric='precomputed'; got {shape}"
        )
    array, _ = coordinates(points)
    if (array < 0).any():
        raise ValueError(f"points of shape {shape} hold a negative distance, {array.min()}")
    tolerance = torch.finfo(result_dtype(points)).eps ** 0.5 * array.max(initial=0.0)
    if (np.abs(array - array.T) > tolerance).any():
        raise ValueError(f"points of shape {shape} are no symmetric matrix of distances")
    if (np.diagonal(array) > tolerance).any():
        raise ValueError(
            f"points of shape {shape} hold a distance of a point from itself, "
            f"{np.diagonal(array).max()}: the diagonal must be 0"
        )
    wide = points.to(result_dtype(points))
    return wide / 2 + wide.T / 2


def tree_of_distances(distances: np.ndarray) -> np.ndarray:
    """Edges (n − 1, 2) of a minimum spanning tree, longest first, by Prim's algorithm."""
    # SciPy's minimum_spanning_tree reads a 0 as no edge, and takes ten times as long at n = 1,000.
    n = len(distances)
    edges = np.empty((max(0, n - 1), 2), np.int64)
    nearest = np.zeros(n, np.int64)  # the point of the tree nearest to each point outside
    distance = np.full(n, np.inf)  # and how far it is
    outside = np.ones(n, bool)
    newest = 0
    for step in range(len(edges)):
        outside[newest] = False
        closer = outside & (distances[newest] < distance)
        distance[closer], nearest[closer] = distances[newest][closer], newest
        newest = int(np.where(outside, distance, np.inf).argmin())
        edges[step] = nearest[newest], newest
    return edges[np.argsort(-distances[edges[:, 0], edges[:, 1]], kind="stable")]
