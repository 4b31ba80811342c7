r"""Lower bounds of all distances from a bfloat16 matrix product, certified.

A processor with native bfloat16 multiplies matrices several times faster than in float32. The
cloud is centred and rounded: x_i − m = b_i + e_i, where the norm of the residual e_i is *known*,
in float64. By the triangle inequality,

.. math:: \|x_i - x_j\| \ge \|b_i - b_j\| - \|e_i\| - \|e_j\|,
    \qquad \|b_i - b_j\|^2 = \|b_i\|^2 + \|b_j\|^2 - 2\, b_i \cdot b_j.

Norms ‖b_i‖² are known too. The product p of b_i and b_j is not: it is summed in float32, where a
product of two bfloat16 numbers is exact, and the sum of d is off by at most
2⁻²⁴ d · ‖b_i‖ ‖b_j‖ in any order (Higham 2002, §3.1), for which 2⁻²¹ (d + 16) is allowed here:
eight times as much, for hardware that truncates. Then it is rounded to bfloat16, off by 2⁻⁸ |p| at
most. What float32 does to the bound itself is covered by the same allowance and by `MARGIN`.

The bound is relative to the norms: it says nothing of tight clusters far apart. `decides` tells.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import torch

from shrink_utils.topology.arrays import compiled
from shrink_utils.topology.edges import edge_lengths

OUTPUT = 2.0**-8 * (1 + 2.0**-10)  # unit roundoff of bfloat16, and of what is computed with it
MARGIN = 2.0**-20  # for a handful of float32 operations
RANGE = 2.0**-32, 2.0**32  # of the largest norm: no square overflows
# Most that a product loses of a square where hardware takes small numbers for 0.
VANISHED = 2.0**-90
ROWS = 1024  # rounded at a time
SAMPLE, CANDIDATES = 16, 4  # rows that are tried, and what the bound may leave of each at most


class Rounded(NamedTuple):
    """A centred cloud (n, d) in bfloat16; norms and residuals (n,), with their allowances."""

    points: torch.Tensor
    squared_norms: np.ndarray
    residuals: np.ndarray
    block: int = 512
    dtype: type = np.float32
    interval: tuple[float, float] = (0.0, 0.0)  # what `fill` writes are lower bounds already

    def fill(self, rows: np.ndarray, columns: np.ndarray, out: np.ndarray) -> None:
        """Write a lower bound of ‖x_i − x_j‖² to ``out[i, j]``."""
        a, b = self._part(rows), self._part(columns)
        product = torch.mm(a, b.T).view(torch.int16).numpy()
        norms, residuals = self.squared_norms, self.residuals
        _bounds(product, norms[rows], norms[columns], residuals[rows], residuals[columns], out)

    def _part(self, rows: np.ndarray) -> torch.Tensor:
        if (np.diff(rows) == 1).all():  # nothing to copy
            return self.points[rows[0] : rows[-1] + 1]
        return self.points[torch.from_numpy(rows)]


@cache
def native() -> bool:
    """Whether the processor multiplies bfloat16 matrices natively: torch and oneDNN are asked."""
    asked = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
    return asked is not None and torch.backends.mkldnn.is_available() and bool(asked())


def rounded(points: np.ndarray) -> Rounded | None:
    """Round a cloud (n, d); None where its size is beyond what the bound allows for."""
    n, d = points.shape
    cloud = torch.from_numpy(points)
    mean = cloud.mean(dim=0)
    low = torch.empty((n, d), dtype=torch.bfloat16)
    for start in range(0, n, ROWS):
        low[start : start + ROWS] = cloud[start : start + ROWS] - mean
    squared, residuals = np.empty(n), np.empty(n)
    _residuals(points, mean.numpy(), low.view(torch.int16).numpy(), squared, residuals)
    norms = np.sqrt(squared)
    if not RANGE[0] < norms.max() < RANGE[1]:
        return None
    residuals = residuals * (1 + MARGIN) + MARGIN * norms
    squared = squared * (1 - 2.0**-21 * (d + 16) - MARGIN) - d * VANISHED
    return Rounded(low, squared.astype(np.float32), residuals.astype(np.float32))


def decides(cloud: Rounded, points: np.ndarray) -> bool:
    """Whether the bound leaves few candidates for the nearest neighbour of a point, by a sample."""
    n = len(points)
    rows = np.unique(np.linspace(0, n - 1, SAMPLE).astype(np.int64))
    bounds = np.empty((len(rows), n), np.float32)
    for start in range(0, n, ROWS):
        columns = np.arange(start, min(n, start + ROWS))
        cloud.fill(rows, columns, bounds[:, start : start + ROWS])
    bounds[np.arange(len(rows)), rows] = np.inf
    likely = bounds.argmin(axis=1)
    lengths = edge_lengths(points, np.stack([rows, likely], axis=1))
    candidates = (bounds <= lengths[:, None] ** 2).sum(axis=1)
    return bool(candidates.mean() <= CANDIDATES)


@compiled
def _residuals(
    points: np.ndarray,
    mean: np.ndarray,
    low: np.ndarray,
    squared: np.ndarray,
    residuals: np.ndarray,
) -> None:
    """Write ‖b_i‖² and ‖x_i − mean − b_i‖, in float64; `low` holds the bits of b."""
    for i in range(len(points)):
        square = error = 0.0
        for k in range(points.shape[1]):
            b = np.float64(np.int32(np.int32(low[i, k]) << 16).view(np.float32))
            e = np.float64(points[i, k]) - np.float64(mean[k]) - b
            square += b * b
            error += e * e
        squared[i], residuals[i] = square, np.sqrt(error)


@compiled
def _bounds(
    product: np.ndarray,
    a_norms: np.ndarray,
    b_norms: np.ndarray,
    a_residuals: np.ndarray,
    b_residuals: np.ndarray,
    out: np.ndarray,
) -> None:
    two, output = np.float32(2), np.float32(2 * OUTPUT)
    keep, zero = np.float32(1 - MARGIN), np.float32(0)
    for i in range(product.shape[0]):
        for j in range(product.shape[1]):
            p = np.int32(np.int32(product[i, j]) << 16).view(np.float32)
            squared = a_norms[i] + b_norms[j] - two * p - output * abs(p)
            length = np.sqrt(max(squared, zero)) - (a_residuals[i] + b_residuals[j])
            length = max(length, zero)
            out[i, j] = keep * (length * length)
