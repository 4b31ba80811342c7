"""IsoScore* as a penalty: an IsoScore that small batches can estimate."""

from __future__ import annotations

import torch
from torch import Tensor

from shrink_utils.training.penalties.class_penalty import ClassPenalty, centred

__all__ = ["IsoScoreStar"]


class IsoScoreStar(ClassPenalty):
    r"""Raises the IsoScore* of each class: the share of the dimensions that its variance uses.

    .. math:: \text{value}_c = 1 - \frac{\mathrm{PR}(C) - 1}{d - 1}, \quad
        \mathrm{PR}(C) = \frac{(\mathrm{tr}\, C)^2}{\|C\|_F^2}, \quad
        C = (1 - \zeta)\, C_c + \zeta\, C_\text{stable}

    with C_c the covariance of the rows of class c, over its trace.

    Parameters
    ----------
    weight : float
        Weight λ of the penalty against the task loss.
    shrinkage : float
        ζ, how far the covariance of a class in the batch is drawn towards the stable one:
        0 is the plain IsoScore, below 1.
    unit_trace : bool
        Whether covariances are divided by their traces first; False is the published formula.

    Attributes
    ----------
    stable : Tensor, shape (d, d), float64
        C_stable: mean over the classes of all batches seen in training mode, empty before the
        first; a buffer, so it is a part of the state of the module. It carries no gradient.
    degrees : Tensor of int64, shape ()
        Degrees of freedom behind it: rows − 1, summed over classes and batches.

    Raises
    ------
    ValueError
        If the weight is not finite, `shrinkage` lies outside [0, 1), the rows have fewer than two
        dimensions, or another number of them than the rows before.

    Notes
    -----
    A covariance of n < d rows has rank n − 1, which caps its IsoScore: hence the shrinkage. Rudman
    & Eickhoff take the tokens of every layer and compute their C_stable anew each epoch from a
    large sample. Ours costs no pass of its own: it is the running mean of the covariances of the
    classes, each with the weight of its degrees of freedom, this batch included, so that at the
    first batch it is that batch's own. It therefore lags behind a model that moves. In evaluation
    mode it is used and not changed. Where all rows seen are equal the value is 0, as is the
    gradient.

    Traces are ours too. Without them a model can raise the score by shrinking its rows: C is then
    C_stable, which has a high rank, for the most part. Fine-tuning found that way out at weight 1
    (all-MiniLM-L6-v2, 30 steps): variance within classes fell fifty times, to rows hardly told
    apart, and their own IsoScore fell with it.

    References
    ----------
    Rudman & Eickhoff 2024, *Stable Anisotropic Regularization* (ICLR), arXiv 2305.19358; the closed
    form is that of `shrink_utils.geometry.iso_score`.
    """

    def __init__(
        self, *, weight: float = 1.0, shrinkage: float = 0.2, unit_trace: bool = True
    ) -> None:
        super().__init__(weight=weight)
        if not 0 <= shrinkage < 1:
            raise ValueError(f"shrinkage must be at least 0 and below 1; got {shrinkage!r}")
        self.shrinkage = shrinkage
        self.unit_trace = unit_trace
        self.register_buffer("stable", torch.zeros(0, 0, dtype=torch.float64))
        self.register_buffer("degrees", torch.zeros((), dtype=torch.int64))

    def _values(self, clouds: list[Tensor]) -> list[Tensor]:
        self._check_dimension(clouds[0].shape[1])
        covariances = [_covariance(cloud, unit_trace=self.unit_trace) for cloud in clouds]
        stable, degrees = self._stable_with(covariances, [len(cloud) - 1 for cloud in clouds])
        if self.training:
            self.stable, self.degrees = stable, degrees
        return [
            1 - _iso_score((1 - self.shrinkage) * covariance + self.shrinkage * stable)
            for covariance in covariances
        ]

    def _stable_with(self, covariances: list[Tensor], degrees: list[int]) -> tuple[Tensor, Tensor]:
        """The stable covariance (d, d) and its degrees of freedom, with those of a batch."""
        here = sum(degrees)
        batch = sum(k * c.detach() for k, c in zip(degrees, covariances, strict=True)) / here
        total = self.degrees + here
        if self.degrees == 0:
            return batch, total
        stable = self.stable.to(batch.device)
        return stable + (batch - stable) * (here / float(total)), total

    def _check_dimension(self, d: int) -> None:
        if d < 2:
            raise ValueError(f"embeddings must have at least 2 dimensions for IsoScore*; got {d}")
        if self.degrees > 0 and len(self.stable) != d:
            raise ValueError(
                f"embeddings must keep the {len(self.stable)} dimensions of the batches before; "
                f"got {d}: make a penalty a model"
            )

    def _load_from_state_dict(self, state_dict: dict, prefix: str, *args) -> None:
        """A stored covariance brings its size along."""
        if f"{prefix}stable" in state_dict:
            self.stable = torch.empty_like(state_dict[f"{prefix}stable"])
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        """What ``print(penalty)`` shows."""
        return f"{super().extra_repr()}, shrinkage={self.shrinkage}, unit_trace={self.unit_trace}"


def _covariance(cloud: Tensor, *, unit_trace: bool) -> Tensor:
    x = centred(cloud)
    covariance = x.T @ x / (len(x) - 1)  # (d, d)
    if not unit_trace:
        return covariance
    trace = covariance.trace()
    return covariance / trace.where(trace > 0, 1.0)


def _iso_score(covariance: Tensor) -> Tensor:
    """(PR − 1) / (d − 1), (); 1 for a covariance that is all zero, where it is undefined."""
    squared_norm = covariance.square().sum()
    varies = squared_norm > 0
    ratio = covariance.trace().square() / squared_norm.where(varies, 1.0)
    return torch.where(varies, (ratio - 1) / (len(covariance) - 1), 1.0)
