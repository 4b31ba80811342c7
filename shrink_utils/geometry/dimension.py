"""Intrinsic dimension of a cloud: from nearest neighbours, or from minimum spanning trees."""

import math

import numpy as np
import torch
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist
from scipy.stats import linregress
from torch import Tensor

from shrink_utils.names import known_name
from shrink_utils.topology import h0_barcode
from shrink_utils.topology.arrays import (
    Array,
    _as_rows,
    _as_tensor,
    _power_of_two,
    _rounding_of_rows,
    _whole_number,
)

_TREE_DIMENSIONS = 10  # up to here a k-d tree is faster
_BLOCK = 64  # rows whose distances are held at a time
_DISCARDED = 0.1  # share of the largest neighbour ratios left out of the TwoNN fit
_TREE_SIZES = 8  # subsample sizes, n/8 … n
_TREES_PER_SIZE = 5


def intrinsic_dimension(
    x: Array, *, method: str = "twonn", seed: int = 0, return_error: bool = False
) -> float | tuple[float, float]:
    """Dimension of the set that the rows seem to be drawn from, not of the space around it.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples. Repeated rows are counted once, also those that differ by rounding: by at
        most 16 eps of float32, 2e-6, of their norm (half precision: eps of the dtype). In float64
        the norm is that of the row less the mean row where that is smaller, except where float32
        holds the values exactly, as those of a float32 network.
    method : {"twonn", "ph"}
        "twonn": the ratios of second to first nearest-neighbour distances. "ph": the growth of
        minimum spanning trees.
    seed : int
        "ph" only: which subsamples the trees span.
    return_error : bool
        Return the standard error of the dimension too.

    Returns
    -------
    dimension : float
        Positive; infinite for "ph" when the trees grow as fast as the sample or faster.
    standard_error : float
        Only with `return_error`. "ph": that of the fitted line, which takes trees that share rows
        as independent: a lower limit. Infinite where the dimension is.

    Raises
    ------
    ValueError
        Unknown `method`, fewer than 4 ("twonn") or 32 ("ph") distinct rows; for
        "twonn" also a lattice, whose first and second neighbours are equally far.

    Notes
    -----
    *TwoNN.* If density is constant as far as the second neighbour, μ = r₂/r₁ has the distribution
    F(μ) = 1 − μ^(−D). D is the slope of −ln(1 − i/n) against the i-th smallest ln μ, a line through
    the origin fitted to the lowest 90 % (Facco et al. 2017, equation 5). The authors' program has
    (i − 1)/n in the place of i/n: 10 % less at n = 30, .1 % in the thousands. Its standard error is
    that of the maximum likelihood estimate 1/mean(ln μ) from the ratios that are kept, about
    D/√kept; two rows that are each other's nearest share r₁ and count as one cluster. The line's
    own error would be many times too small: order statistics do not scatter independently.

    *PH.* Σ|edge| of the spanning tree of n points grows as n^((D − 1)/D), so D = 1 / (1 − slope) of
    its logarithm against ln n: least squares over 5 subsamples at each of 8 sizes from n/8 to
    n (Schweinhart 2020; Birdal et al. 2021, section 3). The error of D follows from the slope's by
    the delta method: it is D² times that. Sums of lengths to the power 1 do not shrink as points
    come in: a set of a dimension below 1, such as Cantor's, gets 1.

    Both underestimate high dimensions: n points cannot fill them. Compare with a cloud of known
    dimension and the same n.

    Examples
    --------
    >>> import torch
    >>> plane = torch.rand(500, 2, generator=torch.Generator().manual_seed(0))
    >>> round(intrinsic_dimension(plane @ torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])))
    2
    """
    known_name("method", "method", method, ("twonn", "ph"))
    given = _as_tensor(x, "x")
    x = _as_rows(given)
    unit, radius = _power_of_two(x), _rounding_of_rows(x.cpu().numpy(), given.dtype)
    distinct = _distinct_rows((x / unit).cpu(), torch.from_numpy(radius / unit)).numpy()
    needed = 4 if method == "twonn" else 32
    if len(distinct) < needed:
        raise ValueError(
            f"x of shape {tuple(x.shape)} has {len(distinct)} distinct row(s); "
            f'method "{method}" needs at least {needed}'
        )
    found = _two_nn(distinct) if method == "twonn" else _ph_dimension(distinct, seed)
    return found if return_error else found[0]


def _distinct_rows(x: Tensor, radius: Tensor) -> Tensor:
    """Rows (m, d) in lexicographic order, without copies.

    A row is a copy of another if they lie no farther apart than the larger `radius` (n,) of both:
    the rule of `BarcodeRegularizer`. Copies are neighbours along any direction, here a fixed one.
    """
    x, place = torch.unique(x, dim=0, return_inverse=True)
    radius = radius.new_zeros(len(x)).scatter_reduce(0, place, radius, "amax")
    direction = torch.from_numpy(np.random.default_rng(0).normal(size=x.shape[1]))
    along, order = (x @ (direction / torch.linalg.vector_norm(direction))).sort()
    kept = torch.ones(len(x), dtype=torch.bool, device=x.device)
    for step in range(1, len(x)):
        first, second = order[:-step], order[step:]
        within = torch.maximum(radius[first], radius[second])
        near = along[step:] - along[:-step] <= within
        if not near.any():
            break
        first, second, within = first[near], second[near], within[near]
        copies = torch.linalg.vector_norm(x[first] - x[second], dim=1) <= within
        kept[torch.maximum(first, second)[copies]] = False
    return x[kept]


def _nearest_distances(x: np.ndarray, k: int) -> np.ndarray:
    """Distances (n, k) from each of n distinct rows (n, d) to the k nearest others, ascending."""
    if x.shape[1] <= _TREE_DIMENSIONS:
        return KDTree(x).query(x, k=k + 1)[0][:, 1:]
    nearest = []
    for start in range(0, len(x), _BLOCK):
        distances = cdist(x[start : start + _BLOCK], x)
        nearest.append(np.sort(np.partition(distances, k, axis=1)[:, : k + 1])[:, 1:])
    return np.concatenate(nearest)


def _two_nn(x: np.ndarray) -> tuple[float, float]:
    first, second = _nearest_distances(x, 2).T  # (n,)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_mu = np.log(second / first)
    n, kept = len(log_mu), int((1 - _DISCARDED) * len(log_mu))
    least = np.sort(log_mu)[:kept]
    # A lattice's ratios differ from 1 by rounding; 0/0 and r/0 sort last.
    if not 1e-9 < least[-1] < math.inf:
        raise ValueError(
            f"x has {n} distinct rows whose two nearest neighbours are equally far (a lattice) or "
            "nearer than float64 can tell"
        )
    log_survival = np.log1p(-np.arange(1, kept + 1) / n)
    dimension = float(-(log_survival @ least) / (least @ least))
    # A ratio that was left out counts with what ln μ is beyond the last one kept, on average.
    counted = np.where(log_mu <= least[-1], log_mu, least[-1] + 1 / dimension)
    influence = 1 - dimension * counted
    _, pair = np.unique(first, return_inverse=True)  # mutual neighbours are equally far
    of_pair = np.bincount(pair, weights=influence - influence.mean())
    return dimension, float(dimension * np.sqrt(of_pair @ of_pair / (n * kept)))


def _ph_dimension(x: np.ndarray, seed: int) -> tuple[float, float]:
    rng, n = np.random.default_rng(_whole_number(seed, "seed")), len(x)
    points, log_size, log_total = torch.from_numpy(x), [], []
    for size in np.geomspace(n / 8, n, _TREE_SIZES).round().astype(int).repeat(_TREES_PER_SIZE):
        rows = rng.permutation(n)[:size]
        edges = h0_barcode(points[rows]).lengths.double().numpy()
        log_size.append(math.log(size))
        log_total.append(math.log(edges.sum()))
    line = linregress(log_size, log_total)
    if line.slope >= 1:
        return math.inf, math.inf
    dimension = float(1 / (1 - line.slope))
    return dimension, float(line.stderr * dimension**2)
