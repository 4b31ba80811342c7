"""One-pass average cosine similarity, whole and by dimension."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry._checks import as_labels
from shrink_utils.geometry.streaming._metric import StreamingMetric, unit_batch

__all__ = ["AvgSim", "RogueDimensions"]


class AvgSim(StreamingMetric):
    """Average cosine similarity between rows, over all pairs or pairs of different groups.

    Parameters
    ----------
    n_features : int
        Columns of the rows.
    **kwargs
        Of ``torchmetrics.Metric``.

    Notes
    -----
    State: n, Σx̂, Σ_s‖u_s‖², Σ_s n_s² and the number of groups, all of them summed over workers.
    There is no standard error: the delete-one-group jackknife of `geometry.avg_sim` weighs each
    group by its size and its product with the *final* Σx̂, which one pass does not know yet.

    References
    ----------
    As `shrink_utils.geometry.avg_sim`, whose ``value`` this is.
    """

    def __init__(self, n_features: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n_features = n_features
        for name in ("n_rows", "n_groups", "group_squares", "group_pairs"):
            self.add_zeros(name)
        self.add_zeros("total", n_features)

    def update(self, x: ArrayLike | Tensor, groups: ArrayLike | Tensor | None = None) -> None:
        """Take in a batch.

        Parameters
        ----------
        x : array_like, shape (n, n_features)
            Rows, none of them zero.
        groups : array_like, shape (n,), optional
            A label a row. A group must come whole in one batch: labels are not compared between
            batches. By default every row is its own group.
        """
        x = unit_batch(x, self.n_features)
        n = len(x)
        sums, sizes = x, x.new_ones(n)
        if groups is not None:
            distinct, index = as_labels(groups, n, name="groups", device=x.device)
            sums = x.new_zeros(len(distinct), self.n_features).index_add_(0, index, x)
            sizes = torch.bincount(index).to(x.dtype)
        self.n_rows += n
        self.n_groups += len(sums)
        self.group_squares += sums.square().sum()
        self.group_pairs += sizes.square().sum()
        self.total += sums.sum(dim=0)

    def compute(self) -> Tensor:
        """The average, a float64 scalar in [−1, 1].

        Raises
        ------
        ValueError
            Fewer than two rows, or one group only.
        """
        self.need_rows(self.n_rows, 2)
        if self.n_groups < 2:
            raise ValueError(
                f"groups needs at least 2 different labels, got 1 for {int(self.n_rows)} rows"
            )
        pairs = self.n_rows.square() - self.group_pairs
        return (self.total @ self.total - self.group_squares) / pairs


class RogueDimensions(StreamingMetric):
    """Exact contribution of each dimension to the average cosine similarity.

    Parameters
    ----------
    n_features : int
        Columns of the rows.
    **kwargs
        Of ``torchmetrics.Metric``.

    Notes
    -----
    State: n, Σx̂ and Σx̂² by dimension, all of them summed over workers.

    References
    ----------
    As `shrink_utils.geometry.rogue_dimensions`, which this equals.
    """

    def __init__(self, n_features: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n_features = n_features
        self.add_zeros("n_rows")
        for name in ("total", "squares"):
            self.add_zeros(name, n_features)

    def update(self, x: ArrayLike | Tensor) -> None:
        """Take in a batch of rows, (n, n_features), none of them zero."""
        x = unit_batch(x, self.n_features)
        self.n_rows += len(x)
        self.total += x.sum(dim=0)
        self.squares += x.square().sum(dim=0)

    def compute(self) -> Tensor:
        """Contributions, (n_features,) float64, which sum to AvgSim over all pairs.

        Raises
        ------
        ValueError
            Fewer than two rows.
        """
        self.need_rows(self.n_rows, 2)
        return (self.total.square() - self.squares) / (self.n_rows.square() - self.n_rows)
