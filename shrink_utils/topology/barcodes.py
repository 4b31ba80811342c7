"""From points to bars: persistent homology of the Vietoris–Rips filtration, differentiable."""

from __future__ import annotations

from dataclasses import dataclass

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
def h0_barcode(points: Tensor) -> H0Barcode:
    """H0 barcode of the Vietoris–Rips filtration: the edges of the minimum spanning tree.

    Parameters
    ----------
    points : Tensor, shape (n, d)
        One row per point. Half precision is accepted: everything is computed in float64.

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
    ripser). Gradients flow through the tree's edges only: along the unit edge vector, with
    opposite signs at its two ends, and zero through an edge of length zero (Leygonie et al. 2021,
    arXiv 1910.00960). Which of several equally long edges is listed depends on the order of the
    points; the lengths do not. The method is that of Kudriashov et al. 2025, arXiv 2501.05502.
    """
    points = check_matrix(points)
    array, unit = in_unit(coordinates(points)[0])
    edges, lengths = minimum_spanning_tree(array)
    measured = EdgeLengths.apply(points, array, edges, lengths, unit)
    return H0Barcode(measured.to(result_dtype(points)), to_device(edges, points))


@eager
def barcode(points: Tensor, max_dim: int = 1) -> list[Barcode]:
    """Barcodes of the Vietoris–Rips filtration in dimensions 0 to `max_dim`.

    Parameters
    ----------
    points : Tensor, shape (n, d)
        One row per point.
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
    gudhi pairs the simplices. Each birth and each death is the length of an edge, measured again
    here so that gradients reach the points. From dimension 1 up, the complex has on the order of
    n to the power `max_dim` + 2 simplices: keep to a few hundred points for loops.
    """
    points = check_matrix(points)
    max_dim = check_dimension(max_dim, "max_dim")
    components = h0_barcode(points).lengths
    bars = [Barcode(components, births=torch.zeros_like(components), deaths=components)]
    array, unit = in_unit(coordinates(points)[0])
    for dimension in range(1, max_dim + 1):
        births, deaths = (
            EdgeLengths.apply(points, array, edges, lengths, unit)
            for edges, lengths in higher_bars(array, dimension)
        )
        parts = (part.to(result_dtype(points)) for part in (deaths - births, births, deaths))
        bars.append(Barcode(*parts))
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
    vertices = _flag_generators(points, dimension)[dimension - 1]  # (m, 4)
    birth_edges, death_edges = vertices[:, :2], vertices[:, 2:]
    births, deaths = edge_lengths(points, birth_edges), edge_lengths(points, death_edges)
    order = np.argsort(births - deaths, kind="stable")
    order = order[deaths[order] > births[order]]
    return (birth_edges[order], births[order]), (death_edges[order], deaths[order])


def _flag_generators(points: np.ndarray, max_dim: int) -> list[np.ndarray]:
    """Vertices (m, 4) of the birth and death edges of the m bars in each dimension 1 … max_dim."""
    complex_ = gudhi.RipsComplex(points=points).create_simplex_tree(max_dimension=max_dim + 1)
    complex_.compute_persistence()
    found = complex_.flag_persistence_generators()[1]  # may be shorter than max_dim
    none = np.empty((0, 4), dtype=np.int64)
    return [found[k].astype(np.int64) if k < len(found) else none for k in range(max_dim)]
