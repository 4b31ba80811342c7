"""What the three measures share: units of frequent words, and means over units."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from torch import Tensor

from shrink_utils.geometry.isotropy import Estimate


def mean_over_units(values: Iterable[float]) -> Estimate:
    """Mean over words or sentences and its standard error, NaN for a single one."""
    values = np.fromiter(values, dtype=float)
    n = len(values)
    stderr = values.std(ddof=1) / math.sqrt(n) if n > 1 else math.nan
    return Estimate(float(values.mean()), float(stderr))


def frequent(words: list, counts: Tensor, *, min_count: int, what: str) -> Tensor:
    """Indices of the words that are counted often enough.

    Raises
    ------
    ValueError
        `min_count` below 2, or no such word.
    """
    if min_count < 2:
        raise ValueError(f"min_count must be at least 2, one vector has no pair; got {min_count}")
    kept = (counts >= min_count).nonzero().flatten()
    if not len(kept):
        most = int(counts.argmax())
        raise ValueError(
            f"words: none of {len(words)} stands in {min_count} {what} or more, {words[most]!r} in "
            f"{int(counts[most])}; lower min_count or take more text"
        )
    return kept


def check_permutations(n_permutations: int) -> None:
    """Refuse a null of no dealing at all."""
    if n_permutations < 1:
        raise ValueError(f"n_permutations must be at least 1, got {n_permutations}")
