"""Maximum explainable variance: how well one static vector stands for a word's vectors."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry._checks import as_labels, as_rows
from shrink_utils.geometry.contextuality._units import BesideNull, check_permutations, frequent
from shrink_utils.geometry.spectrum import anisotropy

__all__ = ["MaxExplainableVariance", "max_explainable_variance"]


@dataclass(frozen=True)
class MaxExplainableVariance(BesideNull):
    """Maximum explainable variance of frequent words.

    Attributes
    ----------
    per_word : dict
        MEV of each word, words sorted.
    null_per_word : dict
        The same for as many rows drawn at random, mean over dealings.
    counts : dict
        Occurrences of each of them.
    null_stderr : float
        Monte Carlo standard error of `null`; NaN for a single dealing.
    baseline : float
        The same share for all rows together: what the literature subtracts.
    """

    per_word: dict[Hashable, float]
    null_per_word: dict[Hashable, float]
    counts: dict[Hashable, int]
    null_stderr: float
    baseline: float

    def _units(self) -> dict[Hashable, float]:
        return self.per_word

    def _null_units(self) -> dict[Hashable, float]:
        return self.null_per_word


def max_explainable_variance(
    x: ArrayLike | Tensor,
    words: ArrayLike | Tensor,
    *,
    min_count: int = 5,
    n_permutations: int = 10,
    seed: int = 0,
) -> MaxExplainableVariance:
    """Share of a word's vectors that their first singular direction holds, beside its null.

    Parameters
    ----------
    x : array_like, shape (n, d)
        A row is the vector of a word in its context.
    words : array_like, shape (n,)
        Which word it is.
    min_count : int
        Fewest occurrences of a word that counts, at least 2.
    n_permutations : int
        How often the words are dealt at random to the rows.
    seed : int
        Of the dealing.

    Returns
    -------
    MaxExplainableVariance

    Raises
    ------
    ValueError
        Labels that do not fit the rows, no word with enough occurrences, or a word (real or dealt)
        whose vectors are all zero.

    Notes
    -----
    MEV(w) = σ₁² / Σ_i σ_i², σ the singular values of the m × d matrix of w's vectors, uncentred
    and not scaled row by row: the upper bound on what one static vector can explain. So the paper
    defines it. The numbers released with it are another quantity, the ``explained_variance_ratio_``
    of scikit-learn's ``TruncatedSVD``: the *centred* variance along the same direction, which is
    small where w's vectors agree.

    m rows have rank m at most, so MEV ≥ 1/m, and rare words have high MEV by their number alone.
    The published correction subtracts the share of one large sample, which has no such floor; the
    null deals the words to the rows, so that each word is compared with as many random rows.

    Cost per word: the smaller Gram matrix and its eigenvalues, batched over words of equal count.

    References
    ----------
    Ethayarajh 2019, *How Contextual are Contextualized Word Representations?*, definition 3 and
    section 3.4, and the code released with it
    (github.com/kawine/contextual, analyze.py). The null is ours.
    """
    check_permutations(n_permutations)
    x = as_rows(x, min_rows=2)
    vocabulary, word = as_labels(words, len(x), name="words", device=x.device)
    counts = torch.bincount(word)
    kept = frequent(vocabulary, counts, min_count=min_count, what="rows")
    values = _first_shares(x, word.argsort(stable=True), counts, kept)
    rng = np.random.default_rng(seed)
    orders = [torch.from_numpy(rng.permutation(len(x))).to(x.device) for _ in range(n_permutations)]
    dealt = torch.stack([_first_shares(x, order, counts, kept) for order in orders])
    spread = dealt.mean(dim=1).std() if n_permutations > 1 else torch.nan
    names = [vocabulary[w] for w in kept.tolist()]
    return MaxExplainableVariance(
        per_word=dict(zip(names, values.tolist(), strict=True)),
        null_per_word=dict(zip(names, dealt.mean(dim=0).tolist(), strict=True)),
        counts=dict(zip(names, counts[kept].tolist(), strict=True)),
        null_stderr=float(spread / n_permutations**0.5),
        baseline=float(anisotropy(x, k=1)),
    )


def _first_shares(x: Tensor, order: Tensor, counts: Tensor, kept: Tensor) -> Tensor:
    """σ₁²/Σσ² of consecutive runs of rows, taken in `order`, for the runs `kept`: (kept,)."""
    starts = (counts.cumsum(dim=0) - counts)[kept]
    shares = x.new_empty(len(kept))
    for m in counts[kept].unique().tolist():
        same = counts[kept] == m
        rows = starts[same][:, None] + torch.arange(m, device=x.device)  # (words, m)
        shares[same] = _first_share(x[order[rows]])
    return shares


def _first_share(vectors: Tensor) -> Tensor:
    """σ₁²/Σσ² of each matrix of a batch, (words, m, d) → (words,)."""
    largest = vectors.abs().amax(dim=(1, 2), keepdim=True)
    if not largest.all():
        raise ValueError("x: a word's vectors, its own or dealt ones, are all zero: no variance")
    vectors = vectors / largest
    m, d = vectors.shape[1:]
    gram = vectors @ vectors.mT if m <= d else vectors.mT @ vectors
    return torch.linalg.eigvalsh(gram)[:, -1] / gram.diagonal(dim1=1, dim2=2).sum(dim=1)
