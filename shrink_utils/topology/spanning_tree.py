r"""The Euclidean minimum spanning tree, exact to float64; gradients along the edges of a tree.

Prim's algorithm only compares distances, and most comparisons are far from close: they can be made
on *rounded* squared distances s, taken in float32, as long as it is known how wrong these can be.

**The bound.** With u = 2⁻²⁴, float32's unit roundoff, a sum of d products is off by at most
d u / (1 − d u) times the sum of their absolute values, in whatever order it is taken (Higham 2002,
*Accuracy and Stability of Numerical Algorithms*, §3.1 and §4.2).

- Up to `BY_DIFFERENCES` points, differences of coordinates are taken first. The true squared
  distance is then within ε s + τ of s, with ε = 2 (d + 8) u, more than is needed. τ stands for
  squares that vanish: d · (the smallest normal number), and more than enough of it.
- Beyond, s = ‖x‖² + ‖y‖² − 2 x·y of centred points, by a matrix product, which costs half as much
  where a processor multiplies wide. It is off by a share of the norms, ε (‖x‖² + ‖y‖²) + τ:
  d u of it for the sum, 4 u for the coordinates, which were rounded when they were centred. So
  tight clusters far apart are not resolved by it, and more of their distances are measured.

**The certificate.** Two distances whose intervals do not overlap are compared by them; otherwise
both are measured again, in float64. Every comparison thus comes out as in float64, and the lengths
are the same to the last bit whichever way they were found.

**Many points.** Above `MOST_IN_MATRIX`, every two parts of the cloud have their tree, and the tree
of the whole is made of their edges: an edge that is the longest of a circle in a part is so in the
whole, too.
"""

import math
from collections.abc import Callable
from functools import cache
from itertools import combinations

import numpy as np
import torch
from scipy.cluster.hierarchy import DisjointSet
from torch import Tensor

from shrink_utils.topology.arrays import (
    COMPILED,
    compiled,
    on_float64_device,
    power_of_two,
    result_dtype,
    sum_of_squares,
    to_host,
)

BY_DIFFERENCES = 256  # points up to which they are as fast as a product: half its time at 64
MOST_IN_MATRIX = 8192  # points: 256 MiB
U = 2.0**-24  # the unit roundoff of float32
SAFE = 2.0**-64, 2.0**64  # a sum of squares from which no square overflows or vanishes in float32


def minimum_spanning_tree(
    points: np.ndarray, squares: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Edges (n − 1, 2) of a cloud's tree and their lengths (n − 1,), float64, longest first.

    `points` (n, d) are finite, contiguous, float32 or float64; `squares` is their sum of squares,
    where it is known. The same tree each time.
    """
    n = len(points)
    if n < 2:
        return np.empty((0, 2), np.int64), np.empty(0)
    squares = sum_of_squares(points) if squares is None else squares
    unit = 1.0 if SAFE[0] < squares < SAFE[1] else power_of_two(points)
    if unit != 1.0:
        points = points / unit
    if not COMPILED:
        edges, lengths = _longest_first(*prim_by_rows(n, lambda i: _from_row(points, i)))
    elif n <= MOST_IN_MATRIX:
        edges, lengths = _tree(points, *rounded_distances(points))
    else:
        edges, lengths = _longest_first(*_of_parts(points))
    return edges, lengths if unit == 1.0 else lengths * unit


@compiled
def _longest_first(edges: np.ndarray, squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(-squared, kind="mergesort")  # stable
    return edges[order], np.sqrt(squared[order])


def prim_by_rows(
    n: int, distances_from: Callable[[int], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Prim's algorithm from a function that gives the distances (n,) of all points from one."""
    edges, lengths = np.empty((max(n - 1, 0), 2), np.int64), np.empty(max(n - 1, 0))
    nearest = np.zeros(n, np.int64)  # the point of the tree nearest to each point outside
    distance = np.full(n, np.inf)  # and how far it is
    outside = np.ones(n, bool)
    newest = 0
    for step in range(len(edges)):
        outside[newest] = False
        row = distances_from(newest)
        closer = outside & (row < distance)
        distance[closer], nearest[closer] = row[closer], newest
        newest = int(np.where(outside, distance, np.inf).argmin())
        edges[step], lengths[step] = (nearest[newest], newest), distance[newest]
    return edges, lengths


def _from_row(points: np.ndarray, i: int) -> np.ndarray:
    """‖x_i − x_j‖² in float64, (n,)."""
    difference = points.astype(np.float64) - points[i]  # (n, d)
    return np.einsum("ij,ij->i", difference, difference)


def _of_parts(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `_prim`, from the trees of every two parts of the points."""
    n = len(points)
    parts = np.array_split(np.arange(n), math.ceil(n / (MOST_IN_MATRIX // 2)))
    pairs = [np.concatenate(pair) for pair in combinations(parts, 2)]
    trees = [_prim(points[rows], *rounded_distances(points[rows])) for rows in pairs]
    edges = np.concatenate([rows[tree[0]] for rows, tree in zip(pairs, trees, strict=True)])
    squared = np.concatenate([tree[1] for tree in trees])
    components = DisjointSet(range(n))
    order = np.argsort(squared, kind="stable")
    kept = [e for e in order if components.merge(*edges[e].tolist())]  # those that join two
    return edges[kept], squared[kept]


@compiled
def _tree(
    points: np.ndarray, squared: np.ndarray, epsilon: float, tau: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What `minimum_spanning_tree` gives, from what `rounded_distances` gives."""
    edges, lengths = _prim(points, squared, epsilon, tau)
    return _longest_first(edges, lengths)


def rounded_distances(points: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
    """Rounded s_ij = ‖x_i − x_j‖², (n, n), a factor ε, and shares τ_i, (n,).

    The true one is within ε s_ij + τ_i + τ_j of s_ij.
    """
    n, d = points.shape
    if n <= BY_DIFFERENCES:
        epsilon, tau = rounding_of(points.dtype, d)
        squared = np.empty((n, n), points.dtype)
        _fill(points, squared)
        return squared, epsilon, np.full(n, tau)
    epsilon, tau = rounding_of(np.float32, d)
    rows, norms = _centred(points, points.mean(axis=0))
    squared = rows @ rows.T  # NumPy takes half of the products, and mirrors them
    _from_products(norms, squared)
    return squared, min(epsilon, 4 * U), epsilon * norms + tau


@cache
def rounding_of(dtype: np.dtype, d: int) -> tuple[float, float]:
    """ε and τ of the module's description."""
    precision = np.finfo(dtype)  # its eps is 2 u
    return (d + 8) * float(precision.eps), 16 * (d + 1) * float(precision.tiny)


@compiled
def _centred(points: np.ndarray, mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows less the mean, in float32, and their squared lengths: a tenth of NumPy's time."""
    rows, norms = np.empty(points.shape, np.float32), np.empty(len(points))
    for i in range(len(points)):
        row, point, total = rows[i], points[i], 0.0
        for k in range(len(row)):
            row[k] = point[k] - mean[k]
        for k in range(len(row)):
            total += np.float64(row[k]) * np.float64(row[k])
        norms[i] = total
    return rows, norms


@compiled
def _from_products(norms: np.ndarray, products: np.ndarray) -> None:
    """Turn x_i·x_j into ‖x_i‖² + ‖x_j‖² − 2 x_i·x_j, in place."""
    for i in range(len(norms)):
        for j in range(len(norms)):
            products[i, j] = norms[i] + norms[j] - 2.0 * products[i, j]


@compiled
def _fill(points: np.ndarray, out: np.ndarray) -> None:
    """Write ‖x_i − x_j‖² to ``out[i, j]``, in the precision of the points.

    Three rows meet three at a time: six coordinates are then read for nine products, which halves
    the time. At the border the last row is taken again.
    """
    zero = out.dtype.type(0)
    last, d = len(points) - 1, points.shape[1]
    for i in range(0, len(points), 3):
        i1, i2 = min(i + 1, last), min(i + 2, last)
        a0, a1, a2 = points[i], points[i1], points[i2]
        for j in range(i, len(points), 3):
            j1, j2 = min(j + 1, last), min(j + 2, last)
            b0, b1, b2 = points[j], points[j1], points[j2]
            s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = zero
            for k in range(d):
                x0, x1, x2, y0, y1, y2 = a0[k], a1[k], a2[k], b0[k], b1[k], b2[k]
                s00 += (x0 - y0) * (x0 - y0)
                s01 += (x0 - y1) * (x0 - y1)
                s02 += (x0 - y2) * (x0 - y2)
                s10 += (x1 - y0) * (x1 - y0)
                s11 += (x1 - y1) * (x1 - y1)
                s12 += (x1 - y2) * (x1 - y2)
                s20 += (x2 - y0) * (x2 - y0)
                s21 += (x2 - y1) * (x2 - y1)
                s22 += (x2 - y2) * (x2 - y2)
            out[i2, j], out[i2, j1], out[i2, j2] = s20, s21, s22
            out[i1, j], out[i1, j1], out[i1, j2] = s10, s11, s12
            out[i, j], out[i, j1], out[i, j2] = s00, s01, s02
            out[j2, i], out[j2, i1], out[j2, i2] = s02, s12, s22
            out[j1, i], out[j1, i1], out[j1, i2] = s01, s11, s21
            out[j, i], out[j, i1], out[j, i2] = s00, s10, s20


@compiled
def _measured(points: np.ndarray, a: int, b: int) -> float:
    """‖x_a − x_b‖² in float64."""
    total = 0.0
    for k in range(points.shape[1]):
        difference = np.float64(points[a, k]) - np.float64(points[b, k])
        total += difference * difference
    return total


@compiled
def _prim(
    points: np.ndarray, squared: np.ndarray, epsilon: float, tau: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Grow the tree from point 0, always by the nearest point outside.

    Takes what `rounded_distances` gives. Returns edges (n − 1, 2) and measured squared lengths
    (n − 1,), as they were found.
    """
    n = len(points)
    edges, lengths = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
    outside = np.arange(1, n)  # its first n − 1 − step entries are
    nearest = np.zeros(n, np.int64)  # the point of the tree nearest to each point outside
    distance = np.full(n, np.inf)  # their squared distance
    error = np.zeros(n)  # and how far that may be off: 0 where it is measured
    newest = 0
    for step in range(n - 1):
        least, second = np.inf, np.inf  # the least upper ends of the intervals, the least lower
        best, lower_of_best = 0, np.inf  # ends but for the best one's
        for place in range(n - 1 - step):
            j = outside[place]
            s = np.float64(squared[newest, j])
            off = epsilon * abs(s) + tau[newest] + tau[j]
            if s - off < distance[j] + error[j]:
                if s + off >= distance[j] - error[j]:  # too close to call
                    if error[j] > 0:
                        distance[j], error[j] = _measured(points, nearest[j], j), 0.0
                    s, off = _measured(points, newest, j), 0.0
                if s < distance[j]:
                    nearest[j], distance[j], error[j] = newest, s, off
            upper, lower = distance[j] + error[j], distance[j] - error[j]
            if upper < least:
                second = min(second, lower_of_best)
                best, least, lower_of_best = place, upper, lower
            elif lower < second:
                second = lower
        if second <= least:  # others might be nearer than the one found
            for place in range(n - 1 - step):
                j = outside[place]
                if distance[j] - error[j] <= least:
                    if error[j] > 0:
                        distance[j], error[j] = _measured(points, nearest[j], j), 0.0
                    if distance[j] < distance[outside[best]] or error[outside[best]] > 0:
                        best = place
        newest = outside[best]
        outside[best] = outside[n - 2 - step]
        edges[step, 0], edges[step, 1] = nearest[newest], newest
        lengths[step] = _measured(points, nearest[newest], newest)
    return edges, lengths


def edge_lengths(points: Tensor, edges: np.ndarray) -> Tensor:
    """‖x_a − x_b‖ of edges (m, 2) between points, (m,), by torch: with all their derivatives."""
    points = on_float64_device(points).to(result_dtype(points))
    first, second = torch.from_numpy(np.ascontiguousarray(edges.T)).to(points.device)
    return torch.linalg.vector_norm(points[first] - points[second], dim=1)


class OfEdges(torch.autograd.Function):
    """A value that is known, of lengths of edges that are known, as a function of the points.

    `formula`, by torch, gives the same value again; only second derivatives ask for it. Torch's own
    first ones write four matrices as large as the points, half of the time of a step of 64.
    """

    @staticmethod
    def forward(
        ctx,
        points: Tensor,
        value: np.ndarray,
        edges: np.ndarray,
        lengths: np.ndarray,
        slopes: np.ndarray,
        formula: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """Pass `value` on; `slopes` (m,) are its derivatives by the lengths (m,) of the edges."""
        ctx.save_for_backward(points)  # so that a change of the points in between is noticed
        ctx.edges, ctx.lengths, ctx.slopes, ctx.formula = edges, lengths, slopes, formula
        return torch.from_numpy(value).to(points.device)

    @staticmethod
    def backward(ctx, grad_value: Tensor) -> tuple[Tensor | None, ...]:
        (points,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # so it is with create_graph=True only
            value = ctx.formula(points)
            (gradient,) = torch.autograd.grad(
                value, points, grad_value.to(value), create_graph=True
            )
        else:
            slopes = grad_value.numpy(force=True) * ctx.slopes
            array = along_edges(to_host(points), ctx.edges, ctx.lengths, slopes)
            gradient = torch.from_numpy(array).to(points)
        return gradient, None, None, None, None, None


@compiled
def along_edges(
    points: np.ndarray, edges: np.ndarray, lengths: np.ndarray, slopes: np.ndarray
) -> np.ndarray:
    """Σ slope · (x_a − x_b) / length over the edges of positive length at each point a, (n, d)."""
    total = np.zeros_like(points)
    for e in range(len(edges)):
        if lengths[e] > 0:
            x, y = points[edges[e, 0]], points[edges[e, 1]]
            to_x, to_y = total[edges[e, 0]], total[edges[e, 1]]
            inverse = 1 / lengths[e]
            for k in range(len(x)):
                step = slopes[e] * ((np.float64(x[k]) - np.float64(y[k])) * inverse)
                to_x[k] += step
                to_y[k] -= step
    return total
