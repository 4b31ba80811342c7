"""What the metrics of this package share: float64 states, and merging as one expects it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric


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
        """Take in a batch and give the value of it alone; a batch that is refused changes nothing.

        Raises
        ------
        ValueError
            As ``update``, and ``compute`` of the batch alone, such as one of too few rows.
        """
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

        Raises
        ------
        ValueError
            Another class, or states of other shapes.
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
