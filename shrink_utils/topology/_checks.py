"""What the room's functions accept, said once."""

from __future__ import annotations

import torch
from torch import Tensor


def check_points(points: Tensor, *, name: str = "points") -> Tensor:
    """Return `points` as a tensor, or raise a ``ValueError`` that names the argument.

    A point cloud is a real, finite matrix: one row a point, ``(n, d)``.
    """
    points = torch.as_tensor(points)
    if points.ndim != 2 or points.is_complex():
        raise ValueError(
            f"{name} must be a real (n, d) matrix, one row a point; "
            f"got shape {tuple(points.shape)}, {points.dtype}"
        )
    bad_rows = (~torch.isfinite(points)).any(dim=1)  # (n,)
    if bad_rows.any():
        raise ValueError(
            f"{name} of shape {tuple(points.shape)} holds NaN or infinite values in "
            f"{int(bad_rows.sum())} rows, the first of them row {int(bad_rows.int().argmax())}; "
            "drop or repair these rows first"
        )
    return points


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
