"""The barcode regularizer of *Shrink the longest*: a term to add to any task loss."""

import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from shrink_utils.names import IGNORED, known_name
from shrink_utils.topology.arrays import (
    HALF,
    as_matrix,
    as_tensor,
    eager,
    host_values,
    on_float64_device,
    rounding_of_rows,
    sum_of_squares,
    values_and_squares,
    whole_number,
)
from shrink_utils.topology.barcodes import loop_edges
from shrink_utils.topology.entropy import NEGLIGIBLE, entropy_and_slopes, entropy_of
from shrink_utils.topology.selection import RULES, prominent_positions, random_positions
from shrink_utils.topology.spanning_tree import OfEdges, edge_lengths, minimum_spanning_tree

SELECTIONS = ("prominent", "all", "random")
NO_EDGES, NO_LENGTHS = np.empty((0, 2), np.int64), np.empty(0)
COARSEST = torch.finfo(torch.bfloat16).eps


def class_clouds(embeddings: Tensor, labels: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
    """Classes of a batch, ascending, and the cloud of each: for penalties that are not about bars.

    Parameters
    ----------
    embeddings : Tensor, shape (b, d)
    labels : Tensor of int64, shape (b,), optional
        Class of each row; rows labelled −100 are left out. None makes one class, 0, of all rows
        (regression).

    Returns
    -------
    classes : Tensor, shape (k,)
    clouds : list of k Tensor, each of shape (rows of the class, d)
        Float64, in the graph of `embeddings`; on the CPU where the device has no float64.

    Raises
    ------
    ValueError
        As `BarcodeRegularizer`.
    """
    embeddings = as_matrix(embeddings, min_columns=1, name="embeddings")
    host_values(embeddings, "embeddings")  # refuses NaN and infinity
    classes, of_class = _rows_of_classes(labels, embeddings)
    wide = on_float64_device(embeddings).double()
    clouds = [wide[torch.from_numpy(rows).to(wide.device)] for rows in of_class]
    return torch.from_numpy(classes).to(embeddings.device), clouds


def _warn_if_it_stands_still(term: nn.Module, embeddings: Tensor, moves: bool) -> None:
    """Say it once where nothing in the first batch that a term trains on has a gradient."""
    if getattr(term, "seen", False) or not (term.training and embeddings.requires_grad):
        return
    if term.weight:
        term.seen = True
        if not moves:
            warnings.warn(
                f"{type(term).__name__}: no class of the first batch (embeddings of shape "
                f"{tuple(embeddings.shape)}) has rows enough, so the term is constant and moves "
                "nothing; take larger batches or fewer classes, or one cloud: labels=None, or in "
                "BarcodeTrainer a classes_of that returns None",
                stacklevel=6,
            )


class RegularizerOutput(NamedTuple):
    """What one batch gives. Only `loss` carries a gradient; the rest is for logging."""

    loss: Tensor  # ()
    classes: Tensor  # (k,), ascending; the other entries are theirs
    entropy: Tensor  # (k,), of the selected bars
    n_features: Tensor  # (k,), how many these are
    n_bars: Tensor  # (k,), how many there are to select from
    # Lengths (n_bars,) of each class's bars, longest first, float64 on the CPU; None where the
    # barcodes are of other groups of rows than the classes.
    bars: list[Tensor] | None


class Bars(NamedTuple):
    """The bars of one class, longest first, and the edges between its points that make them."""

    lengths: np.ndarray  # (m,), 0 for what is rounding
    chosen: np.ndarray  # positions of those whose entropy is taken
    edges: np.ndarray  # (m, 2), or (2m, 2): that of each death, then that of each birth
    measured: np.ndarray  # lengths of these edges


def without_rounding(
    lengths: np.ndarray,
    points: np.ndarray,
    edges: np.ndarray,
    dtype: torch.dtype,
    squares: float,
) -> np.ndarray:
    """Lengths (m,), longest first, with 0 for edges that rounding of an end explains.

    `squares` is the sum of squares of the points.
    """
    if len(lengths) == 0 or lengths[-1] > COARSEST * math.sqrt(squares):
        return lengths  # as nearly always
    allowed = rounding_of_rows(points, dtype)[edges].max(axis=1)  # (m,)
    rounded = lengths <= allowed
    if dtype in HALF:
        rounded[rounded] = _rounded_alike(points, edges[rounded], allowed[rounded], dtype)
    return np.where(rounded, 0.0, lengths)


def _rounded_alike(
    points: np.ndarray, edges: np.ndarray, allowed: np.ndarray, dtype: torch.dtype
) -> np.ndarray:
    """Of edges (m, 2), whether every coordinate of their ends may differ by its own rounding, (m,).

    One massive coordinate is rounded coarsely and says nothing about the others. Before they were
    rounded, rows were float32, whose errors go by the norm.
    """
    eps = torch.finfo(dtype).eps
    first, second = points[edges.T].astype(np.float64)  # (m, d) each
    of_float32 = 16 * torch.finfo(torch.float32).eps * allowed / eps  # (m,)
    alike = eps * np.maximum(np.abs(first), np.abs(second)) + of_float32[:, None]
    return (np.abs(first - second) <= alike).all(axis=1)


def check_factor(value: float, name: str) -> float:
    """Return a finite factor as a float, or raise a ``ValueError``."""
    if isinstance(value, Tensor) and value.requires_grad:
        raise ValueError(f"{name} must be a number; got a tensor to learn: multiply the loss by it")
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        number = math.nan
    if not math.isfinite(number) or isinstance(value, str):
        raise ValueError(f"{name} must be a finite number; got {value!r}")
    return number


class BarcodeRegularizer(nn.Module):
    r"""Maximizes the persistent entropy of an embedding cloud's barcode, computed per class.

    .. math:: \text{loss} = -\,\text{weight} \cdot \sum_{\text{classes}} E(\text{selected bars})

    Parameters
    ----------
    selection : {"prominent", "all", "random"}
        Take the entropy over the prominent bars, over every bar, or over as many bars as are
        prominent, drawn anew each time from all of them.
    weight : float
        Weight λ of the entropy against the task loss.
    rule : {"ratio", "published"}
        How prominent bars are told from noise; see `prominent_features`. With ``"random"`` it
        says how many bars are drawn.
    homology_dim : int
        Dimension of the barcode: 0 components (the paper's), 1 loops, …
    unselected_l2 : float
        Adds ``unselected_l2`` × the mean length of the bars left out, summed over classes, not
        multiplied by `weight`. Positive values shorten these bars, which tightens clusters; the
        published code has the extra on, with the sign that lengthens them.

    Raises
    ------
    ValueError
        If an option is outside these values.

    Notes
    -----
    Each class has a term of its own so that classes are not pushed together. A class of fewer
    than two points has no bar, entropy 0 and zero gradient; if the first batch has nothing else, a
    warning says so. Sums run in float64.

    Points that differ by rounding alone count as equal, and equal points have a bar of length 0.
    That is a bar of H0 no longer than 16 eps of float32 times the norm of the longer of its ends
    (in half precision, where vectors are rounded once, eps of the dtype times each coordinate, so
    that a massive one does not speak for the rest). It is so in float64, too, where float32 holds
    the values exactly: they are a float32 network's. Other float64 vectors are taken less their
    class's mean where that is shorter: no shift makes copies. Without it, one
    copy of a row that is off in its last digits leaves ``"prominent"`` with one bar and entropy 0:
    the selection stops at fewer bars the shorter the shortest of them is, by definition. Between
    rounding and about a thousandth of the other bars' length, a short bar still does so.
    ``rule="published"`` takes lengths as they are, as the published code does.

    ``"random"`` is a control: any effect it has cannot be due to which bars were selected. It
    draws without replacement from torch's global generator, so that a seed fixes the draws.

    References
    ----------
    Kudriashov et al. 2025, *Shrink the longest*, arXiv 2501.05502.

    Examples
    --------
    >>> import torch
    >>> regularizer = BarcodeRegularizer()
    >>> embeddings = torch.randn(8, 4, requires_grad=True)
    >>> out = regularizer(embeddings, labels=torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]))
    >>> out.loss.backward()
    >>> out.n_bars
    tensor([3, 3])
    """

    def __init__(
        self,
        selection: str = "prominent",
        *,
        weight: float = 1.0,
        rule: str = "ratio",
        homology_dim: int = 0,
        unselected_l2: float = 0.0,
    ) -> None:
        super().__init__()
        self.selection = known_name("selection", "selection", selection, SELECTIONS)
        self.weight = check_factor(weight, "weight")  # a tensor to learn would not reach the setter
        self.rule = known_name("rule", "rule", rule, RULES)
        self.homology_dim = whole_number(homology_dim, "homology_dim")
        self.unselected_l2 = check_factor(unselected_l2, "unselected_l2")

    @property
    def weight(self) -> float:
        """λ; it may be set anew between steps, as a schedule does."""
        return self._weight

    @weight.setter
    def weight(self, value: float) -> None:
        self._weight = check_factor(value, "weight")

    @eager
    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> RegularizerOutput:
        """Regularization loss of a batch.

        Parameters
        ----------
        embeddings : Tensor, shape (b, d)
            One row per sample: the paper takes the last layer's [CLS] vectors.
        labels : Tensor of int64, shape (b,), optional
            Class of each row. Rows labelled −100 are left out and have zero gradient, as
            cross_entropy does it. None makes one class, 0, of all rows (regression).

        Returns
        -------
        RegularizerOutput
            ``loss`` in the dtype of `embeddings` (float32 for half precision), always attached to
            their graph, and the entries per class.

        Raises
        ------
        ValueError
            If `embeddings` is not a real, finite matrix with columns, `labels` has another length,
            or holds fractions or negative numbers other than −100.
        """
        embeddings = as_matrix(embeddings, min_columns=1, name="embeddings")
        points, squares = values_and_squares(embeddings, "embeddings")
        classes, of_class = _rows_of_classes(labels, embeddings)
        bars = []
        for rows in of_class:
            if len(rows) == len(points):
                bars.append(self._bars(points, squares, embeddings.dtype))
            else:
                cloud = points[rows]
                one = self._bars(cloud, sum_of_squares(cloud), embeddings.dtype)
                bars.append(one._replace(edges=rows[one.edges]))
        terms = [self._term(one) for one in bars]
        losses, entropies, slopes = zip(*terms, strict=True) if terms else ((), (), ())
        moves = any(len(one.lengths) >= self._least_bars() for one in bars)
        _warn_if_it_stands_still(self, embeddings, moves)
        dtype = np.float64 if embeddings.dtype == torch.float64 else np.float32
        loss = OfEdges.apply(
            embeddings,
            np.array(sum(losses), dtype),
            _joined([one.edges for one in bars], NO_EDGES),
            _joined([one.measured for one in bars], NO_LENGTHS),
            _joined(slopes, NO_LENGTHS),
            partial(self._loss, bars=bars),
        )
        logged = (
            classes,
            np.array(entropies, dtype),
            np.array([len(one.chosen) for one in bars], np.int64),
            np.array([len(one.lengths) for one in bars], np.int64),
        )
        device = embeddings.device
        per_class = [torch.from_numpy(values).to(device) for values in logged]
        lengths = [torch.from_numpy(one.lengths) for one in bars]
        return RegularizerOutput(loss, *per_class, bars=lengths)

    def _bars(self, cloud: np.ndarray, squares: float, dtype: torch.dtype) -> Bars:
        """The bars of one class, whose sum of squares is known, and those that are chosen."""
        if self.homology_dim:
            (births, born), (deaths, died) = loop_edges(cloud, self.homology_dim)
            edges, measured = np.concatenate([deaths, births]), np.concatenate([died, born])
            lengths = died - born
        else:
            edges, measured = minimum_spanning_tree(cloud, squares)
            lengths = measured
            if self.rule != "published":
                lengths = without_rounding(measured, cloud, edges, dtype, squares)
        return Bars(lengths, self._select(lengths), edges, measured)

    def _select(self, lengths: np.ndarray) -> np.ndarray:
        """Positions of the bars whose entropy is taken."""
        if self.selection == "all":
            return np.arange(len(lengths))
        prominent = prominent_positions(lengths, self.rule)
        if self.selection == "random":
            return random_positions(len(lengths), len(prominent))
        return prominent

    def _least_bars(self) -> int:
        """Of a class with a gradient: the rule "ratio" keeps one of two, whose entropy is 0."""
        both = self.selection == "all" or self.rule == "published" or self.unselected_l2
        return 2 if both else 3

    def _term(self, bars: Bars) -> tuple[float, float, np.ndarray]:
        """Loss and entropy of one class, and ∂loss/∂length of each edge."""
        lengths, chosen = bars.lengths, bars.chosen
        entropy, slopes = entropy_and_slopes(lengths, chosen)
        loss, slopes = -self.weight * entropy, -self.weight * slopes
        if self.unselected_l2 and len(chosen) < len(lengths):
            others = np.delete(np.arange(len(lengths)), chosen)
            loss += self.unselected_l2 * lengths[others].mean()
            slopes[others] = self.unselected_l2 / len(others)
        if self.homology_dim:
            slopes = np.concatenate([slopes, -slopes])  # a bar is its death less its birth
        return loss, entropy, slopes

    def _loss(self, embeddings: Tensor, bars: list[Bars]) -> Tensor:
        """The loss by torch, of the bars that are known and chosen."""
        loss = embeddings.new_zeros(())
        for one in bars:
            lengths, kept, m = edge_lengths(embeddings, one.edges), one.chosen, len(one.lengths)
            lengths = lengths[:m] - lengths[m:] if self.homology_dim else lengths
            positive = kept[one.lengths[kept] > NEGLIGIBLE * one.lengths.max(initial=0.0)]
            loss = loss - self.weight * entropy_of(lengths[positive])
            others = np.delete(np.arange(m), kept)
            if self.unselected_l2 and len(others):
                loss = loss + self.unselected_l2 * lengths[others].mean()
        return loss

    def extra_repr(self) -> str:
        names = ("selection", "weight", "rule", "homology_dim", "unselected_l2")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


def _rows_of_classes(
    labels: Tensor | None, embeddings: Tensor
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Classes, ascending, and the numbers of the rows of each; one class, 0, without labels."""
    if labels is None:
        return np.zeros(1, np.int64), [np.arange(len(embeddings))]
    labels = as_tensor(labels, "labels, one whole number per class,")
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"labels must hold one class per row of embeddings; got shape {tuple(labels.shape)} "
            f"beside embeddings of shape {tuple(embeddings.shape)}"
        )
    if labels.is_floating_point():
        raise ValueError(
            f"labels must be whole numbers, one per class; got {labels.dtype}. "
            "For regression pass labels=None: all rows are then one class"
        )
    labels = labels.cpu().numpy()
    if (unknown := (labels < 0) & (labels != IGNORED)).any():
        raise ValueError(
            f"labels must be 0 or more, or {IGNORED} for rows to leave out; got "
            f"{labels[unknown][0]} in {unknown.sum()} row(s)"
        )
    classes = np.unique(labels[labels != IGNORED])
    return classes, [np.flatnonzero(labels == label) for label in classes]


def _joined(parts: Sequence[np.ndarray], none: np.ndarray) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate([none, *parts])
