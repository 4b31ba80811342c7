"""Lengths of edges between points, and how they change with the points."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology.arrays import COMPILED, compiled, to_device, to_host

CHUNK = 1024  # edges at a time where NumPy needs room for their differences
LARGE = 2.0**60


def edge_lengths(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Euclidean lengths (m,) in float64 of edges (m, 2) between points (n, d)."""
    if COMPILED:
        return _lengths(points, edges)
    lengths = np.empty(len(edges))
    for start in range(0, len(edges), CHUNK):
        part = slice(start, start + CHUNK)
        difference = _differences(points, edges[part])
        lengths[part] = np.sqrt(np.einsum("ij,ij->i", difference, difference))
    return lengths


def gradient_of_lengths(
    points: np.ndarray, edges: np.ndarray, lengths: np.ndarray, slopes: np.ndarray
) -> np.ndarray:
    """Gradient (n, d) of Σ slope · length with respect to the points, in their dtype.

    An edge's length grows along its unit vector at one end and against it at the other; nothing
    passes through an edge of length zero (Leygonie et al. 2021, arXiv 1910.00960).
    """
    if COMPILED:
        return _gradient(points, edges, lengths, slopes)
    gradient, scale = np.zeros_like(points), _slopes_over_lengths(lengths, slopes)
    for start in range(0, len(edges), CHUNK):
        part = slice(start, start + CHUNK)
        step = _differences(points, edges[part]) * scale[part, None]
        np.add.at(gradient, edges[part, 0], step.astype(gradient.dtype))
        np.subtract.at(gradient, edges[part, 1], step.astype(gradient.dtype))
    return gradient


def _differences(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    return points[edges[:, 0]].astype(np.float64) - points[edges[:, 1]]  # (m, d)


@compiled
def _lengths(points: np.ndarray, edges: np.ndarray) -> np.ndarray:
    lengths = np.empty(len(edges))
    for e in range(len(edges)):
        a, b = edges[e]
        total = 0.0
        for k in range(points.shape[1]):
            difference = np.float64(points[a, k]) - np.float64(points[b, k])
            total += difference * difference
        lengths[e] = np.sqrt(total)
    return lengths


@compiled
def _slopes_over_lengths(lengths: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    scale, positive = np.zeros_like(lengths), np.flatnonzero(lengths)
    scale[positive] = slopes[positive] / lengths[positive]
    return scale


@compiled
def _gradient(
    points: np.ndarray, edges: np.ndarray, lengths: np.ndarray, slopes: np.ndarray
) -> np.ndarray:
    """Row by row, so that each is written while it is at hand."""
    n, m, scale = len(points), len(edges), _slopes_over_lengths(lengths, slopes)
    end = np.zeros(n + 1, np.int64)  # of the places where the edges at a point are listed
    for e in range(m):
        end[edges[e, 0] + 1] += 1
        end[edges[e, 1] + 1] += 1
    end = np.cumsum(end)[:-1]  # as yet, the beginnings
    neighbour, weight = np.empty(2 * m, np.int64), np.empty(2 * m)
    for e in range(m):
        a, b = edges[e]
        neighbour[end[a]], weight[end[a]] = b, scale[e]
        end[a] += 1
        neighbour[end[b]], weight[end[b]] = a, scale[e]
        end[b] += 1
    gradient = np.empty_like(points)
    if np.all(np.abs(scale) < LARGE):  # no product with a weight can overflow in float32
        _sum_rows(points, end, neighbour, weight.astype(points.dtype), gradient)
    else:
        _sum_rows(points, end, neighbour, weight, gradient)
    return gradient


@compiled
def _sum_rows(
    points: np.ndarray,
    end: np.ndarray,
    neighbour: np.ndarray,
    weight: np.ndarray,
    gradient: np.ndarray,
) -> None:
    """Write Σ weight · (point − neighbour) over each point's neighbours, in the weights' dtype."""
    place = 0
    for i in range(len(points)):
        gradient[i] = 0
        while place < end[i]:
            j, w = neighbour[place], weight[place]
            for k in range(points.shape[1]):
                gradient[i, k] += w * (points[i, k] - points[j, k])
            place += 1


class EdgeLengths(torch.autograd.Function):
    """Lengths of edges as a differentiable function of the points; first derivatives only."""

    @staticmethod
    def forward(
        ctx,
        points: Tensor,
        array: np.ndarray,
        edges: np.ndarray,
        lengths: np.ndarray,
        unit: float,
    ):
        """Pass on lengths (m,) that were measured between the rows of `array`, `points` / unit."""
        ctx.save_for_backward(points)  # so that a change of the points in between is noticed
        ctx.measured = array, edges, lengths
        return to_device(lengths * unit, points)

    @staticmethod
    def backward(ctx, grad_lengths: Tensor):
        _first_derivatives_only()
        (points,) = ctx.saved_tensors
        (slopes,) = to_host(grad_lengths.double())
        gradient = gradient_of_lengths(*ctx.measured, slopes)
        return to_device(gradient, points).to(points.dtype), None, None, None, None


class LengthsValue(torch.autograd.Function):
    """A scalar worked out from lengths of edges, its slopes known; first derivatives only.

    The gradient is worked out when it is asked for. On a GPU nothing waits for the factor that it
    comes with.
    """

    @staticmethod
    def forward(
        ctx,
        points: Tensor,
        value: np.ndarray,
        array: np.ndarray,
        edges: np.ndarray,
        lengths: np.ndarray,
        slopes: np.ndarray,
    ):
        """Pass `value` on; lengths were measured in `array`, and slopes are those in `points`."""
        ctx.save_for_backward(points)  # so that a change of the points in between is noticed
        ctx.measured = array, edges, lengths, slopes
        return to_device(value, points)

    @staticmethod
    def backward(ctx, grad_value: Tensor):
        _first_derivatives_only()
        (points,) = ctx.saved_tensors
        array, edges, lengths, slopes = ctx.measured
        if grad_value.is_cpu:
            slopes, grad_value = slopes * grad_value.item(), None
        gradient = to_device(gradient_of_lengths(array, edges, lengths, slopes), points)
        if grad_value is not None:
            gradient = gradient * grad_value
        return gradient.to(points.dtype), None, None, None, None, None


class KnownGradient(torch.autograd.Function):
    """A scalar whose gradient has been worked out along with it; first derivatives only."""

    @staticmethod
    def forward(ctx, at: Tensor, value: np.ndarray, gradient: np.ndarray):
        ctx.save_for_backward(to_device(gradient, at))
        ctx.dtype = at.dtype
        return to_device(value, at)

    @staticmethod
    def backward(ctx, grad_value: Tensor):
        _first_derivatives_only()
        (gradient,) = ctx.saved_tensors
        return (gradient * grad_value).to(ctx.dtype), None, None


def _first_derivatives_only() -> None:
    if torch.is_grad_enabled():  # so it is in a backward pass only with create_graph=True
        raise RuntimeError(
            "bar lengths and entropies have first derivatives only: "
            "they cannot be differentiated with create_graph=True"
        )
