"""Moments of rows about their running mean, packed in one vector and merged without loss.

Plain sums Σx and Σxxᵀ lose the digits that an offset takes up, and fourth powers lose them twice.
So a state holds moments about its own mean, and two states merge by the pairwise formulas of Chan,
Golub & LeVeque 1983, *Algorithms for Computing the Sample Variance*. Columns come in L blocks (one
for a single cloud, one a layer for CKA); z_i is block i of a centred row and k_i = ‖z_i‖².
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

# Rows are scaled by 2^−exponent in steps as wide as fourth powers allow: common data not at all.
STEP, LEAST_EXPONENT = 256, -896


def by_block(values: Tensor, widths: Sequence[int]) -> Tensor:
    """Sum of the entries of each block of columns, (…, D) to (…, L)."""
    return torch.stack([part.sum(dim=-1) for part in values.split(tuple(widths), dim=-1)], dim=-1)


def over_columns(values: Tensor, widths: Sequence[int]) -> Tensor:
    """Repeat each block's value for its columns, (L,) to (D,)."""
    return values.repeat_interleave(torch.tensor(widths, device=values.device))


class Rows:
    """A batch of rows about its mean, in the form in which `Moments` takes it in.

    Parameters
    ----------
    blocks : sequence of Tensor, (n, d_i)
        One a block of columns.
    origin : Tensor, shape (D,)
        The mean is kept as its difference from this.
    """

    def __init__(self, blocks: Sequence[Tensor], origin: Tensor) -> None:
        self.widths = tuple(block.shape[1] for block in blocks)
        self.n = float(len(blocks[0]))
        means, norms = [], []
        self.padded = []  # centred rows and one more, (n + 1, d_i), for `with_row`
        for block, of_block in zip(blocks, origin.split(self.widths), strict=True):
            padded = block.new_empty(len(block) + 1, block.shape[1])
            z = torch.sub(block, of_block, out=padded[:-1])
            means.append(z.mean(dim=0))
            z -= means[-1]
            norms.append(z.square().sum(dim=1))
            self.padded.append(padded)
        k = torch.stack(norms, dim=1)  # (n, L)
        self.mean, self.norms, self.norm_products = torch.cat(means), k.sum(dim=0), k.T @ k
        self.norm_rows = self._products(k)

    def times(self, step: Tensor) -> Tensor:
        """Products of the scatter with the step of each block, (L, D)."""
        steps = step.split(self.widths)
        return self._products(
            torch.stack([z[:-1] @ s for z, s in zip(self.padded, steps, strict=True)], dim=1)
        )

    def with_row(self, row: Tensor) -> list[Tensor]:
        """The blocks of the centred rows, (n + 1, d_i) each, with `row` below them."""
        for z, of_block in zip(self.padded, row.split(self.widths), strict=True):
            z[-1] = of_block
        return self.padded

    def _products(self, weights: Tensor) -> Tensor:
        """Sums of the centred rows weighted by each column of (n, L), (L, D)."""
        return torch.cat([weights.T @ z[:-1] for z in self.padded], dim=1)


class Moments:
    """A view of a packed state, see `_shapes`; whatever changes it changes the state."""

    def __init__(self, state: Tensor, widths: Sequence[int]) -> None:
        self.widths = tuple(widths)
        parts = state.split([math.prod(shape) for shape in self._shapes(widths)])
        views = [part.view(s) for part, s in zip(parts, self._shapes(widths), strict=True)]
        self.n = views[0]  # (), rows
        self.exponent = views[1]  # (L,): moments are those of x · 2^−exponent, within float64
        self.origin = views[2]  # (D,), the first row seen
        self.mean = views[3]  # (D,), less the origin: beside a large offset it keeps its digits
        self.norms = views[4]  # (L,), Σ k_i
        self.norm_products = views[5]  # (L, L), Σ k_i k_j
        self.norm_rows = views[6]  # (L, D), Σ k_i z
        self.second = views[7]  # second moments in the form that a subclass chooses

    @classmethod
    def size(cls, widths: Sequence[int]) -> int:
        """Entries of a packed state; all of them are zero before any row."""
        return sum(math.prod(shape) for shape in cls._shapes(widths))

    @classmethod
    def fold(cls, states: Tensor, widths: Sequence[int]) -> Tensor:
        """Merge packed states, (k, size) to (size,)."""
        merged = states[0].clone()
        for state in states[1:]:
            cls(merged, widths).merge(cls(state.clone(), widths))
        return merged

    def add(self, blocks: Sequence[Tensor]) -> None:
        """Take in a batch of rows, (n, d_i) float64 per block; none change nothing."""
        if not len(blocks[0]):
            return
        exponent = torch.stack([_exponent(block) for block in blocks])
        self._rescale(torch.maximum(self.exponent, exponent) if self.n else exponent)
        if self.exponent.any():
            factors = torch.exp2(-self.exponent)
            blocks = [block * factor for block, factor in zip(blocks, factors, strict=True)]
        if not self.n:
            self.origin.copy_(torch.cat([block[0] for block in blocks]))
        self._absorb(Rows(blocks, self.origin))

    def merge(self, other: Moments) -> None:
        """Take in the rows of another state, which is rescaled and moved to this one's origin."""
        if not other.n:
            return
        exponent = torch.maximum(self.exponent, other.exponent) if self.n else other.exponent
        self._rescale(exponent)
        other._rescale(exponent)
        if not self.n:
            self.origin.copy_(other.origin)
        other.mean += other.origin - self.origin
        self._absorb(other)

    def times(self, step: Tensor) -> Tensor:
        """Products of the scatter with the step of each block, (L, D)."""
        raise NotImplementedError

    @staticmethod
    def _shapes(widths: Sequence[int]) -> list[tuple[int, ...]]:
        """Shapes of the eight attributes, in their order."""
        raise NotImplementedError

    def _add_second(self, other: Rows | Moments, between: Tensor) -> None:
        """Add the scatter of `other` and that of the row `between`."""
        raise NotImplementedError

    def _scale_second(self, factor: Tensor) -> None:
        """Multiply the columns of each block by its factor, (L,)."""
        raise NotImplementedError

    def _absorb(self, other: Rows | Moments) -> None:
        total = self.n + other.n
        delta = other.mean - self.mean  # (D,)
        step = delta * (other.n / total)
        mine, theirs = _moved(self, step), _moved(other, step - delta)
        self._add_second(other, delta * torch.sqrt(self.n * (other.n / total)))
        self.norms.copy_(mine[0] + theirs[0])
        self.norm_products.copy_(mine[1] + theirs[1])
        self.norm_rows.copy_(mine[2] + theirs[2])
        self.mean += step
        self.n.copy_(total)

    def _rescale(self, exponent: Tensor) -> None:
        """Powers of two, so nothing is rounded; exponents never fall, so nothing overflows."""
        if not self.n:
            self.exponent.copy_(exponent)
        if torch.equal(exponent, self.exponent):
            return
        factor = torch.exp2(self.exponent - exponent)  # (L,)
        columns = over_columns(factor, self.widths)  # (D,)
        self.origin *= columns
        self.mean *= columns
        self.norms *= factor**2
        self.norm_products *= torch.outer(factor**2, factor**2)
        self.norm_rows *= torch.outer(factor**2, columns)
        self._scale_second(factor)
        self.exponent.copy_(exponent)


def _exponent(x: Tensor) -> Tensor:
    """Exponent of the scale of `x`, a multiple of STEP unless the least."""
    low, high = torch.aminmax(x)
    largest = torch.maximum(high, -low)
    if not largest:
        return torch.full_like(largest, LEAST_EXPONENT)
    steps = torch.round(torch.frexp(largest).exponent / STEP)
    return (steps * STEP).clamp(min=LEAST_EXPONENT).to(x.dtype)


def _moved(moments: Rows | Moments, step: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Norm moments about the mean + step, from z' = z − step, k' = k − 2⟨step, z⟩ + ‖step‖².

    They close: with Σz = 0, every term of Σk', Σk'_i k'_j and Σk'_i z' is a moment that is kept.
    """
    widths = moments.widths
    squared = by_block(step.square(), widths)  # (L,)
    products = moments.times(step)  # (L, D)
    crossed = by_block(moments.norm_rows * step, widths)  # (L, L): Σ k_i ⟨step_j, z_j⟩
    norms = moments.norms + moments.n * squared
    norm_products = (
        moments.norm_products
        - 2 * (crossed + crossed.T)
        + torch.outer(squared, moments.norms)
        + torch.outer(moments.norms, squared)
        + 4 * by_block(products * step, widths)
        + moments.n * torch.outer(squared, squared)
    )
    norm_rows = moments.norm_rows - 2 * products - torch.outer(norms, step)
    return norms, norm_products, norm_rows
