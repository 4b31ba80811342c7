"""Which rows belong together: groups such as sentences, and the occurrences of words in them."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import embedding_bag

from shrink_utils.geometry.checks import as_labels


class Groups:
    """Which rows belong together, read once for all the metrics that sum over groups.

    `labels` has one label per row; the attribute `labels` holds the different ones, sorted, and
    `sizes` the rows of each of them. What cannot be labels is a ``ValueError``.
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


class Occurrences:
    """Which word each row is, and in which sentence, read once for the `SelfSim` of all layers.

    `words` are whole numbers, −1 for one outside of the vocabulary; `sentences` say where they
    stand, by default every row is a context of its own.
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
