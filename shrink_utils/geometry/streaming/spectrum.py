"""One-pass quantities of the singular values: scores, IsoScore, effective rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.checks import unit_scale
from shrink_utils.geometry.spectrum import check_k, entropy_rank, leading_shares, trace_ratio
from shrink_utils.geometry.streaming.base import StreamingMetric, batch_rows, check_width
from shrink_utils.geometry.streaming.moments import Moments, Rows

__all__ = ["EffectiveRank", "IsoScore", "Spectrum"]


class TriangleMoments(Moments):
    """Second moments as R with RᵀR = Σzzᵀ, by orthogonal triangularization of what is stacked.

    R has the singular values of the centred rows. Eigenvalues of Σzzᵀ would give them to half the
    digits only, and null directions of it would count 1e-8 each in the effective rank.
    """

    @staticmethod
    def _shapes(widths: Sequence[int]) -> list[tuple[int, ...]]:
        (d,) = widths
        return [(), (1,), (d,), (d,), (1,), (1, 1), (1, d), (d * (d + 1) // 2,)]

    @property
    def triangle(self) -> Tensor:
        """R, (d, d); the state holds its upper half."""
        (d,) = self.widths
        full = self.second.new_zeros(d, d)
        full[*self._upper()] = self.second
        return full

    def times(self, step: Tensor) -> Tensor:
        triangle = self.triangle
        return (triangle.T @ (triangle @ step))[None]

    def _upper(self) -> Tensor:
        return torch.triu_indices(*self.widths, *self.widths, device=self.second.device)

    def _add_second(self, other: Rows | Moments, between: Tensor) -> None:
        if isinstance(other, Rows):
            stacked = [self.triangle, *other.with_row(between)]
        else:
            stacked = [self.triangle, other.triangle, between[None]]
        triangle = torch.linalg.qr(torch.cat(stacked), mode="r").R
        self.second.copy_(triangle[*self._upper()])

    def _scale_second(self, factor: Tensor) -> None:
        self.second *= factor


class SpectralMetric(StreamingMetric):
    """Base of the three: the same state, so a ``MetricCollection`` updates it once for all.

    An update costs O((d + n)d²) for n rows, so hand over a few hundred rows at a time.
    """

    def __init__(self, n_features: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n_features = n_features = check_width(n_features)
        widths = (n_features,)
        fold = partial(TriangleMoments.fold, widths=widths)
        self.add_zeros("moments", TriangleMoments.size(widths), merge=fold)

    def update(self, x: ArrayLike | Tensor) -> None:
        """Take in a batch of rows, (n, n_features)."""
        TriangleMoments(self.moments, (self.n_features,)).add([batch_rows(x, self.n_features)])

    def _read(self, *, center: bool, min_rows: int = 1) -> tuple[TriangleMoments, Tensor]:
        """Moments, and rows with the singular values of all rows, scaled to 1 at most."""
        moments = TriangleMoments(self.moments, (self.n_features,))
        self.need_rows(moments.n, min_rows)
        rows = moments.triangle
        if not center:
            mean = torch.sqrt(moments.n) * (moments.origin + moments.mean)
            rows = torch.cat([rows, mean[None]])
        if not rows.any():
            what = "no variance (all rows are identical)" if center else "nothing but zeros"
            raise ValueError(
                f"{type(self).__name__} has seen {int(moments.n)} row(s) with {what}: the result "
                "is undefined"
            )
        return moments, unit_scale(rows, center=False)


class Spectrum(SpectralMetric):
    """First `k` anisotropy scores, σ_k² / Σσ²: `geometry.anisotropy` in one pass."""

    def __init__(self, n_features: int, *, k: int = 3, center: bool = False, **kwargs: Any) -> None:
        super().__init__(n_features, **kwargs)
        self.k, self.center = k, center

    def compute(self) -> Tensor:
        """Scores, (k,) float64 (a scalar for k = 1), descending.

        A ``ValueError`` for `k` outside 1 … min(rows, columns), or where nothing varies.
        """
        moments, rows = self._read(center=self.center)
        n = int(moments.n)
        check_k(self.k, min(n, self.n_features), f"after {n} row(s)")
        return leading_shares(torch.linalg.svdvals(rows).square(), self.k)


class IsoScore(SpectralMetric):
    """IsoScore, (PR − 1) / (d − 1), plain or bias-corrected: `geometry.iso_score` in one pass."""

    def __init__(self, n_features: int, *, bias_corrected: bool = False, **kwargs: Any) -> None:
        if check_width(n_features) < 2:
            raise ValueError(f"n_features must be at least 2, got {n_features}")
        super().__init__(n_features, **kwargs)
        self.bias_corrected = bias_corrected

    def compute(self) -> Tensor:
        """The score, a float64 scalar; refused where `geometry.iso_score` is."""
        moments, _ = self._read(center=True, min_rows=4 if self.bias_corrected else 2)
        n, scale = moments.n, moments.norms.squeeze()
        # With C scaled to tr C = n − 1, as PR has no scale: tr S = 1 below.
        frobenius = (moments.triangle.T @ moments.triangle / scale).square().sum()
        fourth = None
        if self.bias_corrected:
            fourth = (n - 1).square() * moments.norm_products.squeeze() / scale.square()
        ratio = trace_ratio(torch.ones_like(frobenius), frobenius, fourth, n)
        return (ratio - 1) / (self.n_features - 1)


class EffectiveRank(SpectralMetric):
    """Effective rank, exp of the entropy of σ/Σσ: `geometry.effective_rank` in one pass."""

    def __init__(self, n_features: int, *, center: bool = True, **kwargs: Any) -> None:
        super().__init__(n_features, **kwargs)
        self.center = center

    def compute(self) -> Tensor:
        """The rank, a float64 scalar; refused where `geometry.effective_rank` is."""
        return entropy_rank(torch.linalg.svdvals(self._read(center=self.center)[1]))
