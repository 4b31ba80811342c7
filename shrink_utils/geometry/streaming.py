"""One-pass forms of the measures: torchmetrics metrics whose states are float64 sums.

Each gives what the function of the same name gives for all rows at once, however the rows are split
into batches, dealt to workers and merged; a state has one size for any number of rows. ``update``
takes batch after batch, ``merge_state`` and torch.distributed add states, ``compute`` answers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from shrink_utils.geometry.contextuality import _frequent, _occurrence_sums, _self_sims
from shrink_utils.geometry.isotropy import (
    _between_groups,
    _check_k,
    _group_sums,
    _leading_shares,
    _participation,
    _used_share,
)
from shrink_utils.geometry.rows import _as_labels, _same_rows
from shrink_utils.names import not_installed
from shrink_utils.topology.arrays import Array, _as_rows, _as_tensor, _unit_rows, _whole_number

try:
    from torchmetrics import Metric
except ModuleNotFoundError as error:
    raise not_installed("shrink_utils.geometry.streaming", "streaming", error) from error

__all__ = ["CKA", "AvgSim", "IsoScore", "SelfSim", "Spectrum"]

# What a result may lose, as a share of itself, to sums that cancel where rows are far from zero.
LOSS = 1e-8


class _Sums(Metric):
    """A metric whose states are sums over rows with `n_features` columns."""

    full_state_update = False
    is_differentiable = False
    higher_is_better = None
    fewest_features = 1

    def __init__(self, n_features: int, **kwargs: Any) -> None:
        super().__init__(compute_with_cache=False, **kwargs)  # it would outlive a merge
        self.n_features = _whole_number(n_features, "n_features", self.fewest_features)

    def _apply(self, fn: Callable, *args: Any, **kwargs: Any) -> "_Sums":
        """Move states with the model around them; they stay float64, whatever it becomes."""

        def moved(state: Tensor) -> Tensor:
            found = fn(state)
            return found if found.dtype == state.dtype else state.to(found.device)

        return super()._apply(moved, *args, **kwargs)

    def add_sums(self, **shapes: tuple[int, ...]) -> None:
        for name, shape in shapes.items():
            zeros = torch.zeros(shape, dtype=torch.float64)
            self.add_state(name, zeros, dist_reduce_fx="sum")

    def merge_state(self, incoming_state: dict[str, Any] | Metric) -> None:
        """Take in the rows of another metric of the same construction, or of its states."""
        incoming = getattr(incoming_state, "metric_state", incoming_state)
        for name, state in self.metric_state.items():
            if name in incoming and incoming[name].shape != state.shape:
                raise ValueError(
                    f"incoming_state: {name} has shape {tuple(incoming[name].shape)}, here it has "
                    f"{tuple(state.shape)}; construct both metrics alike"
                )
        super().merge_state(incoming_state)
        self._update_count += 1  # else compute() warns of a metric without rows

    def batch(self, x: Array, n_features: int, name: str = "x") -> Tensor:
        """A batch of rows in float64; ``ValueError`` for another number of columns."""
        x = _as_rows(x, min_rows=0, name=name).to(self.device)
        if x.shape[1] != n_features:
            raise ValueError(f"{name} must have {n_features} columns, got shape {tuple(x.shape)}")
        return x

    def need_rows(self, n: Tensor, least: int) -> None:
        """Refuse to compute from fewer rows than the quantity needs."""
        if n < least:
            raise ValueError(
                f"{type(self).__name__} needs at least {least} row(s), it has seen {int(n)}"
            )


class AvgSim(_Sums):
    """Average cosine similarity of rows with `n_features` columns: `geometry.avg_sim` in one pass.

    Over all pairs, or pairs of different groups. There is no standard error: the jackknife weighs
    each group by its product with the *final* Σx̂, which one pass does not know before its end.
    """

    def __init__(self, n_features: int, **kwargs: Any) -> None:
        super().__init__(n_features, **kwargs)
        self.add_sums(n_rows=(), n_groups=(), group_squares=(), group_pairs=())
        self.add_sums(total=(self.n_features,))

    def update(self, x: Array, groups: Array | None = None) -> None:
        """Take in a batch.

        Parameters
        ----------
        x : array_like, shape (n, n_features)
            Rows, none of them zero.
        groups : array_like, shape (n,), optional
            A label per row, by default every row is its own group. A group must come whole in one
            batch: labels are not compared between batches.
        """
        x = _unit_rows(self.batch(x, self.n_features))
        sums, sizes = _group_sums(x, groups)
        self.n_rows += len(x)
        self.n_groups += len(sums)
        self.group_squares += sums.square().sum()
        self.group_pairs += sizes.square().sum()
        self.total += x.sum(dim=0)

    def compute(self) -> Tensor:
        """The average, a float64 scalar; ``ValueError`` for fewer than two rows, or one group."""
        self.need_rows(self.n_rows, 2)
        if self.n_groups < 2:
            raise ValueError(
                f"groups needs at least 2 different labels, got 1 for {int(self.n_rows)} rows"
            )
        products = _between_groups(self.total, self.group_squares)
        return products / (self.n_rows**2 - self.group_pairs)


class SelfSim(_Sums):
    """Average cosine similarity between occurrences of each word: `geometry.self_sim` in one pass.

    Parameters
    ----------
    n_words : int
        Size of the vocabulary, with which the state grows.
    n_features : int
        Columns of the rows.
    min_count : int
        Fewest contexts of a word that counts, at least 2.

    Notes
    -----
    The null of SelfSim is AvgSim over the same rows: keep an `AvgSim` beside this.
    """

    def __init__(self, n_words: int, n_features: int, *, min_count: int = 5, **kwargs: Any) -> None:
        super().__init__(n_features, **kwargs)
        self.n_words = _whole_number(n_words, "n_words", 1)
        self.min_count = _whole_number(min_count, "min_count", 2)
        # The last row takes in the words that are not in the vocabulary, and is never read.
        self.add_sums(sums=(n_words + 1, n_features), counts=(n_words + 1, 4))

    def update(self, x: Array, words: Array, sentences: Array | None = None) -> None:
        """Take in a batch.

        Parameters
        ----------
        x : array_like, shape (n, n_features)
            A row is the vector of a word in its context; none of them zero.
        words : array_like of int, shape (n,)
            Which word it is, 0 … n_words − 1; −1 for one outside of the vocabulary.
        sentences : array_like, shape (n,), optional
            Where it stands: then only occurrences in different sentences make a pair. A sentence
            must come whole in one batch.
        """
        x = _unit_rows(self.batch(x, self.n_features))
        words = _as_tensor(words, "words").to(self.device)
        if words.shape != x.shape[:1] or words.is_floating_point():
            raise ValueError(
                f"words needs one whole number per row: {len(x)} rows, got dtype {words.dtype}, "
                f"shape {tuple(words.shape)}"
            )
        if not len(x):
            return
        if not -1 <= int(words.min()) <= int(words.max()) < self.n_words:
            raise ValueError(
                f"words must be −1 … {self.n_words - 1}, got {int(words.min())} … "
                f"{int(words.max())}"
            )
        if sentences is not None:
            sentences = _as_labels(sentences, len(x), name="sentences", device=x.device)[1]
        place = torch.where(words < 0, self.n_words, words.long())
        sums, counts = _occurrence_sums(x, place, sentences, self.n_words + 1)
        self.sums += sums
        self.counts += counts

    def compute(self) -> Tensor:
        """SelfSim of each word, (n_words,) float64 (a scalar for a single word); NaN for the rare.

        A ``ValueError`` where no word stands in `min_count` contexts.
        """
        words, contexts = list(range(self.n_words)), self.counts[:-1, 0]
        kept = _frequent(words, contexts, min_count=self.min_count, what="contexts")
        values = _self_sims(self.sums[kept], self.counts[kept])
        return torch.full_like(contexts, torch.nan).index_copy_(0, kept, values)


class _Moments(_Sums):
    """Sums of rows z and of their products z zᵀ, for what depends on no other moments.

    A sum of squares loses what a distance from zero takes up: centred results lose a share of
    about 1e-16 · (offset / spread)². Where more than 1e-8 may be lost, `compute` refuses.
    """

    def __init__(self, n_features: int, **kwargs: Any) -> None:
        super().__init__(n_features, **kwargs)
        d = self.n_features
        self.add_sums(n_rows=(), total=(d,), second=(d, d))

    def update(self, x: Array) -> None:
        """Take in a batch of rows, (n, n_features)."""
        self.add(self.batch(x, self.n_features))

    def add(self, z: Tensor) -> None:
        """Add the sums of a batch."""
        self.n_rows += len(z)
        self.total += z.sum(dim=0)
        self.second += z.T @ z

    def scatter(self, widths: Sequence[int], least: int) -> list[list[Tensor]]:
        """Σzzᵀ of rows less their mean, by blocks of columns; each has trace 1 on the diagonal."""
        self.need_rows(self.n_rows, least)
        scatter = self.second - torch.outer(self.total, self.total) / self.n_rows
        if not torch.isfinite(self.second).all():
            raise ValueError("sums leave float64; take the rows in another unit")
        raw, norms = (
            torch.stack([part.sum() for part in m.diagonal().split(widths)])
            for m in (self.second, scatter)
        )
        precision = torch.finfo(raw.dtype)
        kept = norms / raw.clamp_min(precision.tiny)  # what cancellation leaves
        if not (kept > precision.eps / LOSS).all():
            raise ValueError(
                f"{type(self).__name__} has seen {int(self.n_rows)} row(s) whose squared distances "
                f"from their mean are {float(kept.min()):.1e} of those from zero: they have no "
                "variance (all rows are identical), or sums lose it: subtract a row near their mean"
            )
        scale = norms.repeat_interleave(torch.tensor(widths, device=norms.device)).sqrt()
        scatter = scatter / torch.outer(scale, scale)
        return [part.split(widths, dim=1) for part in scatter.split(widths)]


class Spectrum(_Moments):
    """First `k` anisotropy scores, σ_k² / Σσ²: `geometry.anisotropy` in one pass.

    Parameters
    ----------
    n_features : int
        Columns of the rows.
    k, center
        As in `geometry.anisotropy`.
    """

    def __init__(self, n_features: int, *, k: int = 3, center: bool = False, **kwargs: Any) -> None:
        super().__init__(n_features, **kwargs)
        _check_k(k, self.n_features, f"of {n_features} columns")
        self.k, self.center = k, center

    def compute(self) -> Tensor:
        """Scores, (k,) float64 (a scalar for k = 1), descending.

        A ``ValueError`` for `k` outside 1 … min(rows, columns), or where nothing varies.
        """
        self.need_rows(self.n_rows, 1)
        n = int(self.n_rows)
        _check_k(self.k, min(n, self.n_features), f"after {n} row(s)")
        second = self.scatter([self.n_features], 1)[0][0] if self.center else self.second
        least = torch.finfo(second.dtype).smallest_normal * torch.finfo(second.dtype).eps / LOSS
        if not second.diagonal().sum() > least or not torch.isfinite(second).all():
            raise ValueError(
                f"Spectrum has seen {n} row(s) of nothing but zeros, or beyond float64"
            )
        return _leading_shares(torch.linalg.eigvalsh(second).clamp(min=0).flip(0), self.k)


class IsoScore(_Moments):
    """IsoScore, (PR − 1) / (d − 1): `geometry.iso_score` in one pass, without its correction."""

    fewest_features = 2

    def compute(self) -> Tensor:
        """The score, a float64 scalar; refused where `geometry.iso_score` is."""
        scatter = self.scatter([self.n_features], 2)[0][0]
        trace = scatter.new_ones(())
        return _used_share(_participation(trace, scatter.square().sum()), self.n_features)


class CKA(_Moments):
    """Linear CKA of two representations, over all pairs of rows: `geometry.cka`, not debiased.

    `n_features` and `n_features_y` are the columns of x and of y; as many as x has by default.
    """

    def __init__(self, n_features: int, n_features_y: int | None = None, **kwargs: Any) -> None:
        both = n_features, n_features if n_features_y is None else n_features_y
        self.widths = [_whole_number(width, "n_features", 1) for width in both]
        super().__init__(sum(self.widths), **kwargs)

    def update(self, x: Array, y: Array) -> None:
        """Take in a batch: row i of x, (n, n_features), and of y are the same sample."""
        x, y = self.batch(x, self.widths[0]), self.batch(y, self.widths[1], "y")
        _same_rows(len(x), len(y))
        self.add(torch.cat([x, y], dim=1))

    def compute(self) -> Tensor:
        """The alignment, a float64 scalar; refused where `geometry.cka` is."""
        (xx, xy), (_, yy) = self.scatter(self.widths, 2)
        squared = [part.square().sum() for part in (xy, xx, yy)]
        return squared[0] / (squared[1] * squared[2]).sqrt()
