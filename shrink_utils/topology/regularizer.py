"""The barcode regularizer of *Shrink the longest*: a term to add to any task loss."""

import math
import warnings
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from shrink_utils.names import IGNORED, known_name
from shrink_utils.topology.arrays import (
    HALF,
    _as_matrix,
    _as_rows,
    _as_tensor,
    _eager,
    _on_float64_device,
    _result_dtype,
    _rounding_of_rows,
    _whole_number,
)
from shrink_utils.topology.barcodes import H0Barcode, barcode, h0_barcode
from shrink_utils.topology.entropy import (
    RULES,
    _prominent_positions,
    _random_positions,
    persistent_entropy,
)

SELECTIONS = ("prominent", "all", "random")


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

    Examples
    --------
    >>> import torch
    >>> classes, clouds = class_clouds(torch.randn(5, 3), torch.tensor([1, 0, 1, -100, 1]))
    >>> classes, [len(cloud) for cloud in clouds]
    (tensor([0, 1]), [1, 3])
    """
    embeddings = _as_matrix(embeddings, min_columns=1, name="embeddings")
    wide = _on_float64_device(embeddings).double()
    _as_rows(embeddings, min_rows=0, name="embeddings")  # refuses NaN and infinity
    if labels is None:
        return torch.zeros(1, dtype=torch.int64, device=embeddings.device), [wide]
    labels = _checked_labels(labels, embeddings)
    classes = labels[labels != IGNORED].unique()
    rows = [(labels == label).nonzero().flatten().to(wide.device) for label in classes]
    return classes.to(embeddings.device), [wide.index_select(0, own) for own in rows]


def _checked_labels(labels: Tensor, embeddings: Tensor) -> Tensor:
    labels = _as_tensor(labels, "labels, one whole number per class,")
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
    labels = labels.long()  # in a byte, −100 is the class 156
    negative = labels[(labels < 0) & (labels != IGNORED)]
    if len(negative):
        raise ValueError(
            f"labels must be 0 or more, or {IGNORED} for rows to leave out; got {negative[0]}"
        )
    return labels


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
    """What one batch gives. Only `loss` carries a gradient; the rest is for logging.

    Examples
    --------
    >>> import torch
    >>> out = BarcodeRegularizer("all")(torch.tensor([[0.0], [1.0], [2.0]]))
    >>> out.n_bars, out.entropy
    (tensor([2]), tensor([0.6931]))
    """

    loss: Tensor  # ()
    classes: Tensor  # (k,), ascending; the other entries are theirs
    entropy: Tensor  # (k,), of the selected bars
    n_features: Tensor  # (k,), how many these are
    n_bars: Tensor  # (k,), how many there are to select from
    # Lengths (n_bars,) of each class's bars, longest first, float64 on the CPU; None where the
    # barcodes are of other groups of rows than the classes.
    bars: list[Tensor] | None


def _check_factor(value: float, name: str) -> float:
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
        # A tensor to learn would not reach the setter.
        self.weight = _check_factor(weight, "weight")
        self.rule = known_name("rule", "rule", rule, RULES)
        self.homology_dim = _whole_number(homology_dim, "homology_dim")
        self.unselected_l2 = _check_factor(unselected_l2, "unselected_l2")

    @property
    def weight(self) -> float:
        """λ; it may be set anew between steps, as a schedule does."""
        return self._weight

    @weight.setter
    def weight(self, value: float) -> None:
        self._weight = _check_factor(value, "weight")

    @_eager
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
        classes, clouds = class_clouds(embeddings, labels)
        embeddings = _as_matrix(embeddings, name="embeddings")
        bars = [self._bars(cloud, embeddings.dtype) for cloud in clouds]
        moves = any(len(lengths) >= self._least_bars() for lengths in bars)
        _warn_if_it_stands_still(self, embeddings, moves)
        chosen = [self._select(lengths.numpy(force=True)) for lengths in bars]
        entropies = [
            persistent_entropy(lengths[kept]) for lengths, kept in zip(bars, chosen, strict=True)
        ]
        # 0, in the graph though there be no class.
        loss = _on_float64_device(embeddings[:0]).sum(dtype=torch.float64)
        for lengths, kept, entropy in zip(bars, chosen, entropies, strict=True):
            loss = loss - self.weight * entropy
            others = np.delete(np.arange(len(lengths)), kept)
            if self.unselected_l2 and len(others):
                loss = loss + self.unselected_l2 * lengths[others].mean()
        dtype, device = _result_dtype(embeddings), embeddings.device
        return RegularizerOutput(
            loss.to(dtype),
            classes,
            torch.tensor([entropy.item() for entropy in entropies], dtype=dtype, device=device),
            torch.tensor([len(kept) for kept in chosen], dtype=torch.int64, device=device),
            torch.tensor([len(lengths) for lengths in bars], dtype=torch.int64, device=device),
            [lengths.detach().cpu() for lengths in bars],
        )

    def _bars(self, cloud: Tensor, dtype: torch.dtype) -> Tensor:
        """Lengths of the bars of one class, longest first; `dtype` is the embeddings'."""
        if self.homology_dim:
            return barcode(cloud, max_dim=self.homology_dim)[self.homology_dim].lengths
        bars = h0_barcode(cloud)
        if self.rule == "published":
            return bars.lengths
        copies = _rounded(bars, cloud, dtype)
        return torch.where(torch.from_numpy(copies).to(cloud.device), 0.0, bars.lengths)

    def _select(self, lengths: np.ndarray) -> np.ndarray:
        """Positions of the bars whose entropy is taken."""
        if self.selection == "all":
            return np.arange(len(lengths))
        prominent = _prominent_positions(lengths, self.rule)
        if self.selection == "random":
            return _random_positions(len(lengths), len(prominent))
        return prominent

    def _least_bars(self) -> int:
        """Of a class with a gradient: the rule "ratio" keeps one of two, whose entropy is 0."""
        both = self.selection == "all" or self.rule == "published" or self.unselected_l2
        return 2 if both else 3

    def extra_repr(self) -> str:
        names = ("selection", "weight", "rule", "homology_dim", "unselected_l2")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)


def _rounded(bars: H0Barcode, cloud: Tensor, dtype: torch.dtype) -> np.ndarray:
    """Which bars (m,) are no longer than rounding of an end explains."""
    points, edges = cloud.numpy(force=True), bars.edges.numpy(force=True)
    allowed = _rounding_of_rows(points, dtype)[edges].max(axis=1, initial=0.0)  # (m,)
    rounded = bars.lengths.numpy(force=True) <= allowed
    if dtype not in HALF or not rounded.any():
        return rounded
    # One massive coordinate is rounded coarsely and says nothing about the others: every one may
    # differ by its own rounding, and by that of float32, whose errors go by the norm.
    eps = torch.finfo(dtype).eps
    first, second = points[edges.T]  # (m, d) each
    of_float32 = 16 * torch.finfo(torch.float32).eps * allowed / eps  # (m,)
    alike = eps * np.maximum(np.abs(first), np.abs(second)) + of_float32[:, None]
    return rounded & (np.abs(first - second) <= alike).all(axis=1)
