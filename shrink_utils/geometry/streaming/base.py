"""What the streaming metrics share: reading a batch once, float64 states, lossless merging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torchmetrics import Metric

from shrink_utils.geometry.checks import as_rows, unit_rows


class UnitRows:
    """A batch of rows (n, d) scaled to length one, once for all metrics that work on directions."""

    def __init__(self, x: ArrayLike | Tensor) -> None:
        rows = _plain(x, copy=True)
        if rows is not None:
            lengths = torch.linalg.vector_norm(rows, dim=1, keepdim=True)
            # Lengths whose squares stay in float64 rule out NaN, infinity and zero rows.
            if ((lengths > 1e-140) & (lengths < 1e140)).all():
                self.rows = rows.mul_(lengths.reciprocal_())
                return
        self.rows = unit_rows(as_rows(x, min_rows=0))


def batch_rows(x: ArrayLike | Tensor, n_features: int, *, name: str = "x") -> Tensor:
    """Read a batch of rows in float64; refuse another number of columns."""
    rows = _plain(x)
    if rows is not None and torch.isfinite(rows.sum()):  # then so is every entry
        return _same_width(rows, n_features, name)
    return _same_width(as_rows(x, min_rows=0, name=name), n_features, name)


def unit_batch(x: ArrayLike | Tensor | UnitRows, n_features: int) -> Tensor:
    """Unit rows of a batch, not to be written to; refuse another number of columns."""
    unit = x if isinstance(x, UnitRows) else UnitRows(x)
    return _same_width(unit.rows, n_features, "x")


def _plain(x: ArrayLike | Tensor, *, copy: bool = False) -> Tensor | None:
    """What is a tensor of rows already, in float64 but not checked; else None.

    A single sum or norm then vouches for a sound batch: the careful reading of `as_rows` would
    cost as much as the metrics themselves.
    """
    if isinstance(x, Tensor) and x.ndim == 2 and len(x) and x.is_floating_point():
        return None if x.device.type == "mps" else x.detach().to(torch.float64, copy=copy)
    return None


def check_width(n_features: int) -> int:
    """Return a number of columns, or raise a ``ValueError``."""
    if not isinstance(n_features, int | np.integer) or n_features < 1:
        raise ValueError(
            f"n_features must be a whole number of columns, 1 or more; got {n_features!r}"
        )
    return int(n_features)


def _same_width(x: Tensor, n_features: int, name: str) -> Tensor:
    if x.shape[1] != n_features:
        raise ValueError(f"{name} must have {n_features} columns, got shape {tuple(x.shape)}")
    return x


class StreamingMetric(Metric):
    """A metric whose states have one size for any number of rows."""

    full_state_update = False  # a batch's state merges into the whole's: forward() updates once
    is_differentiable = False
    higher_is_better = None

    def add_zeros(
        self, name: str, *shape: int, merge: str | Callable[[Tensor], Tensor] = "sum"
    ) -> None:
        """Add a float64 state that starts from zero; `merge` folds a stack (k, *shape) of it."""
        self.add_state(name, torch.zeros(shape, dtype=torch.float64), dist_reduce_fx=merge)
        # torchmetrics keeps a second one for reset(). A single zero seen from every place does as
        # well, and does not double the memory.
        self._defaults[name] = torch.zeros((), dtype=torch.float64).expand(shape)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Take in a batch and give its value alone; a batch that is refused changes nothing."""
        # torchmetrics empties the states for the batch and does not put them back after an error,
        # nor what it sets beside them. A state may be changed in place: copies.
        before = vars(self) | self._copy_state_dict()
        try:
            return super().forward(*args, **kwargs)
        except BaseException:
            vars(self).update(before)
            raise

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Take in the rows of another metric of the same construction.

        Another class, or states of other shapes, are a ``ValueError``.
        """
        incoming = getattr(incoming_state, "metric_state", incoming_state)
        for name, state in self.metric_state.items():
            if name in incoming and incoming[name].shape != state.shape:
                raise ValueError(
                    f"incoming_state: {name} has shape {tuple(incoming[name].shape)}, here it has "
                    f"{tuple(state.shape)}; construct both metrics alike"
                )
        super().merge_state(incoming_state)
        # torchmetrics would go on to give the value from before, or warn that there is none.
        self._computed = None
        self._update_count += getattr(incoming_state, "update_count", 1)

    def need_rows(self, n: Tensor, least: int) -> None:
        """Refuse to compute from fewer rows than the quantity needs."""
        if n < least:
            raise ValueError(
                f"{type(self).__name__} needs at least {least} row(s), it has seen {int(n)}"
            )
