"""The barcode regularizer of *Shrink the longest*: a term to add to any task loss."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from shrink_utils.topology.arrays import (
    HALF,
    as_tensor,
    check_matrix,
    coordinates,
    eager,
    in_unit,
    not_finite,
    to_device,
    to_host,
)
from shrink_utils.topology.barcodes import check_dimension, higher_bars
from shrink_utils.topology.edges import LengthsValue
from shrink_utils.topology.entropy import entropy_and_slopes
from shrink_utils.topology.selection import check_rule, prominent_positions, random_positions
from shrink_utils.topology.spanning_tree import minimum_spanning_tree


def class_clouds(embeddings: Tensor, labels: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
    """Classes of a batch, ascending, and the cloud of each: for penalties that are not about bars.

    Parameters
    ----------
    embeddings : Tensor, shape (b, d)
    labels : Tensor of int64, shape (b,), optional
        Class of each row. None makes one class, 0, of all rows (regression).

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
    embeddings = check_matrix(embeddings, name="embeddings")
    if not torch.isfinite(embeddings).all():
        raise ValueError(not_finite(to_host(embeddings.float())[0], "embeddings"))
    if labels is not None:
        labels = check_labels(labels, embeddings).to(embeddings.device)
    wide = (embeddings.cpu() if embeddings.device.type == "mps" else embeddings).double()
    if labels is None:
        return torch.zeros(1, dtype=torch.int64, device=embeddings.device), [wide]
    classes = labels.unique()  # sorted
    return classes, [wide[(labels == label).to(wide.device)] for label in classes]


def rows_of_classes(labels: np.ndarray | None, n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Classes, ascending, and the numbers of the rows of each; one class, 0, without labels."""
    if labels is None:
        return np.zeros(1, np.int64), [np.arange(n)]
    classes = np.unique(labels)
    return classes, [np.flatnonzero(labels == label) for label in classes]


def check_labels(labels: Tensor, embeddings: Tensor) -> Tensor:
    """Return class labels (b,) as a tensor of whole numbers, or raise a ``ValueError``."""
    labels = as_tensor(labels, "labels, one whole number per class,")
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"labels must hold one class per row of embeddings; got shape {tuple(labels.shape)} "
            f"beside embeddings of shape {tuple(embeddings.shape)}"
        )
    if labels.is_floating_point() or labels.is_complex():
        raise ValueError(
            f"labels must be whole numbers, one per class; got {labels.dtype}. "
            "For regression pass labels=None: all rows are then one class"
        )
    return labels


class RegularizerOutput(NamedTuple):
    """What one batch gives. Only `loss` carries a gradient; the rest is for logging."""

    loss: Tensor
    classes: Tensor
    entropy: Tensor
    n_features: Tensor
    n_bars: Tensor


def without_rounding(
    lengths: np.ndarray, points: np.ndarray, edges: np.ndarray, precision: float
) -> np.ndarray:
    """Lengths (m,), longest first, with 0 for edges no longer than `precision` × an end's norm."""
    if len(lengths) == 0 or lengths[-1] > precision * np.linalg.norm(points):  # as nearly always
        return lengths
    norms = np.sqrt(np.einsum("ij,ij->i", points, points))  # (n,)
    return np.where(lengths <= precision * norms[edges].max(axis=1), 0.0, lengths)


def _in_units(points: np.ndarray, of_class: list[np.ndarray]) -> tuple[np.ndarray, list[float]]:
    """The cloud with each class in a unit of its own (see `in_unit`), and these units."""
    if len(of_class) == 1:
        points, unit = in_unit(points)
        return points, [unit]
    scaled = [in_unit(points[rows]) for rows in of_class]
    if any(unit != 1.0 for _, unit in scaled):
        points = points.copy()  # it may be the caller's own memory
        for rows, (cloud, _) in zip(of_class, scaled, strict=True):
            points[rows] = cloud
    return points, [unit for _, unit in scaled]


class ClassTerm(NamedTuple):
    """One class's part of the loss, and how it changes with the lengths of edges."""

    loss: float
    entropy: float
    n_features: int
    n_bars: int
    edges: np.ndarray
    lengths: np.ndarray
    slopes: np.ndarray


def regularizer_output(
    embeddings: Tensor, points: np.ndarray, classes: np.ndarray, terms: list[ClassTerm]
) -> RegularizerOutput:
    """Sum of the classes' terms as a differentiable scalar, and the entries per class."""
    dtype = np.float64 if embeddings.dtype == torch.float64 else np.float32
    loss = np.array(sum(term.loss for term in terms), dtype)
    return RegularizerOutput(
        loss=LengthsValue.apply(embeddings, loss, points, *_joined(terms)),
        classes=to_device(classes, embeddings),
        entropy=to_device(np.array([term.entropy for term in terms], dtype), embeddings),
        n_features=to_device(np.array([t.n_features for t in terms], np.int64), embeddings),
        n_bars=to_device(np.array([t.n_bars for t in terms], np.int64), embeddings),
    )


def _joined(terms: list[ClassTerm]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges, lengths and slopes of all terms."""
    if len(terms) == 1:
        return terms[0].edges, terms[0].lengths, terms[0].slopes
    none = np.empty(0)
    return (
        np.concatenate([np.empty((0, 2), np.int64), *(term.edges for term in terms)]),
        np.concatenate([none, *(term.lengths for term in terms)]),
        np.concatenate([none, *(term.slopes for term in terms)]),
    )


SELECTIONS = ("prominent", "all", "random")


def check_selection(selection: str) -> str:
    """Return the name of a selection, or raise a ``ValueError``."""
    if selection not in SELECTIONS:
        names = ", ".join(map(repr, SELECTIONS))
        raise ValueError(f"selection must be one of {names}; got {selection!r}")
    return selection


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


def precision_of(dtype: torch.dtype) -> float:
    """The share of its norm by which a vector of this dtype may differ from an equal one.

    A vector of half precision was rounded once: eps. One that a network computed has gathered
    errors of several units in the last place: 16 eps.
    """
    eps = torch.finfo(dtype).eps if dtype.is_floating_point else torch.finfo(torch.float64).eps
    return eps if dtype in HALF else 16 * eps


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
    rule : {"ratio", "published", "relative_entropy"}
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
    than two points has no bar, entropy 0 and zero gradient. Sums run in float64.

    Points that differ by rounding alone count as equal, and equal points have a bar of length 0.
    That is a bar of H0 no longer than 16 eps, of the dtype of `embeddings`, times the norm of the
    longer of its ends (eps in half precision, where vectors are rounded once). Without it, one
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
        self.selection = selection
        self.weight = weight
        self.rule = rule
        self.homology_dim = homology_dim
        self.unselected_l2 = unselected_l2

    def __setattr__(self, name: str, value: object) -> None:
        """Check an option whenever it is set, as a schedule of the weight does between steps."""
        super().__setattr__(name, OPTIONS[name](value) if name in OPTIONS else value)

    @eager
    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> RegularizerOutput:
        """Regularization loss of a batch.

        Parameters
        ----------
        embeddings : Tensor, shape (b, d)
            One row per sample: the paper takes the last layer's [CLS] vectors.
        labels : Tensor of int64, shape (b,), optional
            Class of each row. None makes one class, 0, of all rows (regression).

        Returns
        -------
        RegularizerOutput
            ``loss`` in the dtype of `embeddings` (float32 for half precision), always attached to
            their graph, and the entries per class.

        Raises
        ------
        ValueError
            If `embeddings` is not a real, finite matrix, `labels` has another length, or holds
            fractions.
        """
        embeddings = check_matrix(embeddings, name="embeddings")
        beside = [] if labels is None else [check_labels(labels, embeddings)]
        points, given = coordinates(embeddings, *beside, name="embeddings")
        classes, of_class = rows_of_classes(given[0] if given else None, len(points))
        points, units = _in_units(points, of_class)
        precision = 0.0 if self.rule == "published" else precision_of(embeddings.dtype)
        terms = [
            self._term(points, rows, unit, precision)
            for rows, unit in zip(of_class, units, strict=True)
        ]
        return regularizer_output(embeddings, points, classes, terms)

    def _term(
        self, points: np.ndarray, rows: np.ndarray, unit: float, precision: float
    ) -> ClassTerm:
        """The term of one class."""
        cloud = points if len(rows) == len(points) else points[rows]
        bars, edges, lengths = self._bars(cloud)
        if self.homology_dim == 0:
            bars = without_rounding(bars, cloud, edges, precision)
        loss, entropy, n_chosen, slopes = self._loss_of_bars(bars * unit)
        if self.homology_dim:
            slopes = np.concatenate([slopes, -slopes])  # a bar is its death less its birth
        return ClassTerm(loss, entropy, n_chosen, len(bars), rows[edges], lengths, slopes)

    def _bars(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Bar lengths (m,), and edges with their lengths: the bars' deaths, then any births."""
        if self.homology_dim == 0:
            edges, lengths = minimum_spanning_tree(points)
            return lengths, edges, lengths
        (birth_edges, births), (death_edges, deaths) = higher_bars(points, self.homology_dim)
        edges = np.concatenate([death_edges, birth_edges])
        return deaths - births, edges, np.concatenate([deaths, births])

    def _select(self, lengths: np.ndarray) -> np.ndarray:
        """Positions of the bars whose entropy is taken."""
        if self.selection == "all":
            return np.arange(len(lengths))
        prominent = prominent_positions(lengths, self.rule)
        if self.selection == "random":
            return random_positions(len(lengths), len(prominent))
        return prominent

    def _loss_of_bars(self, lengths: np.ndarray) -> tuple[float, float, int, np.ndarray]:
        """Loss of one class, entropy and number of the bars selected, and ∂loss/∂length (m,)."""
        chosen = self._select(lengths)
        entropy, entropy_slopes = entropy_and_slopes(lengths[chosen])
        loss, slopes = -self.weight * entropy, np.zeros(len(lengths))
        n_others = len(lengths) - len(chosen)
        if self.unselected_l2 and n_others:
            slopes[:] = self.unselected_l2 / n_others
            loss += self.unselected_l2 * np.delete(lengths, chosen).mean()
        slopes[chosen] = -self.weight * entropy_slopes
        return loss, entropy, len(chosen), slopes

    def extra_repr(self) -> str:
        return (
            f"selection={self.selection!r}, weight={self.weight}, rule={self.rule!r}, "
            f"homology_dim={self.homology_dim}, unselected_l2={self.unselected_l2}"
        )


OPTIONS = {
    "selection": check_selection,
    "rule": check_rule,
    "weight": partial(check_factor, name="weight"),
    "unselected_l2": partial(check_factor, name="unselected_l2"),
    "homology_dim": partial(check_dimension, name="homology_dim"),
}
