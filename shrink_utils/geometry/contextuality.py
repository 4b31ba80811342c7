"""How far a word's vectors follow its context: SelfSim, IntraSim, MEV, each beside its null."""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from shrink_utils.geometry.isotropy import anisotropy, avg_sim
from shrink_utils.geometry.rows import _as_labels
from shrink_utils.topology.arrays import Array, _as_rows, _unit_rows, _whole_number


class _OverUnits:
    """A measure taken unit by unit: over words, or over sentences."""

    _values = "per_word"

    @property
    def value(self) -> float:
        """Mean over words or sentences, all counting the same."""
        return float(np.mean(list(getattr(self, self._values).values())))

    @property
    def stderr(self) -> float:
        """Standard error of that mean; NaN for a single unit."""
        values = list(getattr(self, self._values).values())
        return float(np.std(values, ddof=1)) / len(values) ** 0.5 if len(values) > 1 else math.nan


class _BesideNull(_OverUnits):
    """A measure whose null has a value per unit, and whose published correction is another."""

    baseline: float

    @property
    def null(self) -> float:
        """Mean of what rows dealt at random to the same units give."""
        return float(np.mean(list(getattr(self, f"null_{self._values}").values())))

    @property
    def excess(self) -> float:
        """``value − null``: this is the number to read."""
        return self.value - self.null

    @property
    def corrected(self) -> float:
        """``value − baseline``, the published correction, which mixes in the units' size."""
        return self.value - self.baseline


def _dealt(
    of_units: Callable[[Tensor], Tensor], x: Tensor, n_permutations: int, seed: int
) -> list[float]:
    """The null of each unit: the mean over dealings of the rows of what `of_units` gives.

    `of_units` takes the rows in an order, (n,), and gives the measure of each unit.
    """
    n_permutations = _whole_number(n_permutations, "n_permutations", 1)
    rng = np.random.default_rng(_whole_number(seed, "seed"))
    orders = (torch.from_numpy(rng.permutation(len(x))).to(x.device) for _ in range(n_permutations))
    dealt = torch.stack([of_units(order) for order in orders])  # (permutations, units)
    return dealt.mean(dim=0).tolist()


def _frequent(words: list, counts: Tensor, *, min_count: int, what: str) -> Tensor:
    """Indices of the words that are counted often enough; ``ValueError`` if there is none."""
    # One vector has no pair.
    kept = (counts >= _whole_number(min_count, "min_count", 2)).nonzero().flatten()
    if not len(kept):
        most = int(counts.argmax())
        raise ValueError(
            f"words: none of {len(words)} stands in {min_count} {what} or more, {words[most]!r} in "
            f"{int(counts[most])}; lower min_count or take more text"
        )
    return kept


@dataclass(frozen=True)
class OverWords(_OverUnits):
    """Self-similarity of frequent words."""

    per_word: dict[Hashable, float]  # mean cosine between its occurrences, words sorted
    counts: dict[Hashable, int]  # occurrences
    null: float  # what words without meaning would have: the AvgSim of all rows

    @property
    def corrected(self) -> float:
        """``value − null``, the correction of the literature for anisotropy."""
        return self.value - self.null


def self_sim(
    x: Array, words: Array, *, sentences: Array | None = None, min_count: int = 5
) -> OverWords:
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

    Raises
    ------
    ValueError
        Zero rows, labels that do not fit the rows, or no word with enough contexts.

    Notes
    -----
    SelfSim(w) = (‖S‖² − Σ_s‖u_s‖²) / (m² − Σ_s m_s²), with m_s occurrences of w in context s, u_s
    the sum of their unit vectors, S = Σ_s u_s and m = Σ_s m_s: one pass over the rows.

    If words were dealt to the rows at random, every pair would be a pair of any two rows, so the
    expectation is AvgSim exactly. The published correction therefore *is* the null here (unlike
    IntraSim's and MEV's). Ethayarajh 2019, definition 1 and section 3.4; Vázquez et al. 2021.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> found = self_sim(x, ["cat", "cat", "dog", "dog"], min_count=2)
    >>> round(found.value, 2), round(found.null, 2)
    (1.0, 0.4)
    """
    x = _unit_rows(_as_rows(x, min_rows=2))
    vocabulary, word = _as_labels(words, len(x), name="words")
    if sentences is not None:
        sentences = _as_labels(sentences, len(x), name="sentences")[1]
    sums, counts = _occurrence_sums(x, word.to(x.device), sentences, len(vocabulary))
    what = "rows" if sentences is None else "different sentences"
    kept = _frequent(vocabulary, counts[:, 0], min_count=min_count, what=what)
    names = [vocabulary[w] for w in kept.tolist()]
    return OverWords(
        per_word=dict(zip(names, _self_sims(sums[kept], counts[kept]).tolist(), strict=True)),
        counts=dict(zip(names, counts[kept, 1].long().tolist(), strict=True)),
        null=avg_sim(x, groups=sentences).value,
    )


def _occurrence_sums(
    x: Tensor, words: Tensor, contexts: Tensor | None, n_words: int
) -> tuple[Tensor, Tensor]:
    """Of each word S (n_words, d), and (n_words, 4): its contexts, m, Σ_s‖u_s‖² and Σ_s m_s²."""
    sums = x.new_zeros(n_words, x.shape[1]).index_add_(0, words, x)
    if contexts is None:
        return sums, torch.bincount(words, minlength=n_words).to(x)[:, None].repeat(1, 4)
    n = int(contexts.max()) + 1 if len(contexts) else 1
    pairs = words * n + contexts.to(x.device)  # a word in a context
    pairs, index, m = pairs.unique(return_inverse=True, return_counts=True)
    u = x.new_zeros(len(pairs), x.shape[1]).index_add_(0, index, x)
    m = m.to(x.dtype)
    counts = torch.stack([torch.ones_like(m), m, u.square().sum(dim=1), m.square()], dim=1)
    return sums, x.new_zeros(n_words, 4).index_add_(0, pairs // n, counts)


def _self_sims(sums: Tensor, counts: Tensor) -> Tensor:
    """SelfSim of words, (words,), from their S, (words, d), and `_occurrence_sums`."""
    _, m, squares, pairs = counts.unbind(dim=1)
    return (sums.square().sum(dim=1) - squares) / (m.square() - pairs)


@dataclass(frozen=True)
class IntraSim(_BesideNull):
    """Intra-sentence similarity of sentences of two words or more."""

    _values = "per_sentence"

    per_sentence: dict[Hashable, float]  # sentences sorted
    null_per_sentence: dict[Hashable, float]  # of rows dealt at random, mean over dealings
    baseline: float  # AvgSim over different sentences: what the literature subtracts


def intra_sim(x: Array, sentences: Array, *, n_permutations: int = 10, seed: int = 0) -> IntraSim:
    """Mean cosine between the words of a sentence and their mean vector, beside its null.

    Parameters
    ----------
    x : array_like, shape (n, d)
        A row is the vector of a word in its sentence; none of them zero.
    sentences : array_like, shape (n,)
        Which sentence it stands in.
    n_permutations : int
        How often the rows are dealt at random, by `seed`, to sentences of the same lengths.

    Raises
    ------
    ValueError
        Zero rows, labels that do not fit the rows, fewer than two sentences, no sentence of two
        words, or a sentence whose mean vector is zero.

    Notes
    -----
    IntraSim(s) = 1/L Σ_i cos(s̄, x_i), with s̄ = 1/L Σ_i x_i the mean of the *raw* vectors of its L
    words (Ethayarajh 2019, definition 2). s̄ contains every x_i, so IntraSim is high without any
    context: for L independent unit vectors whose mean cosine is A it is about
    √((1 + (L − 1)A)/L) > A. Subtracting A therefore leaves mostly this; the null, which is ours,
    deals the rows to sentences of the same lengths and keeps it. A sentence of one word has
    IntraSim 1 whatever its vector: it is left out, but its row is dealt.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> found = intra_sim(x, [0, 0, 1, 1])
    >>> round(found.value, 2), found.excess > 0
    (1.0, True)
    """
    x = _as_rows(x, min_rows=2)
    raw = x / len(x)  # so that no sum overflows; only its direction counts
    forms = raw, _unit_rows(x), raw.abs().amax(dim=1, keepdim=True)
    labels, index = _as_labels(sentences, len(x), name="sentences", device=x.device)
    lengths = torch.bincount(index)
    long = (lengths > 1).nonzero().flatten()
    if len(labels) < 2 or not len(long):
        raise ValueError(
            f"sentences needs at least 2 sentences, one of them of 2 words or more; got "
            f"{len(labels)} of at most {int(lengths.max())} word(s)"
        )
    values = _intra_sims(forms, lengths, index.argsort(stable=True))
    if values.isnan().any():
        label = labels[int(values.isnan().nonzero()[0])]
        raise ValueError(f"sentences: the vectors of sentence {label!r} have mean zero: no cosine")
    null = _dealt(lambda order: _intra_sims(forms, lengths, order)[long], x, n_permutations, seed)
    if np.isnan(null).any():
        raise ValueError("x: rows dealt at random to a sentence have mean zero: no null")
    kept = [labels[s] for s in long.tolist()]
    return IntraSim(
        per_sentence=dict(zip(kept, values[long].tolist(), strict=True)),
        null_per_sentence=dict(zip(kept, null, strict=True)),
        baseline=avg_sim(x, groups=index).value,
    )


def _intra_sims(forms: tuple[Tensor, ...], lengths: Tensor, order: Tensor) -> Tensor:
    """IntraSim of consecutive runs of rows, taken in `order`; NaN for a mean of zero.

    The rows come raw, (n, d), of length one, and as their largest entries, (n, 1).
    """
    starts = lengths.cumsum(dim=0) - lengths
    mean, unit, size = (embedding_bag(order, rows, starts, mode="sum") for rows in forms)
    # A sum that cancels down to its own rounding has no direction.
    largest = mean.abs().amax(dim=1)
    defined = largest > torch.finfo(mean.dtype).eps * lengths * size.flatten()
    direction = torch.full_like(mean, torch.nan)
    direction[defined] = _unit_rows(mean[defined])
    return (direction * unit).sum(dim=1) / lengths


@dataclass(frozen=True)
class MaxExplainableVariance(_BesideNull):
    """Maximum explainable variance of frequent words."""

    per_word: dict[Hashable, float]  # words sorted
    null_per_word: dict[Hashable, float]  # of the same number of random rows, mean over dealings
    counts: dict[Hashable, int]  # occurrences
    baseline: float  # the share of all rows together: what the literature subtracts


def max_explainable_variance(
    x: Array, words: Array, *, min_count: int = 5, n_permutations: int = 10, seed: int = 0
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
        How often the words are dealt at random, by `seed`, to the rows.

    Raises
    ------
    ValueError
        Labels that do not fit the rows, no word with enough occurrences, or a word (real or dealt)
        whose vectors are all zero.

    Notes
    -----
    MEV(w) = σ₁² / Σ_i σ_i², σ the singular values of the m × d matrix of w's vectors, uncentred
    (Ethayarajh 2019, definition 3). The numbers released with the paper are another quantity, the
    ``explained_variance_ratio_`` of scikit-learn's ``TruncatedSVD``: the *centred* variance along
    the same direction, which is small where w's vectors agree.

    m rows have rank m at most, so MEV ≥ 1/m, and rare words have high MEV by their number alone.
    The published correction subtracts the share of one large sample, which has no such floor; the
    null, which is ours, compares each word with the same number of random rows.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
    >>> found = max_explainable_variance(x, ["cat", "cat", "dog", "dog"], min_count=2)
    >>> round(found.value, 2), found.excess > 0
    (1.0, True)
    """
    x = _as_rows(x, min_rows=2)
    vocabulary, word = _as_labels(words, len(x), name="words", device=x.device)
    counts = torch.bincount(word)
    kept = _frequent(vocabulary, counts, min_count=min_count, what="rows")
    values = _first_shares(x, word.argsort(stable=True), counts, kept)
    null = _dealt(lambda order: _first_shares(x, order, counts, kept), x, n_permutations, seed)
    names = [vocabulary[w] for w in kept.tolist()]
    return MaxExplainableVariance(
        per_word=dict(zip(names, values.tolist(), strict=True)),
        null_per_word=dict(zip(names, null, strict=True)),
        counts=dict(zip(names, counts[kept].tolist(), strict=True)),
        baseline=float(anisotropy(x, k=1)),
    )


def _first_shares(x: Tensor, order: Tensor, counts: Tensor, kept: Tensor) -> Tensor:
    """σ₁²/Σσ² of consecutive runs of rows, taken in `order`, for the runs `kept`: (kept,)."""
    starts = (counts.cumsum(dim=0) - counts)[kept]
    shares = x.new_empty(len(kept))
    for m in counts[kept].unique().tolist():
        same = counts[kept] == m
        rows = starts[same][:, None] + torch.arange(m, device=x.device)  # (words, m)
        vectors = x[order[rows]]  # (words, m, d)
        largest = vectors.abs().amax(dim=(1, 2), keepdim=True)
        if not largest.all():
            raise ValueError("x: a word's vectors, its own or dealt, are all zero: no variance")
        vectors = vectors / largest
        gram = vectors @ vectors.mT if m <= x.shape[1] else vectors.mT @ vectors
        trace = gram.diagonal(dim1=1, dim2=2).sum(dim=1)
        shares[same] = torch.linalg.eigvalsh(gram)[:, -1] / trace
    return shares
