"""One-pass average cosine similarity, whole and by dimension."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.streaming._batch import Groups, UnitRows, unit_batch
from shrink_utils.geometry.streaming._metric import StreamingMetric

__all__ = ["AvgSim", "RogueDimensions"]


class CosineMetric(StreamingMetric):
    """Base of the two: the same state, so a ``MetricCollection`` updates it once for both."""

    def __init__(self, n_features: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n_features = n_features
        for name in ("n_rows", "n_groups", "group_squares", "group_pairs"):
            self.add_zeros(name)
        for name in ("total", "squares"):
            self.add_zeros(name, n_features)

    def update(
        self, x: ArrayLike | Tensor | UnitRows, groups: ArrayLike | Tensor | Groups | None = None
    ) -> None:
        """Take in a batch.

        Parameters
        ----------
        x : array_like, shape (n, n_features), or UnitRows
            Rows, none of them zero.
        groups : array_like, shape (n,), or Groups, optional
            A label a row, by default every row is its own group; `RogueDimensions` is over all
            pairs and ignores it. A group must come whole in one batch: labels are not compared
            between batches.
        """
        x = unit_batch(x, self.n_features)
        sums, sizes = x, x.new_ones(len(x))
        if groups is not None:
            groups = groups if isinstance(groups, Groups) else Groups(groups)
            sums, sizes = groups.sums(x), groups.sizes.to(x)
        self.n_rows.add_(len(x))
        self.n_groups.add_(len(sums))
        self.group_squares.add_(sums.square().sum())
        self.group_pairs.add_(sizes.square().sum())
        self.total.add_(sums.sum(dim=0))
        self.squares.add_(x.square().sum(dim=0))


class AvgSim(CosineMetric):
    """Average cosine similarity between rows, over all pairs or pairs of different groups.

    Parameters
    ----------
    n_features : int
        Columns of the rows.
    **kwargs
        Of ``torchmetrics.Metric``.

    Notes
    -----
    State: n, Σx̂, Σx̂² by dimension, Σ_s‖u_s‖², Σ_s n_s² and the number of groups, all of them summed
    over workers. There is no standard error: the delete-one-group jackknife of `geometry.avg_sim`
    weighs each group by its size and its product with the *final* Σx̂, which one pass does not know
    before its end.

    References
    ----------
    As `shrink_utils.geometry.avg_sim`, whose ``value`` this is.
    """

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


class RogueDimensions(CosineMetric):
    """Exact contribution of each dimension to the average cosine similarity of all pairs.

    Parameters
    ----------
    n_features : int
        Columns of the rows.
    **kwargs
        Of ``torchmetrics.Metric``.

    References
    ----------
    As `shrink_utils.geometry.rogue_dimensions`, which this equals.
    """

    def compute(self) -> Tensor:
        """Contributions, (n_features,) float64, which sum to AvgSim over all pairs.

        Raises
        ------
        ValueError
            Fewer than two rows.
        """
        self.need_rows(self.n_rows, 2)
        return (self.total.square() - self.squares) / (self.n_rows.square() - self.n_rows)
