"""Lengths of edges between points, and how they change with the points."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology._compiled import COMPILED, compiled
from shrink_utils.topology._host import to_device, to_host

CHUNK = 1024  # edges at a time where NumPy needs room for their differences


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


def pull_back(
    points: np.ndarray,
    edges: np.ndarray,
    lengths: np.ndarray,
    slopes: np.ndarray,
    gradient: np.ndarray,
) -> None:
    """Add the gradient of Σ slope · length with respect to the points.

    An edge's length grows along its unit vector at one end and against it at the other; through an
    edge of length zero nothing passes (Leygonie et al. 2021, arXiv 1910.00960).

    Parameters
    ----------
    points : ndarray, shape (n, d)
    edges : ndarray of int64, shape (m, 2)
    lengths, slopes : ndarray of float64, shape (m,)
    gradient : ndarray, shape (n, d)
        Added to in place.
    """
    scale = np.divide(slopes, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    if COMPILED:
        _add_scaled(points, edges, scale, gradient)
        return
    for start in range(0, len(edges), CHUNK):
        part = slice(start, start + CHUNK)
        step = _differences(points, edges[part]) * scale[part, None]
        np.add.at(gradient, edges[part, 0], step.astype(gradient.dtype))
        np.subtract.at(gradient, edges[part, 1], step.astype(gradient.dtype))


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
def _add_scaled(
    points: np.ndarray, edges: np.ndarray, scale: np.ndarray, gradient: np.ndarray
) -> None:
    d = points.shape[1]
    step = np.empty(d, gradient.dtype)  # apart from `gradient`, whose two rows might be one
    for e in range(len(edges)):
        a, b = edges[e]
        if scale[e] != 0.0:
            for k in range(d):
                step[k] = scale[e] * (np.float64(points[a, k]) - np.float64(points[b, k]))
            for k in range(d):
                gradient[a, k] += step[k]
            for k in range(d):
                gradient[b, k] -= step[k]


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
        """Slope times unit vector, at both ends of each edge."""
        _first_derivatives_only()
        (points,) = ctx.saved_tensors
        (slopes,) = to_host(grad_lengths.double())
        gradient = np.zeros_like(ctx.measured[0])
        pull_back(*ctx.measured, slopes, gradient)
        return to_device(gradient, points).to(points.dtype), None, None, None, None


class KnownGradient(torch.autograd.Function):
    """A scalar whose gradient has been worked out along with it; first derivatives only."""

    @staticmethod
    def forward(ctx, at: Tensor, value: np.ndarray, gradient: np.ndarray):
        """Pass `value` on; `gradient` has the shape of `at`."""
        ctx.save_for_backward(to_device(gradient, at))
        ctx.dtype = at.dtype
        return to_device(value, at)

    @staticmethod
    def backward(ctx, grad_value: Tensor):
        """The chain rule."""
        _first_derivatives_only()
        (gradient,) = ctx.saved_tensors
        return (gradient * grad_value).to(ctx.dtype), None, None


def _first_derivatives_only() -> None:
    if torch.is_grad_enabled():  # so it is in a backward pass only with create_graph=True
        raise RuntimeError(
            "bar lengths and entropies have first derivatives only: "
            "they cannot be differentiated with create_graph=True"
        )
