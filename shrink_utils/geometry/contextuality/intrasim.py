"""Intra-sentence similarity: how alike the words of a sentence are to their mean."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import embedding_bag

from shrink_utils.geometry._checks import as_labels, as_rows, unit_rows
from shrink_utils.geometry.contextuality._units import BesideNull, check_permutations
from shrink_utils.geometry.isotropy import avg_sim

__all__ = ["IntraSim", "intra_sim"]


@dataclass(frozen=True)
class IntraSim(BesideNull):
    """Intra-sentence similarity of sentences of two words or more.

    Attributes
    ----------
    per_sentence : dict
        Mean cosine between each sentence's words and their mean vector, sentences sorted.
    null_per_sentence : dict
        The same for as many rows dealt at random, mean over dealings.
    null_stderr : float
        Monte Carlo standard error of `null`; NaN for a single dealing.
    baseline : float
        AvgSim over pairs of rows from different sentences: what the literature subtracts.
    """

    per_sentence: dict[Hashable, float]
    null_per_sentence: dict[Hashable, float]
    null_stderr: float
    baseline: float

    def _units(self) -> dict[Hashable, float]:
        return self.per_sentence

    def _null_units(self) -> dict[Hashable, float]:
        return self.null_per_sentence


def intra_sim(
    x: ArrayLike | Tensor,
    sentences: ArrayLike | Tensor,
    *,
    n_permutations: int = 10,
    seed: int = 0,
) -> IntraSim:
    """Mean cosine between the words of a sentence and their mean vector, beside its null.

    Parameters
    ----------
    x : array_like, shape (n, d)
        A row is the vector of a word in its sentence; none of them zero.
    sentences : array_like, shape (n,)
        Which sentence it stands in.
    n_permutations : int
        How often the rows are dealt at random to sentences of the same lengths.
    seed : int
        Of the dealing.

    Returns
    -------
    IntraSim

    Raises
    ------
    ValueError
        Zero rows, labels that do not fit the rows, fewer than two sentences, no sentence of two
        words, or a sentence whose mean vector is zero.

    Notes
    -----
    IntraSim(s) = 1/L Σ_i cos(s̄, x_i), with s̄ = 1/L Σ_i x_i the mean of the *raw* vectors of its L
    words: long vectors draw it to themselves.

    s̄ contains every x_i, so IntraSim is high without any context: for L independent unit vectors
    whose mean cosine is A it is about √((1 + (L − 1)A)/L) > A. Subtracting A therefore leaves
    mostly this; the null deals the rows to sentences of the same lengths and keeps it.

    A sentence of one word has IntraSim 1 whatever its vector, and so has its null: it is left out.
    (Its row stays among those that are dealt.)

    References
    ----------
    Ethayarajh 2019, *How Contextual are Contextualized Word Representations?*, definition 2 and
    section 3.4; Vázquez et al. 2021. The null is ours.
    """
    check_permutations(n_permutations)
    x = as_rows(x, min_rows=2)
    cloud = _Cloud(x)
    labels, index = as_labels(sentences, len(x), name="sentences", device=x.device)
    lengths = torch.bincount(index)
    long = (lengths > 1).nonzero().flatten()
    if len(labels) < 2 or not len(long):
        raise ValueError(
            f"sentences needs at least 2 sentences, one of them of 2 words or more; got "
            f"{len(labels)} of at most {int(lengths.max())} word(s)"
        )
    values, defined = cloud.intra_sims(index.argsort(stable=True), lengths)
    if not defined.all():
        label = labels[int((~defined).nonzero()[0])]
        raise ValueError(f"sentences: the vectors of sentence {label!r} have mean zero: no cosine")
    dealt = _dealt(cloud, lengths, n_permutations, seed)[:, long]  # (permutations, sentences)
    spread = dealt.mean(dim=1).std() if n_permutations > 1 else torch.nan
    kept = [labels[s] for s in long.tolist()]
    return IntraSim(
        per_sentence=dict(zip(kept, values[long].tolist(), strict=True)),
        null_per_sentence=dict(zip(kept, dealt.mean(dim=0).tolist(), strict=True)),
        null_stderr=float(spread / n_permutations**0.5),
        baseline=avg_sim(x, groups=index).value,
    )


def _dealt(cloud: _Cloud, lengths: Tensor, n_permutations: int, seed: int) -> Tensor:
    """IntraSim of every sentence in every dealing of the rows, (permutations, sentences)."""
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(n_permutations):
        order = torch.from_numpy(rng.permutation(len(cloud.unit))).to(cloud.unit.device)
        of_sentences, defined = cloud.intra_sims(order, lengths)
        if not defined.all():
            raise ValueError("x: rows dealt at random to a sentence have mean zero: no null")
        values.append(of_sentences)
    return torch.stack(values)


class _Cloud:
    """The rows in the three forms whose sums over a sentence are needed."""

    def __init__(self, x: Tensor) -> None:
        self.unit = unit_rows(x)
        self.raw = x / len(x)  # so that no sum overflows; only its direction counts
        self.size = self.raw.abs().amax(dim=1, keepdim=True)  # (n, 1)

    def intra_sims(self, order: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """IntraSim of consecutive runs of rows, taken in `order`; and where it is defined."""
        starts = lengths.cumsum(dim=0) - lengths
        mean, unit, size = (
            embedding_bag(order, rows, starts, mode="sum")  # (sentences, d) or (sentences, 1)
            for rows in (self.raw, self.unit, self.size)
        )
        # A sum that cancels down to its own rounding has no direction.
        largest = mean.abs().amax(dim=1)
        defined = largest > torch.finfo(mean.dtype).eps * lengths * size.flatten()
        direction = torch.ones_like(mean)
        direction[defined] = unit_rows(mean[defined])
        return (direction * unit).sum(dim=1) / lengths, defined
