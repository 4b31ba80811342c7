"""One-pass self-similarity of the words of a known vocabulary."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.contextuality._units import frequent
from shrink_utils.geometry.streaming._batch import Groups, UnitRows, unit_batch
from shrink_utils.geometry.streaming._metric import StreamingMetric

__all__ = ["Occurrences", "SelfSim"]


class Occurrences:
    """Which word each row is, and in which sentence, read once for the `SelfSim` of all layers.

    Parameters
    ----------
    words : array_like of int, shape (n,)
        Numbers of the words; −1 for one outside of the vocabulary.
    sentences : array_like, shape (n,), or Groups, optional
        Where they stand; by default every row is a context of its own.

    Raises
    ------
    ValueError
        Words that are not whole numbers, or not as many sentences.
    """

    def __init__(
        self, words: ArrayLike | Tensor, sentences: ArrayLike | Tensor | Groups | None = None
    ) -> None:
        words = torch.as_tensor(words, device="cpu")
        if words.ndim != 1 or words.is_floating_point() or words.is_complex():
            raise ValueError(
                f"words must be whole numbers, one a row, got dtype {words.dtype}, shape "
                f"{tuple(words.shape)}"
            )
        n = len(words)
        contexts = torch.arange(n)
        if sentences is not None:
            if not isinstance(sentences, Groups):
                sentences = Groups(sentences, name="sentences")
            contexts = sentences.index
            if len(contexts) != n:
                raise ValueError(
                    f"sentences needs one label a row: {n} rows, got shape ({len(contexts)},)"
                )
        self.by_word = Groups(words, name="words")
        self.words = torch.tensor(self.by_word.labels)
        # Fewer than n contexts, so a word and a context make one number.
        pairs = Groups(words.long() * n + contexts)
        of_pair = torch.tensor(pairs.labels) // n
        word = Groups(of_pair)
        m = pairs.sizes.double()
        self._counts = word.sums(torch.stack([torch.ones_like(m), m, m == 1, m**2], dim=1))
        several = (pairs.sizes > 1) & (of_pair >= 0)  # nobody asks for those outside
        self._rows = several[pairs.index].nonzero().flatten()
        self._together = Groups(pairs.index[self._rows])
        self._word = word.index[several]

    def counts(self, x: Tensor) -> Tensor:
        """For each word its contexts, m, Σ_s‖u_s‖² and Σ_s m_s², (words, 4), from unit rows x."""
        counts = self._counts.to(x, copy=True)
        if len(self._rows):  # where a word stands alone in its context, ‖u_s‖² is 1
            u = self._together.sums(x[self._rows.to(x.device)])
            counts[:, 2].index_add_(0, self._word.to(x.device), u.square().sum(dim=1))
        return counts


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
    State, a word: Σx̂ and the four counts contexts, m, Σ_s‖u_s‖² and Σ_s m_s²; summed over workers.
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
            a pair. A sentence must come whole in one batch: labels are not compared between
            batches.

        Raises
        ------
        ValueError
            Rows or words that do not fit.
        """
        x = unit_batch(x, self.n_features)
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

        Raises
        ------
        ValueError
            No word stands in `min_count` contexts.
        """
        words, contexts = list(range(self.n_words)), self.counts[:-1, 0]
        kept = frequent(words, contexts, min_count=self.min_count, what="contexts")
        _, m, squares, pairs = self.counts[kept].unbind(dim=1)
        values = (self.sums[kept].square().sum(dim=1) - squares) / (m.square() - pairs)
        return torch.full_like(contexts, torch.nan).index_copy_(0, kept, values)
