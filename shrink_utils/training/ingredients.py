"""The barcode reward with one ingredient replaced: its groups of rows, or its choice of bars."""

import math

import torch
from torch import Tensor, nn

from shrink_utils.topology import (
    BarcodeRegularizer,
    RegularizerOutput,
    class_clouds,
    h0_barcode,
    persistent_entropy,
    prominent_features,
)

GROUPS, KEPT = ("batch", "shuffled"), ("longest", "shortest")


class Regrouped(BarcodeRegularizer):
    """Barcodes of other groups of rows than the classes; the bars are the prominent ones.

    Parameters
    ----------
    groups : {"batch", "shuffled"}
        One barcode of the whole batch, or one per class after the labels are dealt anew to the
        rows at random, by torch's global generator.
    weight : float
        As of `BarcodeRegularizer`. A batch has one term where two classes have two.

    Raises
    ------
    ValueError
        `groups` is neither.
    """

    def __init__(self, groups: str, *, weight: float = 1.0) -> None:
        super().__init__(weight=weight)
        if groups not in GROUPS:
            raise ValueError(f"groups must be one of {', '.join(GROUPS)}; got {groups!r}")
        self.groups = groups

    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> RegularizerOutput:
        """As `BarcodeRegularizer`; ``classes`` of the result are the groups."""
        if labels is not None:
            dealt = torch.randperm(len(labels)).to(labels.device)
            labels = None if self.groups == "batch" else labels[dealt]
        return super().forward(embeddings, labels)

    def extra_repr(self) -> str:
        """What ``print(regularizer)`` shows."""
        return f"groups={self.groups!r}, {super().extra_repr()}"


class RankedBars(nn.Module):
    r"""Entropy of the longest or of the shortest bars, one barcode per class.

    Parameters
    ----------
    keep : {"longest", "shortest"}
        The longest ones, `share` of the bars, rounded up; or the shortest ones, as many as the
        rule ``"ratio"`` finds prominent. That rule always takes the longest bars, so "as many
        longest bars as the rule finds" would be ``prominent`` again: a fixed share says what the
        rule's own count adds.
    weight : float
        λ, as of `BarcodeRegularizer`.
    share : float
        Of the bars, for ``"longest"``: in (0, 1].

    Raises
    ------
    ValueError
        `keep` is neither, or `share` outside (0, 1].
    """

    def __init__(self, keep: str, *, weight: float = 1.0, share: float = 0.5) -> None:
        super().__init__()
        if keep not in KEPT:
            raise ValueError(f"keep must be one of {', '.join(KEPT)}; got {keep!r}")
        if not 0 < share <= 1:
            raise ValueError(f"share must be above 0 and at most 1; got {share!r}")
        self.keep, self.weight, self.share = keep, weight, share

    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> RegularizerOutput:
        """As `BarcodeRegularizer`: ``loss`` is minus the weighted sum of the classes' entropies."""
        classes, clouds = class_clouds(embeddings, labels)
        barcodes = [h0_barcode(cloud).lengths for cloud in clouds if len(cloud)]  # (n - 1,) each
        chosen = [self._chosen(lengths) for lengths in barcodes]
        entropies = torch.stack([persistent_entropy(bars) for bars in chosen])  # (k,)
        dtype = torch.float64 if embeddings.dtype == torch.float64 else torch.float32
        to = {"dtype": dtype, "device": embeddings.device}
        return RegularizerOutput(
            loss=(-self.weight * entropies.sum()).to(**to) + embeddings[:0].sum(),
            classes=classes,
            entropy=entropies.detach().to(**to),
            n_features=torch.tensor([len(bars) for bars in chosen]),
            n_bars=torch.tensor([len(lengths) for lengths in barcodes]),
        )

    def _chosen(self, lengths: Tensor) -> Tensor:
        """The bars that count, of all (m,), longest first."""
        if self.keep == "longest":
            return lengths[: math.ceil(self.share * len(lengths))]
        return lengths[len(lengths) - len(prominent_features(lengths.detach())) :]

    def extra_repr(self) -> str:
        """What ``print(regularizer)`` shows."""
        return f"keep={self.keep!r}, weight={self.weight}, share={self.share}"
