"""The door of the metrics: a batch of rows, and what several metrics can share of its reading."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import embedding_bag

from shrink_utils.geometry._checks import as_labels, as_rows, unit_rows


class UnitRows:
    """A batch of rows scaled to length one, once for all the metrics that work on directions.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows, none of them zero.

    Raises
    ------
    ValueError
        Zero rows, or what is not a finite matrix.
    """

    def __init__(self, x: ArrayLike | Tensor) -> None:
        rows = _plain(x, copy=True)
        if rows is not None:
            lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
            # Lengths whose squares stay in float64 rule out NaN, infinity and zero rows.
            if ((lengths > 1e-140) & (lengths < 1e140)).all():
                self.rows = rows.mul_(lengths.reciprocal_())
                return
        self.rows = unit_rows(as_rows(x))


class Groups:
    """Which rows belong together, read once for all the metrics that sum over groups.

    Parameters
    ----------
    labels : array_like, shape (n,)
        A label a row.
    name : str
        What the caller calls them, for the message of an error.

    Attributes
    ----------
    labels : list
        The different labels, sorted.
    sizes : Tensor, shape (groups,), long
        Rows of each of them.

    Raises
    ------
    ValueError
        What is not one label a row, NaN among them, or labels that cannot be ordered.
    """

    def __init__(self, labels: ArrayLike | Tensor, *, name: str = "groups") -> None:
        shape = tuple(labels.shape if isinstance(labels, Tensor) else np.shape(labels))
        self.n = shape[0] if shape else 0
        self.name = name
        self.labels, self.index = as_labels(labels, self.n, name=name)
        self.sizes = torch.bincount(self.index, minlength=len(self.labels))
        self._order = self.index.argsort(stable=True)
        self._starts = self.sizes.cumsum(0) - self.sizes

    def sums(self, x: Tensor) -> Tensor:
        """Sum of the rows of each group, (groups, d)."""
        if self.n != len(x):
            raise ValueError(
                f"{self.name} needs one label a row: {len(x)} rows, got shape ({self.n},)"
            )
        # Bags of rows are summed in parallel, index_add_ one row after another.
        order, starts = self._order.to(x.device), self._starts.to(x.device)
        return embedding_bag(order, x, starts, mode="sum")


def batch_rows(x: ArrayLike | Tensor, n_features: int, *, name: str = "x") -> Tensor:
    """Read a batch of rows in float64; refuse another number of columns."""
    rows = _plain(x)
    if rows is not None and torch.isfinite(rows.sum()):  # then so is every entry
        return _same_width(rows, n_features, name)
    return _same_width(as_rows(x, name=name), n_features, name)


def unit_batch(x: ArrayLike | Tensor | UnitRows, n_features: int) -> Tensor:
    """Unit rows of a batch, not to be written to; refuse another number of columns."""
    unit = x if isinstance(x, UnitRows) else UnitRows(x)
    return _same_width(unit.rows, n_features, "x")


def _plain(x: ArrayLike | Tensor, *, copy: bool = False) -> Tensor | None:
    """What is a tensor of rows already, in float64 but not checked; else None.

    A single sum or norm then vouches for a sound batch. The careful reading of `as_rows`, left to
    all others, would cost as much as the metrics themselves.
    """
    if isinstance(x, Tensor) and x.ndim == 2 and len(x) and x.is_floating_point():
        return None if x.device.type == "mps" else x.detach().to(torch.float64, copy=copy)
    return None


def _same_width(x: Tensor, n_features: int, name: str) -> Tensor:
    if x.shape[1] != n_features:
        raise ValueError(f"{name} must have {n_features} columns, got shape {tuple(x.shape)}")
    return x
