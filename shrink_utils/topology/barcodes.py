"""From points to bars: persistent homology of the Vietoris–Rips filtration, differentiable."""

from __future__ import annotations

import math
from dataclasses import dataclass

import gudhi
import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology._checks import check_points, result_dtype


@dataclass(frozen=True, eq=False)
class H0Barcode:
    """Bars of connected components: all are born at 0 and die along a spanning-tree edge.

    Attributes
    ----------
    lengths : Tensor, shape (n − 1,)
        Longest first; differentiable with respect to the points.
    edges : Tensor of int64, shape (n − 1, 2)
        ``edges[i]`` are the rows of the two points whose distance is ``lengths[i]``.
    """

    lengths: Tensor
    edges: Tensor


@dataclass(frozen=True, eq=False)
class Barcode:
    """Finite bars of one homology dimension, longest first.

    Attributes
    ----------
    lengths, births, deaths : Tensor, shape (m,)
        In the unit of the points, aligned, differentiable; ``lengths = deaths − births``.
    """

    lengths: Tensor
    births: Tensor
    deaths: Tensor


def h0_barcode(points: Tensor) -> H0Barcode:
    """H0 barcode of the Vietoris–Rips filtration: the edges of the minimum spanning tree.

    Parameters
    ----------
    points : Tensor, shape (n, d)
        One row a point. Half precision is accepted: everything is computed in float64.

    Returns
    -------
    H0Barcode
        n − 1 bars (none for n ≤ 1) on the device of `points`; lengths in the unit and dtype of
        `points`, float32 for half precision and integers. The one infinite bar is left out.

    Raises
    ------
    ValueError
        If `points` is not a real, finite matrix.

    Notes
    -----
    An edge of length ℓ joins two components at scale ℓ (edge-length convention, as in gudhi and
    ripser), and the n − 1 edges that join something are the Euclidean minimum spanning tree.
    Gradients flow through these edges only: along the unit edge vector, with opposite signs at
    its two ends, and zero through an edge of length zero (Leygonie et al. 2021, arXiv 1910.00960).
    Which edge is listed among several of equal length depends on the order of the points; the
    lengths do not.

    References
    ----------
    Kudriashov et al. 2025, *Shrink the longest*, arXiv 2501.05502.
    """
    points = check_points(points)
    coordinates, unit = _scaled(points)
    tree = _minimum_spanning_tree(coordinates.detach().cpu().numpy())
    edges = torch.from_numpy(tree).to(points.device)
    lengths = _edge_lengths(coordinates, edges) * unit
    order = lengths.detach().argsort(descending=True, stable=True)
    return H0Barcode(lengths=lengths[order].to(result_dtype(points)), edges=edges[order])


def barcode(points: Tensor, max_dim: int = 1) -> list[Barcode]:
    """Barcodes of the Vietoris–Rips filtration in dimensions 0 to `max_dim`.

    Parameters
    ----------
    points : Tensor, shape (n, d)
        One row a point.
    max_dim : int
        Highest homology dimension: 0 components, 1 loops, 2 cavities.

    Returns
    -------
    list of Barcode
        Entry k holds the finite bars of dimension k, longest first, in the unit, dtype (float32
        for half precision and integers) and on the device of `points`. Entry 0 has the lengths
        of `h0_barcode`, zero-length bars included; higher entries have positive lengths only.

    Raises
    ------
    ValueError
        If `points` is not a real, finite matrix, or `max_dim` not a whole number ≥ 0.

    Notes
    -----
    gudhi pairs the simplices. A simplex enters with its longest edge, so each birth and each
    death is the length of an edge, measured again here so that gradients reach the points
    (Leygonie et al. 2021, arXiv 1910.00960). From dimension 1 up, the complex has on the order
    of n to the power `max_dim` + 2 simplices: keep to a few hundred points for loops.
    """
    points = check_points(points)
    if not isinstance(max_dim, int) or max_dim < 0:
        raise ValueError(f"max_dim must be a whole number ≥ 0; got {max_dim!r}")
    components = h0_barcode(points).lengths
    bars = [Barcode(components, births=torch.zeros_like(components), deaths=components)]
    if max_dim == 0:
        return bars
    coordinates, unit = _scaled(points)
    for pairs in _flag_generators(coordinates.detach().cpu().numpy(), max_dim):
        edges = torch.from_numpy(pairs).to(points.device)  # (m, 4): birth edge, death edge
        births = _edge_lengths(coordinates, edges[:, :2]) * unit
        deaths = _edge_lengths(coordinates, edges[:, 2:]) * unit
        lengths = deaths - births
        order = lengths.detach().argsort(descending=True, stable=True)
        order = order[lengths.detach()[order] > 0]
        parts = (part[order].to(result_dtype(points)) for part in (lengths, births, deaths))
        bars.append(Barcode(*parts))
    return bars


def _scaled(points: Tensor) -> tuple[Tensor, float]:
    """Points in float64 over a power of two, and that power: squares can then not overflow.

    A power of two because dividing by it is exact.
    """
    coordinates = points.double()
    largest = float(coordinates.detach().abs().amax()) if coordinates.numel() else 0.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
    return coordinates / unit, unit


def _edge_lengths(points: Tensor, edges: Tensor) -> Tensor:
    """Euclidean length of each edge (m, 2), with the subgradient 0 at length 0."""
    return torch.linalg.vector_norm(points[edges[:, 0]] - points[edges[:, 1]], dim=1)  # (m,)


def _minimum_spanning_tree(points: np.ndarray) -> np.ndarray:
    """Edges (n − 1, 2) of the Euclidean minimum spanning tree of float64 points (n, d), by Prim.

    The tree grows by its nearest point. One row of distances is held at a time, and each is the
    norm of a difference: through matrix products, ‖x‖² + ‖y‖² − 2 x·y, tight clusters far apart
    cancel to distance zero. The raw differences also need no centring: each is rounded once.
    """
    n = len(points)
    edges = np.empty((max(n - 1, 0), 2), dtype=np.int64)
    distance = np.full(n, np.inf)  # squared, from each point outside to the tree
    nearest = np.zeros(n, dtype=np.int64)  # the point of the tree at that distance
    outside = np.ones(n, dtype=bool)
    newest = 0
    for step in range(n - 1):
        outside[newest] = False
        difference = points - points[newest]  # (n, d)
        squared = np.einsum("ij,ij->i", difference, difference)  # (n,)
        closer = outside & (squared < distance)
        distance[closer] = squared[closer]
        nearest[closer] = newest
        distance[newest] = np.inf
        newest = int(np.argmin(distance))
        edges[step] = nearest[newest], newest
    return edges


def _flag_generators(points: np.ndarray, max_dim: int) -> list[np.ndarray]:
    """Vertices (m, 4) of the birth and death edges of the m bars in each dimension 1 … max_dim."""
    complex_ = gudhi.RipsComplex(points=points).create_simplex_tree(max_dimension=max_dim + 1)
    complex_.compute_persistence()
    found = complex_.flag_persistence_generators()[1]  # may be shorter than max_dim
    none = np.empty((0, 4), dtype=np.int64)
    return [found[k].astype(np.int64) if k < len(found) else none for k in range(max_dim)]
