"""From points to bars: persistent homology of the Vietoris–Rips filtration, differentiable."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import gudhi
import numpy as np
import torch
from scipy.spatial.distance import pdist, squareform
from torch import Tensor

from shrink_utils.names import known_name
from shrink_utils.topology.arrays import (
    _as_matrix,
    _as_rows,
    _eager,
    _on_float64_device,
    _power_of_two,
    _result_dtype,
    _unit_rows,
    _whole_number,
)
from shrink_utils.topology.spanning_tree import edge_lengths, minimum_spanning_tree, prim

DISTANCES = ("euclidean", "cosine", "precomputed")
FIELD = 11  # coefficients are in Z/11, gudhi's own choice
MOST_SIMPLICES = 10**8  # of one dimension: some 100 bytes each

try:
    from gudhi._ripser_ext import _full as ripser  # in float64, as gudhi.sklearn calls it
except ImportError:  # a module of gudhi's own, which may move
    ripser = None


@dataclass(frozen=True, eq=False)
class H0Barcode:
    """Bars of connected components: all are born at 0 and die along a spanning-tree edge.

    `lengths` (n − 1,), longest first; `edges` (n − 1, 2), the numbers of the points of each.

    Examples
    --------
    >>> import torch
    >>> bars = h0_barcode(torch.tensor([[0.0], [1.0], [4.0]]))
    >>> bars.edges
    tensor([[1, 2],
            [0, 1]])
    """

    lengths: Tensor
    edges: Tensor


@dataclass(frozen=True, eq=False)
class Barcode:
    """Finite bars of one homology dimension, longest first, in the unit of the points.

    `lengths`, `births` and `deaths`, (m,) each.

    Examples
    --------
    >>> import torch
    >>> square = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    >>> loop = barcode(square)[1]
    >>> loop.births, loop.deaths
    (tensor([1.]), tensor([1.4142]))
    """

    lengths: Tensor
    births: Tensor
    deaths: Tensor


@_eager
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

    Examples
    --------
    >>> import torch
    >>> points = torch.tensor([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]], requires_grad=True)
    >>> bars = h0_barcode(points)
    >>> bars.lengths
    tensor([5., 1.], grad_fn=<ToCopyBackward0>)
    """
    points = _as_matrix(points)
    space, measure = _space(points, metric)
    values = space.detach().cpu().numpy()
    edges = prim(values) if metric == "precomputed" else minimum_spanning_tree(values)
    lengths, order = measure(edges).sort(descending=True, stable=True)
    edges = torch.from_numpy(edges).to(points.device)[order.to(points.device)]
    return H0Barcode(_like(lengths, points), edges)


@_eager
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
        As `h0_barcode`; if `max_dim` is not a whole number ≥ 0; or if there would be more than 10⁸
        simplices of one dimension, which is 14,000 points for loops.

    Notes
    -----
    gudhi pairs the simplices, with coefficients in Z/11. Torsion of order 2, as of a projective
    plane, therefore has no bar here; with the Z/2 of ripser's and giotto-ph's defaults it has one.
    Each birth and each death is the length of an edge, through which gradients reach the points.

    gudhi's ripser finds the loops of 1,024 points in seconds, copies and lattices among them; a
    gudhi that has it elsewhere, the simplex tree, for a few hundred points. Where edges are equally
    long, which of them a bar is born and dies with depends on the order of the points.

    Examples
    --------
    >>> import torch
    >>> angle = torch.arange(12) * torch.pi / 6
    >>> circle = torch.stack([angle.cos(), angle.sin()], dim=1)
    >>> components, loops = barcode(circle)
    >>> len(components.lengths), len(loops.lengths)
    (11, 1)
    """
    points = _as_matrix(points)
    max_dim = _whole_number(max_dim, "max_dim")
    lengths = h0_barcode(points, metric=metric).lengths
    bars = [Barcode(lengths, births=torch.zeros_like(lengths), deaths=lengths)]
    space, measure = _space(points, metric)
    for generators in _generators(_distances(space, metric), max_dim) if max_dim else ():
        births, deaths = measure(generators[:, :2]), measure(generators[:, 2:])
        lengths, order = (deaths - births).sort(descending=True, stable=True)
        order = order[lengths > 0]
        parts = (lengths[lengths > 0], births[order], deaths[order])
        bars.append(Barcode(*(_like(part, points) for part in parts)))
    return bars


def _space(points: Tensor, metric: str) -> tuple[Tensor, Callable[[np.ndarray], Tensor]]:
    """What distances are taken of, checked; and a function of edges (m, 2) to their lengths."""
    if known_name("metric", "metric", metric, DISTANCES) == "precomputed":
        distances = _check_distances(points)
        return distances, lambda edges: distances[edges[:, 0], edges[:, 1]]
    _as_rows(points, min_rows=0, min_columns=0, name="points")  # refuses NaN and infinity
    cloud = _on_float64_device(points).double()
    if metric == "euclidean":
        return cloud, lambda edges: edge_lengths(cloud, edges)
    # ‖x̂ − ŷ‖² / 2 is 1 − cos, without its cancellation near 0.
    directions = _unit_rows(cloud, name="points")
    return directions, lambda edges: edge_lengths(directions, edges).square() / 2


def _distances(space: Tensor, metric: str) -> np.ndarray:
    """Distances (n, n), float64, in some unit, or in one that grows with them."""
    values = space.detach().cpu().double().numpy()
    if metric == "precomputed":
        return values
    if not values.size:
        return np.zeros((len(values), len(values)))
    return squareform(pdist(values / _power_of_two(values)))


def _generators(distances: np.ndarray, max_dim: int) -> list[np.ndarray]:
    """Vertices (m, 4) of the birth and death edges of the m bars of each dimension from 1 on.

    The filtration knows no lengths, only which edge comes first. Where edges are equally long, as
    in lattices and among copies, any order gives the same bars, but for some of length 0. So the
    place of an edge in one fixed order is its distance here: what is born and dies at a place tells
    the edge, and ties cost no time.
    """
    n = len(distances)
    top = min(max_dim, n // 2 - 1)  # a bar of dimension k takes 2 k + 2 points
    none = [np.empty((0, 4), np.int64)]
    if top < 1:
        return none * max_dim
    simplices = math.comb(n, top + (1 if ripser else 2))
    if simplices > MOST_SIMPLICES:
        raise ValueError(
            f"points: bars of dimension {top} of {n} points are of {simplices:.0e} simplices, more "
            f"than the {MOST_SIMPLICES:.0e} that memory holds; draw fewer points at random"
        )
    i, j = np.triu_indices(n, 1)
    order = np.argsort(distances[i, j], kind="stable")
    ends, lengths = np.stack([i, j], axis=1)[order], distances[i, j][order]
    places = np.empty(len(order))
    places[order] = np.arange(len(order))
    found = []
    for bars in _rips(squareform(places + 1), top):  # (m, 2): births and deaths
        bars = bars.astype(np.int64) - 1
        bars = bars[lengths[bars[:, 0]] < lengths[bars[:, 1]]]
        found.append(ends[bars].reshape(-1, 4))
    return found + none * (max_dim - top)


def _rips(distances: np.ndarray, max_dim: int) -> list[np.ndarray]:
    """Finite bars (m, 2) of each dimension from 1 on: by ripser, or by gudhi's simplex tree."""
    radius = distances.max(axis=1).min()  # from it on, a cone: no bar
    if ripser is not None:
        return ripser(distances, max_dim, radius, FIELD)[1:]
    rips = gudhi.RipsComplex(distance_matrix=distances, max_edge_length=radius)
    tree = rips.create_simplex_tree(max_dimension=max_dim + 1)
    tree.compute_persistence(homology_coeff_field=FIELD)
    bars = [tree.persistence_intervals_in_dimension(k) for k in range(1, max_dim + 1)]
    return [bar.reshape(-1, 2) for bar in bars]


def _check_distances(points: Tensor) -> Tensor:
    """Return distances (n, n), made symmetric and not negative, or raise a ``ValueError``.

    The two entries of a pair may differ, those of the diagonal from 0, and any be below 0, by √eps
    of the largest, which is what ``torch.cdist`` and 1 − cos make of rounding.
    """
    shape = tuple(points.shape)
    if shape[0] != shape[1]:
        raise ValueError(
            f"points must be a square matrix of distances for metric='precomputed'; got {shape}"
        )
    array = _as_rows(points, min_rows=0, min_columns=0, name="points").cpu().numpy()
    tolerance = torch.finfo(_result_dtype(points)).eps ** 0.5 * array.max(initial=0.0)
    if (array < -tolerance).any():
        raise ValueError(f"points of shape {shape} hold a negative distance, {array.min()}")
    if (np.abs(array - array.T) > tolerance).any():
        raise ValueError(f"points of shape {shape} are no symmetric matrix of distances")
    if (np.abs(np.diagonal(array)) > tolerance).any():
        raise ValueError(
            f"points of shape {shape} hold a distance of a point from itself, "
            f"{np.diagonal(array).max()}: the diagonal must be 0"
        )
    wide = points.to(_result_dtype(points))
    return (wide / 2 + wide.T / 2).clamp_min(0)


def _like(values: Tensor, points: Tensor) -> Tensor:
    return values.to(_result_dtype(points)).to(points.device)
