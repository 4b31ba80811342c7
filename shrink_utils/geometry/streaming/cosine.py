"""One-pass cosine measures: AvgSim and rogue dimensions of all rows, SelfSim of a vocabulary."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.contextuality import check_count, frequent, self_sims
from shrink_utils.geometry.groups import Groups, Occurrences
from shrink_utils.geometry.isotropy import contributions, products_and_pairs
from shrink_utils.geometry.streaming.base import (
    StreamingMetric,
    UnitRows,
    check_width,
    unit_batch,
)


class CosineMetric(StreamingMetric):
    """Base of the two: the same state, so a ``MetricCollection`` updates it once for both."""

    def __init__(self, n_features: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.n_features = n_features = check_width(n_features)
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
            A label per row, by default every row is its own group; `RogueDimensions` is over all
            pairs and ignores it. A group must come whole in one batch: labels are not compared
            between batches.
        """
        x = unit_batch(x, self.n_features)
        sums, sizes = x, x.new_ones(len(x))
        if groups is not None:
            groups = groups if isinstance(groups, Groups) else Groups(groups)
            sums, sizes = groups.sums(x), groups.sizes.to(x)
        if not len(x):
            return
        self.n_rows.add_(len(x))
        self.n_groups.add_(len(sums))
        self.group_squares.add_(sums.square().sum())
        self.group_pairs.add_(sizes.square().sum())
        self.total.add_(sums.sum(dim=0))
        self.squares.add_(x.square().sum(dim=0))


class AvgSim(CosineMetric):
    """Average cosine similarity of rows with `n_features` columns: `geometry.avg_sim` in one pass.

    Over all pairs, or pairs of different groups. There is no standard error: the jackknife weighs
    each group by its product with the *final* Σx̂, which one pass does not know before its end.
    """

    def compute(self) -> Tensor:
        """The average, a float64 scalar; ``ValueError`` for fewer than two rows, or one group."""
        self.need_rows(self.n_rows, 2)
        if self.n_groups < 2:
            raise ValueError(
                f"groups needs at least 2 different labels, got 1 for {int(self.n_rows)} rows"
            )
        products, pairs = products_and_pairs(
            self.total, self.group_squares, self.n_rows, self.group_pairs
        )
        return products / pairs


class RogueDimensions(CosineMetric):
    """Contribution of each dimension to AvgSim: `geometry.rogue_dimensions` in one pass."""

    def compute(self) -> Tensor:
        """Contributions, (n_features,) float64, which sum to AvgSim over all pairs."""
        self.need_rows(self.n_rows, 2)
        return contributions(self.total, self.squares, self.n_rows)


class SelfSim(StreamingMetric):
    """Average cosine similarity between occurrences of each word: `geometry.self_sim` in one pass.

    Parameters
    ----------
    n_words : int
        Size of the vocabulary.
    n_features : int
        Columns of the rows.
    min_count : int
        Fewest contexts of a word that counts, at least 2.

    Notes
    -----
    State, per word: Σx̂, contexts, m, Σ_s‖u_s‖² and Σ_s m_s², summed over workers. It grows with the
    vocabulary, not with the text. The null of SelfSim is AvgSim over the same rows: keep an
    `AvgSim` beside this.
    """

    def __init__(self, n_words: int, n_features: int, *, min_count: int = 5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if n_words < 1:
            raise ValueError(f"n_words must be at least 1, got {n_words}")
        check_width(n_features)
        check_count(min_count)
        self.n_words, self.n_features, self.min_count = n_words, n_features, min_count
        # The last row takes in the words that are not in the vocabulary, and is never read.
        self.add_zeros("sums", n_words + 1, n_features)
        self.add_zeros("counts", n_words + 1, 4)

    def update(
        self,
        x: ArrayLike | Tensor | UnitRows,
        words: ArrayLike | Tensor | Occurrences,
        sentences: ArrayLike | Tensor | None = None,
    ) -> None:
        """Take in a batch.

        Parameters
        ----------
        x : array_like, shape (n, n_features), or UnitRows
            A row is the vector of a word in its context; none of them zero.
        words : array_like of int, shape (n,), or Occurrences
            Which word it is, 0 … n_words − 1; −1 for one outside of the vocabulary.
        sentences : array_like, shape (n,), optional
            Where it stands, unless `words` tells: then only occurrences in different sentences make
            a pair. A sentence must come whole in one batch.
        """
        x = unit_batch(x, self.n_features)
        if not len(x) and not len(words):
            return
        found = words if isinstance(words, Occurrences) else Occurrences(words, sentences)
        if not -1 <= int(found.words[0]) <= int(found.words[-1]) < self.n_words:
            raise ValueError(
                f"words must be −1 … {self.n_words - 1}, got {int(found.words[0])} … "
                f"{int(found.words[-1])}"
            )
        if found.by_word.n != len(x):
            raise ValueError(
                f"words needs one label a row: {len(x)} rows, got shape ({found.by_word.n},)"
            )
        place = torch.where(found.words < 0, self.n_words, found.words).to(x.device)
        self.sums.index_add_(0, place[found.by_word.index.to(x.device)], x)
        self.counts.index_add_(0, place, found.counts(x))

    def compute(self) -> Tensor:
        """SelfSim of each word, (n_words,) float64 (a scalar for a single word); NaN for the rare.

        A ``ValueError`` where no word stands in `min_count` contexts.
        """
        words, contexts = list(range(self.n_words)), self.counts[:-1, 0]
        kept = frequent(words, contexts, min_count=self.min_count, what="contexts")
        values = self_sims(self.sums[kept], self.counts[kept])
        return torch.full_like(contexts, torch.nan).index_copy_(0, kept, values)
