"""Self-similarity: how alike a word's vectors are in different contexts."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry._checks import as_labels, as_rows, unit_rows
from shrink_utils.geometry.contextuality._units import OverUnits, frequent
from shrink_utils.geometry.isotropy import avg_sim

__all__ = ["SelfSim", "self_sim"]


@dataclass(frozen=True)
class SelfSim(OverUnits):
    """Self-similarity of frequent words.

    Attributes
    ----------
    per_word : dict
        Mean cosine between the occurrences of each word, words sorted.
    counts : dict
        Occurrences of each of them.
    null : float
        What words without meaning would have: the AvgSim of all rows.
    """

    per_word: dict[Hashable, float]
    counts: dict[Hashable, int]
    null: float

    def _units(self) -> dict[Hashable, float]:
        return self.per_word

    @property
    def corrected(self) -> float:
        """``value − null``, the correction of the literature for anisotropy."""
        return self.value - self.null


def self_sim(
    x: ArrayLike | Tensor,
    words: ArrayLike | Tensor,
    *,
    sentences: ArrayLike | Tensor | None = None,
    min_count: int = 5,
) -> SelfSim:
    """Average cosine similarity between the occurrences of a word, for every frequent word.

    Parameters
    ----------
    x : array_like, shape (n, d)
        A row is the vector of a word in its context; none of them zero.
    words : array_like, shape (n,)
        Which word it is.
    sentences : array_like, shape (n,), optional
        Where it stands. Then only occurrences in different sentences make a pair. By default every
        occurrence is a context of its own.
    min_count : int
        Fewest contexts of a word that counts, at least 2.

    Returns
    -------
    SelfSim

    Raises
    ------
    ValueError
        Zero rows, labels that do not fit the rows, or no word with enough contexts.

    Notes
    -----
    SelfSim(w) = (‖S‖² − Σ_s‖u_s‖²) / (m² − Σ_s m_s²), with m_s occurrences of w in context s, u_s
    the sum of their unit vectors, S = Σ_s u_s and m = Σ_s m_s: one pass over the rows.

    If words were dealt to the rows at random, every pair would be a pair of any two rows, so the
    expectation is AvgSim exactly, for each word and whatever its frequency. The published
    correction therefore *is* the null here (unlike IntraSim's and MEV's). With `sentences`, AvgSim
    too is that of pairs from different sentences.

    References
    ----------
    Ethayarajh 2019, *How Contextual are Contextualized Word Representations?*, definition 1 and
    section 3.4 (words in at least five contexts); Vázquez et al. 2021.
    """
    x = unit_rows(as_rows(x, min_rows=2))
    n = len(x)
    vocabulary, word = as_labels(words, n, name="words", device=x.device)
    context = torch.arange(n, device=x.device)
    if sentences is not None:
        context = as_labels(sentences, n, name="sentences", device=x.device)[1]

    # A group is a word in a context; n contexts at most, so the two make one number.
    group, of_row = torch.unique(word * n + context, return_inverse=True)
    of_group = group // n  # (groups,): which word
    u, m = _sum_by(x, of_row, len(group)), torch.bincount(of_row)  # (groups, d), (groups,)

    contexts = torch.bincount(of_group)  # (words,)
    what = "rows" if sentences is None else "different sentences"
    kept = frequent(vocabulary, contexts, min_count=min_count, what=what)

    dots = _sum_by(u, of_group, len(vocabulary)).square().sum(dim=1)
    dots -= _sum_by(u.square().sum(dim=1), of_group, len(vocabulary))
    counts = _sum_by(m, of_group, len(vocabulary))
    pairs = counts**2 - _sum_by(m**2, of_group, len(vocabulary))
    return SelfSim(
        per_word={vocabulary[w]: float(dots[w] / pairs[w]) for w in kept.tolist()},
        counts={vocabulary[w]: int(counts[w]) for w in kept.tolist()},
        null=avg_sim(x, groups=None if sentences is None else context).value,
    )


def _sum_by(values: Tensor, index: Tensor, n: int) -> Tensor:
    """Sums of the entries that share an index, (n, …)."""
    return values.new_zeros(n, *values.shape[1:]).index_add_(0, index, values)
