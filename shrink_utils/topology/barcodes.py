"""From points to bars: persistent homology of the Vietoris–Rips filtration, differentiable."""

import math
from dataclasses import dataclass
from functools import partial

import gudhi
import numpy as np
import torch
from scipy.spatial.distance import pdist, squareform
from torch import Tensor

from shrink_utils.names import known_name
from shrink_utils.topology.arrays import (
    as_matrix,
    eager,
    host_values,
    on_float64_device,
    power_of_two,
    result_dtype,
    unit_rows,
    whole_number,
)
from shrink_utils.topology.spanning_tree import (
    OfEdges,
    edge_lengths,
    minimum_spanning_tree,
    prim_by_rows,
)

DISTANCES = ("euclidean", "cosine", "precomputed")
FIELD = 11  # coefficients are in Z/11, gudhi's own choice
RIPSER_SIMPLICES = 1 << (
    128 - (FIELD - 2).bit_length()
)  # it packs simplex, coefficient in 128 bits

try:
    from gudhi._ripser_ext import _full as ripser  # in float64, as gudhi.sklearn calls it
except ImportError:  # an older gudhi
    ripser = None


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
        distances, up to rounding (√eps of the largest); gradients reach both of its entries of an
        edge, half each.

    Returns
    -------
    H0Barcode
        n − 1 bars (none for n ≤ 1) on the device of `points`; lengths in the unit and dtype of
        `points`, float32 for half precision and integers. The one infinite bar is left out.

    Raises
    ------
    ValueError
        If `points` is not a real, finite matrix, `metric` is unknown, a row is zero ("cosine"), or
        `points` are no symmetric distances ≥ 0 with a diagonal of 0 ("precomputed").

    Notes
    -----
    An edge of length ℓ joins two components at scale ℓ (edge-length convention, as in gudhi and
    ripser). Gradients flow through the tree's edges only: along the unit edge vector, with
    opposite signs at its two ends, and zero through an edge of length zero (Leygonie et al. 2021,
    arXiv 1910.00960). Which of several equally long edges is listed depends on the order of the
    points; the lengths do not. The method is that of Kudriashov et al. 2025, arXiv 2501.05502.
    """
    points = as_matrix(points)
    if known_name("metric", "metric", metric, DISTANCES) == "cosine":
        bars = h0_barcode(_directions(points))
        return H0Barcode(_like(bars.lengths.square() / 2, points), bars.edges.to(points.device))
    if metric == "precomputed":
        distances = check_distances(points)
        array = distances.detach().cpu().numpy()
        edges, lengths = prim_by_rows(len(array), lambda i: array[i])
        edges = torch.from_numpy(edges[np.argsort(-lengths, kind="stable")]).to(points.device)
        return H0Barcode(distances[edges[:, 0], edges[:, 1]], edges)
    edges, lengths = minimum_spanning_tree(host_values(points))
    return H0Barcode(_in_graph(points, edges, lengths), torch.from_numpy(edges).to(points.device))


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
    gudhi pairs the simplices, with coefficients in Z/11. Torsion of order 2, as of a projective
    plane, therefore has no bar here; with the Z/2 of ripser's and giotto-ph's defaults it has one.
    Each birth and each death is the length of an edge, through which gradients reach the points.

    gudhi's ripser finds loops among 1,024 points in a second. It tells lengths alone: where
    another edge is exactly as long as one of a bar's, as in lattices and among copies, gudhi's
    simplex tree finds the edges, from on the order of n to the power `max_dim` + 2 simplices; keep
    such clouds to a few hundred points. giotto-ph tells edges too, in the same time; it compares in
    float32, is under the AGPL, and has no wheel above Python 3.12: it is not offered as a backend.
    """
    points = as_matrix(points)
    max_dim = whole_number(max_dim, "max_dim")
    components = h0_barcode(points, metric=metric).lengths
    bars = [Barcode(components, births=torch.zeros_like(components), deaths=components)]
    cloud = _directions(points) if metric == "cosine" else points
    distances = check_distances(points) if metric == "precomputed" else None
    array = host_values(cloud if distances is None else distances)
    for dimension in range(1, max_dim + 1):
        if distances is None:
            births, deaths = (_in_graph(cloud, *ends) for ends in loop_edges(array, dimension))
        else:
            ends = _flag_generators(array.astype(np.float64), dimension).T  # (4, m)
            ends = torch.from_numpy(ends).to(distances.device)
            births, deaths = distances[ends[0], ends[1]], distances[ends[2], ends[3]]
        if metric == "cosine":
            births, deaths = births.square() / 2, deaths.square() / 2
        if metric != "euclidean":  # whose bars come in order
            order = (deaths - births).argsort(descending=True, stable=True)
            order = order[(deaths > births)[order]]
            births, deaths = births[order], deaths[order]
        parts = (deaths - births, births, deaths)
        bars.append(Barcode(*(_like(part, points) for part in parts)))
    return bars


def _in_graph(points: Tensor, edges: np.ndarray, lengths: np.ndarray) -> Tensor:
    """Lengths (m,) of edges that were measured already, in the graph and dtype of the points."""
    dtype = np.float64 if points.dtype == torch.float64 else np.float32
    value, slopes = lengths.astype(dtype), np.ones_like(lengths)
    return OfEdges.apply(points, value, edges, lengths, slopes, partial(edge_lengths, edges=edges))


def loop_edges(
    points: np.ndarray, dimension: int
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Edges (m, 2) that bars of a dimension ≥ 1 are born and die with, each with its length (m,).

    Aligned, longest bar first; bars of length zero are left out.
    """
    unit = power_of_two(points)
    points = points.astype(np.float64) / unit
    distances = squareform(pdist(points)) if points.size else np.zeros((len(points),) * 2)
    vertices = _flag_generators(distances, dimension)
    birth_edges, death_edges = vertices[:, :2], vertices[:, 2:]
    births, deaths = (distances[edges[:, 0], edges[:, 1]] for edges in (birth_edges, death_edges))
    order = np.argsort(births - deaths, kind="stable")
    order = order[deaths[order] > births[order]]
    return (birth_edges[order], births[order] * unit), (death_edges[order], deaths[order] * unit)


def _flag_generators(distances: np.ndarray, dimension: int) -> np.ndarray:
    """Vertices (m, 4) of the birth and death edges of the m bars of a dimension ≥ 1.

    ripser tells when a bar is born and dies, not by which edges; where no other edge is as long as
    these, the lengths tell. Where one is, gudhi's simplex tree is asked, a hundred times slower.
    """
    n = len(distances)
    radius = distances.max(axis=1, initial=0.0).min(initial=np.inf)  # from it on, a cone: no bar
    fits = math.comb(n, min(n // 2, dimension + 2)) < RIPSER_SIMPLICES
    if ripser is not None and fits and n > dimension + 2:
        found = ripser(distances, dimension, radius, FIELD)[dimension]  # (m, 2): birth, death
        i, j = np.triu_indices(n, 1)
        order = np.argsort(distances[i, j], kind="stable")
        lengths = distances[i, j][order]
        first, after = (np.searchsorted(lengths, found, side) for side in ("left", "right"))
        if (after - first == 1).all():
            edges = order[first]  # (m, 2): the birth's and the death's
            return np.stack([i[edges], j[edges]], axis=2).reshape(-1, 4)
    rips = gudhi.RipsComplex(distance_matrix=distances, max_edge_length=radius)
    complex_ = rips.create_simplex_tree(max_dimension=dimension + 1)
    complex_.compute_persistence(homology_coeff_field=FIELD)
    found = complex_.flag_persistence_generators()[1]  # may be shorter than the dimension
    if len(found) < dimension:
        return np.empty((0, 4), dtype=np.int64)
    return found[dimension - 1].astype(np.int64)


def check_distances(points: Tensor) -> Tensor:
    """Return distances (n, n), made symmetric and not negative, or raise a ``ValueError``.

    The two entries of a pair may differ, those of the diagonal from 0, and any be below 0, by √eps
    of the largest, which is what ``torch.cdist`` and 1 − cos make of rounding.
    """
    shape = tuple(points.shape)
    if shape[0] != shape[1]:
        raise ValueError(
            f"points must be a square matrix of distances for metric='precomputed'; got {shape}"
        )
    array = host_values(points)
    tolerance = torch.finfo(result_dtype(points)).eps ** 0.5 * array.max(initial=0.0)
    if (array < -tolerance).any():
        raise ValueError(f"points of shape {shape} hold a negative distance, {array.min()}")
    if (np.abs(array - array.T) > tolerance).any():
        raise ValueError(f"points of shape {shape} are no symmetric matrix of distances")
    if (np.abs(np.diagonal(array)) > tolerance).any():
        raise ValueError(
            f"points of shape {shape} hold a distance of a point from itself, "
            f"{np.diagonal(array).max()}: the diagonal must be 0"
        )
    wide = points.to(result_dtype(points))
    return (wide / 2 + wide.T / 2).clamp_min(0)


def _directions(points: Tensor) -> Tensor:
    """Unit rows: ‖x̂ − ŷ‖² / 2 is 1 − cos, without its cancellation near 0."""
    host_values(points)  # refuses NaN and infinity
    return unit_rows(on_float64_device(points).double(), name="points")


def _like(values: Tensor, points: Tensor) -> Tensor:
    return values.to(result_dtype(points)).to(points.device)
