"""What an arm adds to the task loss, behind `BarcodeRegularizer`'s interface.

``penalty(embeddings, labels).loss`` is added: one term per class, summed. The arms of the ablation
thus differ in what they reward, and in nothing else. First the penalties that know nothing of
topology, then the barcode reward with one ingredient replaced: its groups of rows, or its bars.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from shrink_utils.geometry.isotropy import _between_groups, _participation, _used_share
from shrink_utils.geometry.rows import _centred
from shrink_utils.names import IGNORED, known_name
from shrink_utils.topology import BarcodeRegularizer, class_clouds
from shrink_utils.topology.arrays import (
    _as_matrix,
    _as_tensor,
    _eager,
    _safe_unit,
    _whole_number,
)
from shrink_utils.topology.entropy import _prominent_positions
from shrink_utils.topology.regularizer import (
    RegularizerOutput,
    _check_factor,
    _warn_if_it_stands_still,
)

SHRINKAGE = 0.2  # ζ of IsoScore*: how far a class's covariance is drawn towards the stable one
DIRECTIONS = 256  # K of SIGReg


class _PenaltyOutput(NamedTuple):
    """What one batch gives. Only `loss` carries a gradient; the rest is for logging."""

    loss: Tensor  # (): the weight times the sum of `values`, to be added to the task loss
    classes: Tensor  # (k,): the class of each value, ascending
    values: Tensor  # (k,): the penalized quantity per class: lower is more isotropic


class ClassPenalty(nn.Module):
    r"""Base of the penalties: :math:`\text{loss} = \text{weight} \cdot \sum_c \text{value}_c`.

    A subclass defines in `_value`, or in `_values`, what is penalized.

    `weight`, finite, is λ, that of the penalty against the task loss.

    Notes
    -----
    As in `BarcodeRegularizer`, each class has a term of its own so that classes are not pushed
    together, and a class of fewer than two rows has value 0 and zero gradient; if the first batch
    has nothing else, a warning says so. Sums run in float64.

    Examples
    --------
    >>> import torch
    >>> class MeanSquare(ClassPenalty):
    ...     def _value(self, cloud):
    ...         return cloud.square().mean()
    >>> MeanSquare(weight=0.5)(torch.ones(6, 3), torch.tensor([0, 0, 0, 1, 1, 1])).loss
    tensor(1.)
    """

    least_rows = 2  # of a class that has a gradient
    weight = BarcodeRegularizer.weight  # checked, also when it is set anew between steps

    def __init__(self, *, weight: float = 1.0) -> None:
        super().__init__()
        self.weight = _check_factor(weight, "weight")

    @_eager
    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> _PenaltyOutput:
        """Penalty of a batch.

        Parameters
        ----------
        embeddings : Tensor, shape (b, d)
        labels : Tensor of int64, shape (b,), optional
            Class of each row; rows labelled −100 are left out. None makes one class, 0, of all
            rows (regression).

        Returns
        -------
        _PenaltyOutput
            In the dtype of `embeddings` (float32 for half precision); ``loss`` is always attached
            to their graph.

        Raises
        ------
        ValueError
            `embeddings` is not a real, finite matrix, or `labels` has another length, fractions or
            negative numbers other than −100.
        """
        embeddings = _as_matrix(embeddings, min_columns=1, name="embeddings")
        classes, clouds = class_clouds(embeddings, labels)
        device = clouds[0].device if clouds else None
        values = torch.zeros(len(clouds), dtype=torch.float64, device=device)  # (k,)
        large = [c for c, cloud in enumerate(clouds) if len(cloud) > 1]
        moves = any(len(cloud) >= self.least_rows for cloud in clouds)
        _warn_if_it_stands_still(self, embeddings, moves)
        if large:
            values[large] = torch.stack(self._values([clouds[c] for c in large]))
        dtype = torch.float64 if embeddings.dtype == torch.float64 else torch.float32
        loss = (self.weight * values.sum()).to(dtype).to(embeddings.device)
        return _PenaltyOutput(
            loss=loss + embeddings[:0].sum(),  # adds 0: attached even if no class has a value
            classes=classes,
            values=values.detach().to(dtype).to(embeddings.device),
        )

    def _values(self, clouds: list[Tensor]) -> list[Tensor]:
        return [self._value(cloud) for cloud in clouds]

    def _value(self, cloud: Tensor) -> Tensor:
        """The penalized quantity () of a cloud (n, d), float64, n ≥ 2."""
        raise NotImplementedError


class AverageCosine(ClassPenalty):
    r"""Lowers the average cosine between different rows of a class.

    .. math:: \text{value}_c = \frac{1}{n (n - 1)} \sum_{i \ne j} \cos(x_i, x_j)

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

    Examples
    --------
    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> AverageCosine()(rows).values
    tensor([-0.3333])
    """

    def _value(self, cloud: Tensor) -> Tensor:
        cloud = cloud / _safe_unit(cloud.detach())
        lengths = torch.linalg.vector_norm(cloud, dim=1, keepdim=True)  # (n, 1)
        has_direction = lengths > 0
        # Divided by 1 where the length is 0, so that what `where` leaves out has a finite gradient.
        units = torch.where(has_direction, cloud / lengths.where(has_direction, 1.0), 0.0)  # (n, d)
        n = len(cloud)
        return _between_groups(units.sum(dim=0), units.square().sum()) / (n * (n - 1))


class SpectralEntropy(ClassPenalty):
    r"""Raises the entropy of the singular values of each class's centred rows.

    .. math:: \text{value}_c = -H(p) = \sum_i p_i \ln p_i,
        \qquad p_i = \sigma_i / \textstyle\sum_j \sigma_j

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

    Examples
    --------
    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> SpectralEntropy()(rows).values  # −ln 2
    tensor([-0.6931])
    """

    least_rows = 3  # two have one direction

    def _value(self, cloud: Tensor) -> Tensor:
        sigma = torch.linalg.svdvals(_centred(cloud))  # (min(n, d),), descending
        if len(sigma) == 0 or sigma[0] == 0:
            return cloud.new_zeros(())
        rounding = max(cloud.shape) * torch.finfo(sigma.dtype).eps * sigma[0].detach()
        counted = sigma[sigma > rounding]
        p = counted / counted.sum()
        return (p * p.log()).sum()  # `entropy_of` has other last bits in its gradient


class IsoScoreStar(ClassPenalty):
    r"""Raises the IsoScore* of each class: the share of the dimensions that its variance uses.

    .. math:: \text{value}_c = 1 - \frac{\mathrm{PR}(C) - 1}{d - 1}, \quad
        \mathrm{PR}(C) = \frac{(\mathrm{tr}\, C)^2}{\|C\|_F^2}, \quad
        C = (1 - \zeta)\, C_c + \zeta\, C_\text{stable}

    with C_c the covariance of the rows of class c over its trace, and ζ = .2.

    Parameters
    ----------
    n_features : int, optional
        d, which the first batch tells otherwise. A distributed checkpoint, which is copied into
        place, needs it.
    weight : float
        As of `ClassPenalty`.

    Raises
    ------
    ValueError
        The rows have fewer than two dimensions, or another number of them than `n_features` or the
        rows before.

    Notes
    -----
    A covariance of n < d rows has rank n − 1, which caps its IsoScore: hence the shrinkage. Rudman
    & Eickhoff take the tokens of every layer and compute their C_stable anew each epoch from a
    large sample. Ours costs no pass of its own: ``stable`` (d, d), float64, is the running mean of
    the covariances of the classes, each with the weight of its degrees of freedom, this batch
    included, so that at the first batch it is that batch's own. It therefore lags behind a model
    that moves. In evaluation mode it is used and not changed. It carries no gradient. Where all
    rows seen are equal the value is 0, as is the gradient.

    What is remembered is in the ``state_dict`` and no buffer: an average of weights (EMA, SWA)
    leaves it alone, and ``to_empty`` leaves nothing behind. `reset_parameters` forgets it.

    Traces are ours too. Without them a model can raise the score by shrinking its rows: C is then
    C_stable, which has a high rank, for the most part. Fine-tuning found that way out at weight 1
    (all-MiniLM-L6-v2, 30 steps): variance within classes fell fifty times, to rows hardly told
    apart, and their own IsoScore fell with it.

    References
    ----------
    Rudman & Eickhoff 2024, *Stable Anisotropic Regularization* (ICLR), arXiv 2305.19358; the closed
    form is that of `shrink_utils.geometry.iso_score`.

    Examples
    --------
    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> IsoScoreStar()(rows * torch.tensor([1.0, 0.0])).values  # one of two dimensions
    tensor([1.])
    """

    def __init__(self, *, n_features: int | None = None, weight: float = 1.0) -> None:
        super().__init__(weight=weight)
        self.n_features = None if n_features is None else _whole_number(n_features, "n_features", 2)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Forget all batches."""
        self.stable: Tensor | None = None
        self.degrees = 0  # of freedom behind it: rows − 1, summed over classes and batches

    def get_extra_state(self) -> Tensor:
        """What is remembered, (d + 1, d): ``stable``, and a row of ``degrees``."""
        d = self.n_features or 0
        stable = torch.zeros(d, d, dtype=torch.float64) if self.stable is None else self.stable
        return torch.cat([stable, stable.new_full((1, stable.shape[1]), self.degrees)])

    def set_extra_state(self, state: Tensor) -> None:
        """Remember what `get_extra_state` gave."""
        self.degrees = int(state[-1, 0]) if state.numel() else 0
        self.stable = state[:-1].clone() if self.degrees else None

    def _values(self, clouds: list[Tensor]) -> list[Tensor]:
        d = clouds[0].shape[1]
        if d < 2:
            raise ValueError(f"embeddings must have at least 2 dimensions for IsoScore*; got {d}")
        expected = self.n_features if self.stable is None else len(self.stable)
        if expected not in (None, d):
            raise ValueError(
                f"embeddings must keep the {expected} dimensions of n_features or the batches "
                f"before; got {d}: make one penalty per model"
            )
        covariances, stable, here = [], 0, sum(len(cloud) - 1 for cloud in clouds)
        for x in map(_centred, clouds):
            x = x / _safe_unit(x.detach())
            covariance = x.T @ x / (len(x) - 1)  # (d, d)
            trace = covariance.trace()
            covariances.append(covariance / trace.where(trace > 0, 1.0))
            stable = stable + (len(x) - 1) * covariances[-1].detach()
        stable, degrees = stable / here, self.degrees + here  # of this batch
        if self.stable is not None:
            before = self.stable.to(stable.device)
            stable = before + (stable - before) * (here / degrees)
        if self.training:
            self.stable, self.degrees = stable, degrees
        return [1 - _iso_score((1 - SHRINKAGE) * c + SHRINKAGE * stable) for c in covariances]


class SIGReg(ClassPenalty):
    r"""Draws each class, in a unit of its own, towards an isotropic Gaussian.

    .. math:: \text{value}_c = \frac{1}{K} \sum_{k=1}^{K} n \int_{-5}^{5}
        \Bigl| \frac{1}{n} \sum_j e^{i t \langle a_k, z_j \rangle} - e^{-t^2/2} \Bigr|^2
        e^{-t^2/2} \, dt

    with K = 256 directions a_k drawn anew each time, uniform on the sphere, and z the rows of the
    class less their mean, over the square root of their mean variance per dimension.

    Notes
    -----
    Epps & Pulley's statistic of each projection, by the trapezoid rule on 17 points; linear in the
    number of rows, and no topology in it. Balestriero & LeCun draw the vectors themselves towards
    N(0, I), mean and length included. The standardization is ours: as with the other penalties, a
    class's place and size are not what is penalized. Directions are drawn by torch's global
    generator. Equal rows have value 0 and zero gradient.

    References
    ----------
    Balestriero & LeCun 2025, *LeJEPA* (arXiv 2511.08544), algorithm 1; Epps & Pulley 1983.

    Examples
    --------
    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> SIGReg(weight=0.1)(rows).loss < SIGReg(weight=0.1)(rows * torch.tensor([1.0, 0.0])).loss
    tensor(True)
    """

    def _value(self, cloud: Tensor) -> Tensor:
        x = _centred(cloud)  # (n, d)
        x = x / _safe_unit(x.detach())
        n, d = x.shape
        variance = x.square().sum() / ((n - 1) * d)
        if variance == 0:
            return cloud.new_zeros(())
        drawn = torch.randn(d, DIRECTIONS, dtype=x.dtype, device="cpu").to(x.device)
        z = x @ (drawn / torch.linalg.vector_norm(drawn, dim=0)) / variance.sqrt()  # (n, K)
        t = torch.linspace(0.0, 5.0, 9, dtype=x.dtype, device=x.device)  # the integrand is even
        phase, gaussian = z[:, :, None] * t, torch.exp(-t.square() / 2)
        # |φ − gaussian|², (K, 9)
        apart = (phase.cos().mean(dim=0) - gaussian).square() + phase.sin().mean(dim=0).square()
        return 2 * n * torch.trapezoid(apart * gaussian, t).mean()


def _iso_score(covariance: Tensor) -> Tensor:
    """IsoScore, (); 1 for a covariance that is all zero, where it is undefined."""
    squared_norm = covariance.square().sum()
    varies = squared_norm > 0
    ratio = _participation(covariance.trace(), squared_norm.where(varies, 1.0))
    return torch.where(varies, _used_share(ratio, len(covariance)), 1.0)


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

    Examples
    --------
    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> Regrouped("batch")(rows, torch.tensor([0, 0, 1, 1])).n_bars
    tensor([3])
    """

    def __init__(self, groups: str, *, weight: float = 1.0) -> None:
        super().__init__(weight=weight)
        self.groups = known_name("groups", "groups", groups, ("batch", "shuffled"))

    @_eager
    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> RegularizerOutput:
        """As `BarcodeRegularizer`; ``classes`` of the result are the groups."""
        if labels is None:
            return super().forward(embeddings)
        groups = self._dealt(_as_tensor(labels, "labels"))
        return super().forward(embeddings, groups)._replace(bars=None)

    def _dealt(self, labels: Tensor) -> Tensor:
        """The group of each row; what is no class of each row is left for the door to refuse."""
        if labels.dim() != 1 or labels.is_floating_point():
            return labels
        labels = labels.long().clone()
        counted = (labels != IGNORED).nonzero().flatten()
        dealt = counted[torch.randperm(len(counted), device="cpu").to(labels.device)]
        labels[counted] = labels[dealt]
        return labels.clamp(max=0) if self.groups == "batch" else labels  # what is negative stays


class RankedBars(BarcodeRegularizer):
    r"""Entropy of the longest or of the shortest bars, one barcode per class.

    Parameters
    ----------
    keep : {"longest", "shortest"}
        The longest half of the bars, rounded up; or the shortest ones, as many as the
        rule ``"ratio"`` finds prominent. That rule always takes the longest bars, so "as many
        longest bars as the rule finds" would be ``prominent`` again: a fixed half says what the
        rule's own count adds.
    weight : float
        λ, as of `BarcodeRegularizer`.

    Raises
    ------
    ValueError
        `keep` is neither.

    Examples
    --------
    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> RankedBars("longest")(rows).n_features
    tensor([2])
    """

    def __init__(self, keep: str, *, weight: float = 1.0) -> None:
        super().__init__(weight=weight)
        self.keep = known_name("keep", "bars", keep, ("longest", "shortest"))

    def _select(self, lengths: np.ndarray) -> np.ndarray:
        """Positions of the bars that count, of all (m,), longest first."""
        if self.keep == "longest":
            return np.arange(math.ceil(len(lengths) / 2))
        as_many = len(_prominent_positions(lengths, self.rule))
        return np.arange(len(lengths) - as_many, len(lengths))


PENALTIES: dict[str, type[nn.Module]] = {
    "barcodes": BarcodeRegularizer,
    "cosine": AverageCosine,
    "isoscore": IsoScoreStar,
    "spectral": SpectralEntropy,
    "sigreg": SIGReg,
    "ranked": RankedBars,
    "regrouped": Regrouped,
}
