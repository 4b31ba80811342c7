"""What the room's functions accept, said once."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology._host import to_host

SAFE = 2.0**-64, 2.0**64  # for a sum of squares in float32


def check_matrix(points: Tensor, *, name: str = "points") -> Tensor:
    """Return `points` as a tensor, or raise a ``ValueError`` that names the argument.

    A point cloud is a real matrix: one row a point, ``(n, d)``. See `coordinates` for its values.
    """
    points = torch.as_tensor(points)
    if points.ndim != 2 or points.is_complex():
        raise ValueError(
            f"{name} must be a real (n, d) matrix, one row a point; "
            f"got shape {tuple(points.shape)}, {points.dtype}"
        )
    return points


def coordinates(
    points: Tensor, *beside: Tensor, name: str = "points"
) -> tuple[np.ndarray, float, list[np.ndarray]]:
    """Values of a point cloud, or a ``ValueError`` if they are not finite.

    Returns
    -------
    array : ndarray, shape (n, d)
        Contiguous; float32 for float32 and half precision, else float64: nothing is rounded.
    unit : float
        `array` is `points` over this power of two, which is exact. 1 where squares are far from
        overflowing and from vanishing.
    beside : list of ndarray
        Values of other tensors that are wanted along with them.
    """
    half = (torch.float16, torch.bfloat16)
    wide = points.float() if points.dtype in half else points
    if wide.dtype != torch.float32:
        wide = wide.double()
    array, *others = to_host(wide, *beside)
    with np.errstate(over="ignore", invalid="ignore"):
        sum_of_squares = np.vdot(array, array)
    if SAFE[0] < sum_of_squares < SAFE[1]:  # all finite, and so is all that is squared later
        return array, 1.0, others
    largest = float(np.abs(array).max(initial=0.0))
    if not math.isfinite(largest):
        raise ValueError(not_finite(array, name))
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest else 1.0
    return array / unit, unit, others


def not_finite(array: np.ndarray, name: str) -> str:
    """What to tell somebody whose matrix holds NaN or infinite values."""
    bad_rows = ~np.isfinite(array).all(axis=1)  # (n,)
    return (
        f"{name} of shape {array.shape} holds NaN or infinite values in "
        f"{bad_rows.sum()} rows, the first of them row {bad_rows.argmax()}; "
        "drop or repair these rows first"
    )


def check_lengths(lengths: Tensor) -> Tensor:
    """Return bar lengths as a tensor, or raise a ``ValueError``: a real, finite, ≥ 0 vector."""
    lengths = torch.as_tensor(lengths)
    if lengths.ndim != 1 or lengths.is_complex():
        raise ValueError(
            f"lengths must be a real (m,) vector; got shape {tuple(lengths.shape)}, {lengths.dtype}"
        )
    bad = ~(torch.isfinite(lengths) & (lengths >= 0))
    if bad.any():
        raise ValueError(
            f"lengths of shape {tuple(lengths.shape)} must be finite and not negative; "
            f"found {lengths[bad][0].item()} at index {int(bad.int().argmax())}: "
            "leave infinite bars out, and pass death − birth, not birth − death"
        )
    return lengths


def result_dtype(tensor: Tensor) -> torch.dtype:
    """Dtype of what is computed from `tensor`: its own, and float32 for anything narrower."""
    return tensor.dtype if tensor.dtype in (torch.float32, torch.float64) else torch.float32
