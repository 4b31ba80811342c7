"""One-pass CKA of all rows: of two representations, or of every pair of layers at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations_with_replacement
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.checks import same_rows
from shrink_utils.geometry.similarity import NO_HSIC, unbiased_hsic, warn_undefined
from shrink_utils.geometry.streaming.base import StreamingMetric, batch_rows, check_width
from shrink_utils.geometry.streaming.moments import Moments, Rows

__all__ = ["CKA", "LayerCKA"]


class ScatterMoments(Moments):
    """Second moments as the blocks Σ z_i z_jᵀ with i ≤ j, (d_i, d_j) each, one after another."""

    @staticmethod
    def _shapes(widths: Sequence[int]) -> list[tuple[int, ...]]:
        n_blocks, columns = len(widths), sum(widths)
        entries = sum(a * b for a, b in combinations_with_replacement(widths, 2))
        norms = [(n_blocks,), (n_blocks, n_blocks), (n_blocks, columns)]
        return [(), (n_blocks,), (columns,), (columns,), *norms, (entries,)]

    def blocks(self) -> Iterator[tuple[int, int, Tensor]]:
        """Each i ≤ j and a view of its block."""
        pairs = list(combinations_with_replacement(range(len(self.widths)), 2))
        shapes = [(self.widths[i], self.widths[j]) for i, j in pairs]
        parts = self.second.split([rows * columns for rows, columns in shapes])
        for (i, j), part, shape in zip(pairs, parts, shapes, strict=True):
            yield i, j, part.view(shape)

    def times(self, step: Tensor) -> Tensor:
        steps = step.split(self.widths)
        products = torch.zeros_like(self.norm_rows)  # (L, D)
        columns = products.split(self.widths, dim=1)  # views, (L, d_j)
        for i, j, block in self.blocks():
            columns[j][i] = steps[i] @ block
            columns[i][j] = block @ steps[j]
        return products

    def _add_second(self, other: Rows | Moments, between: Tensor) -> None:
        if isinstance(other, Rows):
            rows = other.with_row(between)
        else:
            self.second += other.second
            rows = [of_block[None] for of_block in between.split(self.widths)]
        for i, j, block in self.blocks():
            block.addmm_(rows[i].T, rows[j])

    def _scale_second(self, factor: Tensor) -> None:
        for i, j, block in self.blocks():
            block *= factor[i] * factor[j]


class _ScatterMetric(StreamingMetric):
    """CKA between the column blocks of one matrix of rows."""

    def __init__(self, widths: tuple[int, ...], *, debiased: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        widths = tuple(check_width(width) for width in widths)
        self.widths, self.debiased = widths, debiased
        fold = partial(ScatterMoments.fold, widths=widths)
        self.add_zeros("moments", ScatterMoments.size(widths), merge=fold)

    def _add(self, blocks: Sequence[Tensor]) -> None:
        for block in blocks[1:]:
            same_rows(len(blocks[0]), len(block))
        ScatterMoments(self.moments, self.widths).add(blocks)

    def _matrix(self) -> Tensor:
        """CKA of every two blocks, (L, L); see `geometry.cka` for the formulas."""
        moments = ScatterMoments(self.moments, self.widths)
        self.need_rows(moments.n, 4 if self.debiased else 2)
        hsic = torch.empty_like(moments.norm_products)  # (L, L)
        for i, j, block in moments.blocks():
            hsic[i, j] = hsic[j, i] = block.square().sum()
        own = hsic.diagonal().clone()
        if not own.all():
            raise ValueError(
                f"{type(self).__name__}: side or layer {int((own == 0).nonzero()[0])} has no "
                "variance (all its rows are identical): the result is undefined"
            )
        if self.debiased:
            apart = torch.outer(moments.norms, moments.norms)
            hsic = unbiased_hsic(hsic, moments.norm_products, apart, moments.n)
        root = torch.sqrt(_own(hsic, own))
        return hsic / root / root[:, None]


def _own(hsic: Tensor, scale: Tensor) -> Tensor:
    """HSIC of each block with itself, NaN with a warning where there is none."""
    own = hsic.diagonal()
    none = own <= NO_HSIC * scale
    if none.any():
        warn_undefined(f"side or layer {int(none.nonzero()[0])}", stacklevel=3)
    return own.masked_fill(none, math.nan)


class CKA(_ScatterMetric):
    """Linear CKA of two representations, over all pairs of rows: `geometry.cka` in one pass.

    Parameters
    ----------
    n_features, n_features_y : int
        Columns of x and of y; as many as x has by default.
    debiased : bool
        From the unbiased estimates of the three HSIC.

    Notes
    -----
    Not the minibatch estimate. State: n, both means, the three scatter matrices and, with
    k = ‖x − μ_x‖² and l = ‖y − μ_y‖², Σk, Σl, Σk², Σl², Σkl and the four vectors Σk(x − μ_x) …
    without which the former could not follow when the mean moves.
    """

    def __init__(
        self,
        n_features: int,
        n_features_y: int | None = None,
        *,
        debiased: bool = False,
        **kwargs: Any,
    ) -> None:
        widths = (n_features, n_features if n_features_y is None else n_features_y)
        super().__init__(widths, debiased=debiased, **kwargs)

    def update(self, x: ArrayLike | Tensor, y: ArrayLike | Tensor) -> None:
        """Take in a batch: row i of x, (n, n_features), and of y are the same sample."""
        x, y = batch_rows(x, self.widths[0]), batch_rows(y, self.widths[1], name="y")
        self._add([x, y])

    def compute(self) -> Tensor:
        """The alignment, a float64 scalar; errors and the warning are those of `geometry.cka`."""
        return self._matrix()[0, 1]


class LayerCKA(_ScatterMetric):
    """Linear CKA between every two of L layers, `n_features` wide, from one pass over their rows.

    State: as `CKA`, with L(L + 1)/2 scatter blocks instead of three.
    """

    def __init__(self, n_features: Sequence[int], *, debiased: bool = False, **kwargs: Any) -> None:
        super().__init__(tuple(n_features), debiased=debiased, **kwargs)

    def update(self, layers: Sequence[ArrayLike | Tensor] | Tensor) -> None:
        """Take in a batch: one matrix a layer, (n, d_l), row i of all of them the same sample."""
        if len(layers) != len(self.widths):
            raise ValueError(f"layers: expected {len(self.widths)} matrices, got {len(layers)}")
        named = enumerate(zip(layers, self.widths, strict=True))
        self._add([batch_rows(x, d, name=f"layers[{i}]") for i, (x, d) in named])

    def compute(self) -> Tensor:
        """The alignments, (L, L) float64, symmetric; NaN with a warning as `geometry.cka`."""
        return self._matrix()
