"""The singular value decomposition of a centred cloud, cut where its directions end."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["RankedSVD", "ranked_svd"]

_CUT = 1e-10  # singular values below this share of the largest are rounding, not directions


class RankedSVD(NamedTuple):
    """x = basis · diag(sigma) · axes, with r directions."""

    basis: Tensor  # (n, r), orthonormal columns: the space of all centred linear functions of x
    sigma: Tensor  # (r,), descending
    axes: Tensor  # (r, d), orthonormal rows


def ranked_svd(x: Tensor) -> RankedSVD:
    """Thin SVD without the directions whose singular value is at most 1e-10 of the largest."""
    basis, sigma, axes = torch.linalg.svd(x, full_matrices=False)
    rank = int((sigma > _CUT * sigma[0]).sum())
    return RankedSVD(basis[:, :rank], sigma[:rank], axes[:rank])
