"""What all penalties share: a term a class, its weight, and what is handed back."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from shrink_utils.topology import class_clouds

__all__ = ["ClassPenalty", "PenaltyOutput", "centred"]


class PenaltyOutput(NamedTuple):
    """What one batch gives. Only `loss` carries a gradient; the rest is for logging.

    Attributes
    ----------
    loss : Tensor, shape ()
        To be added to the task loss: the weight times the sum of `values`.
    classes : Tensor, shape (k,)
        The class that each of the values is about, ascending.
    values : Tensor, shape (k,)
        The penalized quantity of each class: lower is more isotropic.
    """

    loss: Tensor
    classes: Tensor
    values: Tensor


class ClassPenalty(nn.Module):
    r"""Base of the penalties: :math:`\text{loss} = \text{weight} \cdot \sum_c \text{value}_c`.

    A subclass says in `_values` what is penalized.

    Parameters
    ----------
    weight : float
        Weight λ of the penalty against the task loss.

    Raises
    ------
    ValueError
        If the weight is not finite.

    Notes
    -----
    As in `BarcodeRegularizer`, each class has a term of its own so that classes are not pushed
    together, and a class of fewer than two rows has value 0 and zero gradient. Sums run in float64.
    """

    def __init__(self, *, weight: float = 1.0) -> None:
        super().__init__()
        if not math.isfinite(weight):
            raise ValueError(f"weight must be finite; got {weight!r}")
        self.weight = weight

    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> PenaltyOutput:
        """Penalty of a batch.

        Parameters
        ----------
        embeddings : Tensor, shape (b, d)
            One row a sample.
        labels : Tensor of int64, shape (b,), optional
            Class of each row. None makes one class, 0, of all rows (regression).

        Returns
        -------
        PenaltyOutput
            ``loss`` in the dtype of `embeddings` (float32 for half precision), always attached to
            their graph, and the entries per class.

        Raises
        ------
        ValueError
            If `embeddings` is not a real, finite matrix, `labels` has another length, or holds
            fractions.
        """
        classes, clouds = class_clouds(embeddings, labels)
        values = torch.zeros(len(clouds), dtype=torch.float64, device=_device(clouds))  # (k,)
        large = [c for c, cloud in enumerate(clouds) if len(cloud) > 1]
        if large:
            values[large] = torch.stack(self._values([clouds[c] for c in large]))
        dtype = torch.float64 if embeddings.dtype == torch.float64 else torch.float32
        loss = (self.weight * values.sum()).to(dtype).to(embeddings.device)
        return PenaltyOutput(
            loss=loss + embeddings[:0].sum(),  # adds 0: attached even if no class has a value
            classes=classes,
            values=values.detach().to(dtype).to(embeddings.device),
        )

    def _values(self, clouds: list[Tensor]) -> list[Tensor]:
        """The penalized quantity () of each cloud (n, d), float64, n ≥ 2."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """What ``print(penalty)`` shows."""
        return f"weight={self.weight}"


def centred(cloud: Tensor) -> Tensor:
    """Subtract the mean row. Equal rows give exact zeros, and large offsets cost no digits."""
    shifted = cloud - cloud[0]
    return shifted - shifted.mean(dim=0)


def _device(clouds: list[Tensor]) -> torch.device | None:
    return clouds[0].device if clouds else None
