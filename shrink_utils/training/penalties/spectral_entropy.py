"""The entropy of the singular values as a reward: the logarithm of the effective rank."""

from __future__ import annotations

import torch
from torch import Tensor

from shrink_utils.training.penalties.class_penalty import ClassPenalty, centred

__all__ = ["SpectralEntropy"]


class SpectralEntropy(ClassPenalty):
    r"""Raises the entropy of the singular values of each class's centred rows.

    .. math:: \text{value}_c = -H(p) = \sum_i p_i \ln p_i,
        \qquad p_i = \sigma_i / \textstyle\sum_j \sigma_j

    Parameters
    ----------
    weight : float
        Weight λ of the entropy against the task loss.

    Notes
    -----
    H is the logarithm of `shrink_utils.geometry.effective_rank`: persistent entropy with singular
    values in the place of bar lengths. Its gradient is U diag(∂H/∂σ) Vᵀ with
    :math:`\partial H / \partial \sigma_i = -(\ln p_i + H) / \sum_j \sigma_j`; neither U nor V is
    differentiated, so equal singular values do no harm. Where a singular value is 0, up to
    rounding, 0 · ln 0 = 0 and the gradient, which diverges there, is defined as 0, as it is for
    bars without length. Equal rows therefore stay equal, and a cloud of equal rows has value 0.

    References
    ----------
    Roy & Vetterli 2007, *The effective rank*; with no training in mind.
    """

    def _values(self, clouds: list[Tensor]) -> list[Tensor]:
        return [_negative_entropy(cloud) for cloud in clouds]


def _negative_entropy(cloud: Tensor) -> Tensor:
    sigma = torch.linalg.svdvals(centred(cloud))  # (min(n, d),), descending
    if len(sigma) == 0 or sigma[0] == 0:
        return cloud.new_zeros(())
    rounding = max(cloud.shape) * torch.finfo(sigma.dtype).eps * sigma[0].detach()
    counted = sigma[sigma > rounding]
    p = counted / counted.sum()
    return (p * p.log()).sum()
