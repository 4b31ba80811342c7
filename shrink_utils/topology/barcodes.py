"""From points to bars: persistent homology of the Vietoris–Rips filtration, differentiable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import gudhi
import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology.arrays import (
    check_matrix,
    coordinates,
    eager,
    in_unit,
    result_dtype,
    to_device,
)
from shrink_utils.topology.edges import EdgeLengths, edge_lengths
from shrink_utils.topology.metrics import (
    check_distances,
    check_metric,
    tree_of_distances,
    unit_rows,
)
from shrink_utils.topology.spanning_tree import minimum_spanning_tree


@dataclass(frozen=True, eq=False)
class H0Barcode:
    """Bars of connected components: all are born at 0 and die along a spanning-tree edge."""

    lengths: Tensor
    edges: Tensor


@dataclass(frozen=True, eq=False)
class Barcode:
    """Finite bars of one homology dimension, longest first, in the unit of the points."""

    lengths: Tensor
    births: Tensor
    deaths: Tensor


@eager
def h0_barcode(points: Tensor, *, metric: str = "euclidean") -> H0Barcode:
    """H0 barcode of the Vietoris–Rips filtration: the edges of the minimum spanning tree.

    Parameters
    ----------
    points : Tensor, shape (n, d)
        One row per point, or (n, n) distances. Half precision is accepted: everything is computed
        in float64.
    metric : {"euclidean", "cosine", "precomputed"}
        "cosine" is 1 − cos, in [0, 2]. For "precomputed", `points` is the symmetric matrix of
        distances; gradients reach both of its entries of an edge, half each.

    Returns
    -------
    H0Barcode
        n − 1 bars (none for n ≤ 1) on the device of `points`; lengths in the unit and dtype of
        `points`, float32 for half precision and integers. The one infinite bar is left out.

    Raises
    ------
    ValueError
        If `points` is not a real, finite matrix, `metric` is unknown, a row is zero ("cosine"), or
        `points` are no symmetric distances with a diagonal of 0 ("precomputed").

    Notes
    -----
    An edge of length ℓ joins two components at scale ℓ (edge-length convention, as in gudhi and
    ripser). Gradients flow through the tree's edges only: along the unit edge vector, with
    opposite signs at its two ends, and zero through an edge of length zero (Leygonie et al. 2021,
    arXiv 1910.00960). Which of several equally long edges is listed depends on the order of the
    points; the lengths do not. The method is that of Kudriashov et al. 2025, arXiv 2501.05502.
    """
    points = check_matrix(points)
    if check_metric(metric) == "cosine":
        bars = h0_barcode(unit_rows(points))
        return H0Barcode(_like(_cosine(bars.lengths), points), bars.edges.to(points.device))
    if metric == "precomputed":
        distances = check_distances(points)
        edges = to_device(tree_of_distances(coordinates(distances)[0]), distances)
        return H0Barcode(distances[edges[:, 0], edges[:, 1]], edges)
    array, unit = in_unit(coordinates(points)[0])
    edges, lengths = minimum_spanning_tree(array)
    measured = EdgeLengths.apply(points, array, edges, lengths, unit)
    return H0Barcode(measured.to(result_dtype(points)), to_device(edges, points))


@eager
def barcode(points: Tensor, max_dim: int = 1, *, metric: str = "euclidean") -> list[Barcode]:
    """Barcodes of the Vietoris–Rips filtration in dimensions 0 to `max_dim`.

    Parameters
    ----------
    points : Tensor, shape (n, d)
        One row per point, or (n, n) distances.
    max_dim : int
        Highest homology dimension: 0 components, 1 loops, 2 cavities.
    metric : {"euclidean", "cosine", "precomputed"}
        As for `h0_barcode`.

    Returns
    -------
    list of Barcode
        Entry k holds the finite bars of dimension k, longest first, in the unit, dtype (float32
        for half precision and integers) and on the device of `points`. Entry 0 has the lengths
        of `h0_barcode`, zero-length bars included; higher entries have positive lengths only.

    Raises
    ------
    ValueError
        As `h0_barcode`, or if `max_dim` is not a whole number ≥ 0.

    Notes
    -----
    gudhi pairs the simplices. Each birth and each death is the length of an edge, measured again
    here so that gradients reach the points. From dimension 1 up, the complex has on the order of
    n to the power `max_dim` + 2 simplices: keep to a few hundred points for loops.
    """
    points = check_matrix(points)
    max_dim = check_dimension(max_dim, "max_dim")
    if check_metric(metric) == "cosine":
        return [_in_cosines(bars, points) for bars in barcode(unit_rows(points), max_dim)]
    components = h0_barcode(points, metric=metric).lengths
    bars = [Barcode(components, births=torch.zeros_like(components), deaths=components)]
    if metric == "precomputed":
        return bars + _higher_of_distances(check_distances(points), max_dim)
    array, unit = in_unit(coordinates(points)[0])
    for dimension in range(1, max_dim + 1):
        births, deaths = (
            EdgeLengths.apply(points, array, edges, lengths, unit)
            for edges, lengths in higher_bars(array, dimension)
        )
        parts = (part.to(result_dtype(points)) for part in (deaths - births, births, deaths))
        bars.append(Barcode(*parts))
    return bars


def _cosine(lengths: Tensor) -> Tensor:
    """1 − cos from distances of unit rows, without its cancellation near 0."""
    return lengths.square() / 2


def _like(values: Tensor, points: Tensor) -> Tensor:
    return values.to(result_dtype(points)).to(points.device)


def _in_cosines(bars: Barcode, points: Tensor) -> Barcode:
    """Bars of unit rows in cosine distance, which orders them anew."""
    births, deaths = _cosine(bars.births), _cosine(bars.deaths)
    order = (deaths - births).argsort(descending=True, stable=True)
    parts = (deaths - births, births, deaths)
    return Barcode(*(_like(part[order], points) for part in parts))


def _higher_of_distances(distances: Tensor, max_dim: int) -> list[Barcode]:
    """Bars of the dimensions 1 to `max_dim` from a symmetric matrix of distances."""
    array, bars = coordinates(distances)[0], []
    for dimension in range(1, max_dim + 1):
        vertices = _flag_generators(gudhi.RipsComplex(distance_matrix=array), dimension)
        (birth_edges, _), (death_edges, _) = _longest_first(
            vertices, lambda edges: array[edges[:, 0], edges[:, 1]]
        )
        births, deaths = (
            distances[tuple(to_device(np.ascontiguousarray(edges.T), distances))]
            for edges in (birth_edges, death_edges)
        )
        bars.append(Barcode(deaths - births, births, deaths))
    return bars


Measured = tuple[np.ndarray, np.ndarray]  # edges (m, 2) and their lengths (m,)


def check_dimension(value: int, name: str) -> int:
    """Return a homology dimension as an int, or raise a ``ValueError``."""
    if not isinstance(value, int | np.integer) or value < 0:
        raise ValueError(f"{name} must be a whole number ≥ 0; got {value!r}")
    return int(value)


def higher_bars(points: np.ndarray, dimension: int) -> tuple[Measured, Measured]:
    """Bars of one dimension ≥ 1: the edges that they are born with and that they die with.

    Aligned, longest bar first; bars of length zero are left out.
    """
    vertices = _flag_generators(gudhi.RipsComplex(points=points), dimension)
    return _longest_first(vertices, partial(edge_lengths, points))


def _longest_first(
    vertices: np.ndarray, lengths_of: Callable[[np.ndarray], np.ndarray]
) -> tuple[Measured, Measured]:
    """Birth and death edges, measured and in order, from bars' vertices (m, 4)."""
    birth_edges, death_edges = vertices[:, :2], vertices[:, 2:]
    births, deaths = lengths_of(birth_edges), lengths_of(death_edges)
    order = np.argsort(births - deaths, kind="stable")
    order = order[deaths[order] > births[order]]
    return (birth_edges[order], births[order]), (death_edges[order], deaths[order])


def _flag_generators(rips: gudhi.RipsComplex, dimension: int) -> np.ndarray:
    """Vertices (m, 4) of the birth and death edges of the m bars of a dimension ≥ 1."""
    complex_ = rips.create_simplex_tree(max_dimension=dimension + 1)
    complex_.compute_persistence()
    found = complex_.flag_persistence_generators()[1]  # may be shorter than the dimension
    if len(found) < dimension:
        return np.empty((0, 4), dtype=np.int64)
    return found[dimension - 1].astype(np.int64)
