"""One-pass self-similarity of the words of a known vocabulary."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.contextuality._units import frequent
from shrink_utils.geometry.streaming._metric import StreamingMetric, unit_batch

__all__ = ["SelfSim"]


class SelfSim(StreamingMetric):
    """Average cosine similarity between the occurrences of each word.

    Parameters
    ----------
    n_words : int
        Size of the vocabulary.
    n_features : int
        Columns of the rows.
    min_count : int
        Fewest contexts of a word that counts, at least 2.
    **kwargs
        Of ``torchmetrics.Metric``.

    Raises
    ------
    ValueError
        `n_words` below 1 or `min_count` below 2.

    Notes
    -----
    State, a word: Σx̂, occurrences m, contexts, Σ_s‖u_s‖² and Σ_s m_s²; all summed over workers.
    It grows with the vocabulary, not with the text. The null of SelfSim is AvgSim over the same
    rows (`geometry.self_sim` explains it): keep an `AvgSim` beside this.

    References
    ----------
    As `shrink_utils.geometry.self_sim`, whose ``per_word`` this is.
    """

    def __init__(self, n_words: int, n_features: int, *, min_count: int = 5, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if n_words < 1:
            raise ValueError(f"n_words must be at least 1, got {n_words}")
        if min_count < 2:
            raise ValueError(
                f"min_count must be at least 2, one vector has no pair; got {min_count}"
            )
        self.n_words, self.n_features, self.min_count = n_words, n_features, min_count
        for name in ("occurrences", "contexts", "context_squares", "context_pairs"):
            self.add_zeros(name, n_words)
        self.add_zeros("sums", n_words, n_features)

    def update(
        self,
        x: ArrayLike | Tensor,
        words: ArrayLike | Tensor,
        sentences: ArrayLike | Tensor | None = None,
    ) -> None:
        """Take in a batch.

        Parameters
        ----------
        x : array_like, shape (n, n_features)
            A row is the vector of a word in its context; none of them zero.
        words : array_like of int, shape (n,)
            Which word it is, 0 … n_words − 1; −1 for one outside of the vocabulary.
        sentences : array_like of int, shape (n,), optional
            Where it stands: then only occurrences in different sentences make a pair. A sentence
            must come whole in one batch: numbers are not compared between batches.

        Raises
        ------
        ValueError
            Rows or numbers that do not fit.
        """
        x = unit_batch(x, self.n_features)
        words = _numbers(words, x, "words")
        if len(words) and not -1 <= int(words.min()) <= int(words.max()) < self.n_words:
            raise ValueError(
                f"words must be −1 … {self.n_words - 1}, got {int(words.min())} … "
                f"{int(words.max())}"
            )
        contexts = torch.arange(len(x), device=x.device)
        if sentences is not None:
            numbers = _numbers(sentences, x, "sentences")
            contexts = torch.unique(numbers, return_inverse=True)[1]
        known = words >= 0
        x, words, contexts = x[known], words[known], contexts[known]

        # One number for a word in a context.
        group, of_row, sizes = torch.unique(
            words * len(known) + contexts, return_inverse=True, return_counts=True
        )
        of_group, sizes = group // len(known), sizes.to(x.dtype)  # (groups,)
        u = x.new_zeros(len(group), self.n_features).index_add_(0, of_row, x)
        self.sums.index_add_(0, of_group, u)
        self.occurrences.index_add_(0, of_group, sizes)
        self.contexts.index_add_(0, of_group, torch.ones_like(sizes))
        self.context_squares.index_add_(0, of_group, u.square().sum(dim=1))
        self.context_pairs.index_add_(0, of_group, sizes.square())

    def compute(self) -> Tensor:
        """SelfSim of each word, (n_words,) float64; NaN for words in fewer contexts.

        Raises
        ------
        ValueError
            No word stands in `min_count` contexts.
        """
        words = list(range(self.n_words))
        kept = frequent(words, self.contexts, min_count=self.min_count, what="contexts")
        dots = self.sums.square().sum(dim=1) - self.context_squares
        pairs = self.occurrences.square() - self.context_pairs
        values = torch.full_like(dots, torch.nan)
        values[kept] = dots[kept] / pairs[kept]
        return values


def _numbers(labels: ArrayLike | Tensor, x: Tensor, name: str) -> Tensor:
    """Read one whole number a row."""
    numbers = torch.as_tensor(labels, device=x.device)
    if numbers.shape != (len(x),):
        raise ValueError(
            f"{name} needs one number a row: {len(x)} rows, got shape {tuple(numbers.shape)}"
        )
    if numbers.is_floating_point() or numbers.is_complex():
        raise ValueError(f"{name} must be whole numbers, got dtype {numbers.dtype}")
    return numbers.long()
