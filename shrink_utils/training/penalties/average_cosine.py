"""The average cosine as a penalty."""

from __future__ import annotations

import torch
from torch import Tensor

from shrink_utils.training.penalties.class_penalty import ClassPenalty

__all__ = ["AverageCosine"]


class AverageCosine(ClassPenalty):
    r"""Lowers the average cosine between different rows of a class.

    .. math:: \text{value}_c = \frac{1}{n (n - 1)} \sum_{i \ne j} \cos(x_i, x_j)

    Parameters
    ----------
    weight : float
        Weight λ of the penalty against the task loss.

    Notes
    -----
    The value is `shrink_utils.geometry.avg_sim` of the class, in O(n d): with unit rows u,
    :math:`\sum_{i \ne j} u_i \cdot u_j = \|\sum_i u_i\|^2 - \sum_i \|u_i\|^2`. A zero row has no
    direction: its cosines count as 0 and its gradient is 0.

    Gao et al. take all rows of the word embedding matrix and divide by n² instead of n (n − 1).

    References
    ----------
    Gao et al. 2019, *Representation Degeneration Problem in Training Natural Language Generation
    Models* (ICLR), arXiv 1907.12009, the cosine regularization MLE-CosReg.
    """

    def _values(self, clouds: list[Tensor]) -> list[Tensor]:
        return [_average_cosine(cloud) for cloud in clouds]


def _average_cosine(cloud: Tensor) -> Tensor:
    lengths = torch.linalg.vector_norm(cloud, dim=1, keepdim=True)  # (n, 1)
    has_direction = lengths > 0
    # Divided by 1 where the length is 0, so that what `where` leaves out has a finite gradient.
    units = torch.where(has_direction, cloud / lengths.where(has_direction, 1.0), 0.0)  # (n, d)
    n = len(cloud)
    return (units.sum(dim=0).square().sum() - units.square().sum()) / (n * (n - 1))
