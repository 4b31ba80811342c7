"""What the three measures share: units of frequent words, and means over units."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np
from torch import Tensor

from shrink_utils.geometry.isotropy import Estimate


class OverUnits:
    """A measure taken unit by unit; a subclass says of which: its words or its sentences."""

    def _units(self) -> dict[Hashable, float]:
        raise NotImplementedError

    @property
    def value(self) -> float:
        """Mean over words or sentences, all counting the same."""
        return mean_over_units(self._units().values()).value

    @property
    def stderr(self) -> float:
        """Standard error of that mean; NaN for a single unit."""
        return mean_over_units(self._units().values()).stderr


class BesideNull(OverUnits):
    """A measure whose null has a value a unit, and whose published correction is another number."""

    baseline: float

    def _null_units(self) -> dict[Hashable, float]:
        raise NotImplementedError

    @property
    def null(self) -> float:
        """Mean of what rows dealt at random to the same units give."""
        return mean_over_units(self._null_units().values()).value

    @property
    def excess(self) -> float:
        """``value − null``: this is the number to read."""
        return self.value - self.null

    @property
    def corrected(self) -> float:
        """``value − baseline``, the published correction, which mixes in the units' size."""
        return self.value - self.baseline


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
