"""The barcode regularizer of *Shrink the longest*: a term to add to any task loss."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from shrink_utils.topology._checks import check_points, result_dtype
from shrink_utils.topology.barcodes import barcode, h0_barcode
from shrink_utils.topology.entropy import persistent_entropy
from shrink_utils.topology.selection import check_rule, prominent_features

SELECTIONS = ("prominent", "all")


class RegularizerOutput(NamedTuple):
    """What one batch gives. Only `loss` carries a gradient; the rest is for logging.

    Attributes
    ----------
    loss : Tensor, shape ()
        To be added to the task loss.
    classes : Tensor, shape (k,)
        The class that each of the following entries is about, ascending.
    entropy : Tensor, shape (k,)
        Persistent entropy (nats) of the selected bars.
    n_features : Tensor of int64, shape (k,)
        Number of selected bars.
    n_bars : Tensor of int64, shape (k,)
        Number of bars.
    """

    loss: Tensor
    classes: Tensor
    entropy: Tensor
    n_features: Tensor
    n_bars: Tensor


class BarcodeRegularizer(nn.Module):
    r"""Raises the persistent entropy of embeddings' barcodes, one barcode a class.

    .. math:: \text{loss} = -\,\text{weight} \cdot \sum_{\text{classes}} E(\text{selected bars})

    Parameters
    ----------
    selection : {"prominent", "all"}
        Take the entropy over the prominent bars, or over every bar.
    weight : float
        Weight λ of the entropy against the task loss.
    rule : {"ratio", "published", "relative_entropy"}
        How prominent bars are told from noise; see `prominent_features`.
    homology_dim : int
        Dimension of the barcode: 0 components (the paper's), 1 loops, …
    unselected_l2 : float
        Adds ``unselected_l2`` × the mean length of the bars left out, summed over classes, not
        multiplied by `weight`. Positive values shorten these bars, which tightens clusters. In
        the published code the extra is on, and enters with the entropy's sign: it lengthens
        them. A negative value here repeats that.

    Raises
    ------
    ValueError
        If an option is outside these values.

    Notes
    -----
    Each class has a term of its own so that classes are not pushed together. A class of fewer
    than two points has no bar, entropy 0 and zero gradient. Sums run in float64.

    References
    ----------
    Kudriashov et al. 2025, *Shrink the longest*, arXiv 2501.05502.

    Examples
    --------
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
        if selection not in SELECTIONS:
            raise ValueError(f"selection must be 'prominent' or 'all'; got {selection!r}")
        check_rule(rule)
        if not (math.isfinite(weight) and math.isfinite(unselected_l2)):
            raise ValueError(
                f"weight and unselected_l2 must be finite; got {weight!r} and {unselected_l2!r}"
            )
        if not isinstance(homology_dim, int) or homology_dim < 0:
            raise ValueError(f"homology_dim must be a whole number ≥ 0; got {homology_dim!r}")
        self.selection = selection
        self.weight = weight
        self.rule = rule
        self.homology_dim = homology_dim
        self.unselected_l2 = unselected_l2

    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> RegularizerOutput:
        """Regularization loss of a batch.

        Parameters
        ----------
        embeddings : Tensor, shape (b, d)
            One row a sample: the paper takes the last layer's [CLS] vectors.
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
        embeddings = check_points(embeddings, name="embeddings")
        if labels is None:
            labels = torch.zeros(len(embeddings), dtype=torch.int64, device=embeddings.device)
            classes = labels.new_zeros(1)
        else:
            labels = _check_labels(labels, embeddings)
            classes = labels.unique()
        loss = embeddings[:0].sum(dtype=torch.float64)  # 0, attached even if there is no class
        entropy, n_features, n_bars = [], [], []
        for label in classes:
            lengths = self._lengths(embeddings[labels == label])
            chosen = self._select(lengths)
            entropy.append(persistent_entropy(lengths[chosen]))
            n_features.append(int(chosen.sum()))
            n_bars.append(len(lengths))
            loss = loss - self.weight * entropy[-1]
            if self.unselected_l2:
                loss = loss + self.unselected_l2 * _mean(lengths[~chosen])
        dtype, device = result_dtype(embeddings), embeddings.device
        return RegularizerOutput(
            loss=loss.to(dtype),
            classes=classes,
            entropy=torch.tensor([e.item() for e in entropy], dtype=dtype, device=device),
            n_features=torch.tensor(n_features, dtype=torch.int64, device=device),
            n_bars=torch.tensor(n_bars, dtype=torch.int64, device=device),
        )

    def _lengths(self, points: Tensor) -> Tensor:
        """Bar lengths (m,) of one class, in float64."""
        points = points.double()
        if self.homology_dim == 0:
            return h0_barcode(points).lengths
        return barcode(points, max_dim=self.homology_dim)[self.homology_dim].lengths

    def _select(self, lengths: Tensor) -> Tensor:
        """Mask (m,) of the bars whose entropy is taken."""
        if self.selection == "all":
            return torch.ones_like(lengths, dtype=torch.bool)
        chosen = torch.zeros_like(lengths, dtype=torch.bool)
        chosen[prominent_features(lengths, rule=self.rule)] = True
        return chosen

    def extra_repr(self) -> str:
        """What ``print(regularizer)`` shows."""
        return (
            f"selection={self.selection!r}, weight={self.weight}, rule={self.rule!r}, "
            f"homology_dim={self.homology_dim}, unselected_l2={self.unselected_l2}"
        )


def _check_labels(labels: Tensor, embeddings: Tensor) -> Tensor:
    labels = torch.as_tensor(labels, device=embeddings.device)
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"labels must hold one class a row of embeddings; got shape {tuple(labels.shape)} "
            f"beside embeddings of shape {tuple(embeddings.shape)}"
        )
    if labels.is_floating_point() or labels.is_complex():
        raise ValueError(
            f"labels must be whole numbers, one a class; got {labels.dtype}. "
            "For regression pass labels=None: all rows are then one class"
        )
    return labels


def _mean(lengths: Tensor) -> Tensor:
    """Mean length, 0 for no bar."""
    return lengths.sum() / max(len(lengths), 1)
