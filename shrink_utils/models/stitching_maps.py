"""Maps from the states of one model to those of another: least squares, and trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from shrink_utils.geometry import Alignment, affine
from shrink_utils.models._loading import seeded
from shrink_utils.models.evaluation import evaluating
from shrink_utils.models.stitching import Reading
from shrink_utils.models.stitching_halves import summed_loss, upper_logits

__all__ = ["LeastSquaresMap", "MapTraining", "NormAffine", "least_squares_maps", "train_map"]

ROWS_A_COLUMN = 64  # of a least-squares fit: more sharpen it by less than 2 % of what it leaves


@dataclass(frozen=True)
class LeastSquaresMap:
    """An affine map that was fitted to token states, applied to (b, t, d_front)."""

    alignment: Alignment

    def __call__(self, states: Tensor) -> Tensor:
        """Map states; in float64, because directions that hardly vary have large factors."""
        mapped = self.alignment(states.flatten(0, 1))
        return mapped.unflatten(0, states.shape[:2]).to(states.dtype)


class NormAffine(nn.Module):
    """LayerNorm, then an affine map: the stitch of Brown et al.

    Parameters
    ----------
    width, width_out : int
        Of the front and of the back.
    """

    def __init__(self, width: int, width_out: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.affine = nn.Linear(width, width_out)

    def forward(self, states: Tensor) -> Tensor:
        """(b, t, width) to (b, t, width_out)."""
        return self.affine(self.norm(states))


@dataclass(frozen=True, kw_only=True)
class MapTraining:
    """How a `NormAffine` is trained; the defaults are those of Brown et al. at full scale.

    Attributes
    ----------
    steps, warmup : int
        The learning rate rises linearly over the warm-up, then falls linearly to 0.
    learning_rate, momentum, weight_decay : float
        Of SGD with Nesterov momentum. The paper's "learning rate 1.0" is 0.1 in torch's convention.
    clip : float
        Largest length of the gradient.

    Raises
    ------
    ValueError
        Steps below 1; a learning rate, momentum or clip that is not above 0; a negative warm-up or
        weight decay.
    """

    steps: int = 2000
    warmup: int = 200
    learning_rate: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-3
    clip: float = 1.0

    def __post_init__(self) -> None:
        if not self.steps >= 1:
            raise ValueError(f"steps: must be at least 1, found {self.steps!r}")
        for name in ("learning_rate", "momentum", "clip"):  # Nesterov's step needs a momentum
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: must be above 0, found {getattr(self, name)!r}")
        for name in ("warmup", "weight_decay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}: must be 0 or more, found {getattr(self, name)!r}")


def least_squares_maps(
    front: Reading, back: Reading, *, front_layer: int, back_layers: Sequence[int]
) -> list[LeastSquaresMap]:
    """Affine maps from one layer of the front, each to another layer of the back.

    Parameters
    ----------
    front, back : Reading
        Of the same batches, best other ones than those that the stitch is judged on. Padding is
        left out of the fit; of more than 64 tokens a column, that many are taken, evenly spaced.
    front_layer : int
    back_layers : sequence of int

    Returns
    -------
    list of LeastSquaresMap
        In the order of `back_layers`.

    Notes
    -----
    Least squares knows each column of the target apart from the others, so that one decomposition
    of the front's states serves all layers of the back.
    """
    states = _tokens(front, front_layer)
    n, most = len(states), ROWS_A_COLUMN * states.shape[1]
    rows = torch.arange(min(n, most)) * n // min(n, most)
    states, targets = states[rows], [_tokens(back, layer)[rows] for layer in back_layers]
    whole = affine(states, torch.cat(targets, dim=1).to(states.device))
    widths = [target.shape[1] for target in targets]
    parts = zip(whole.matrix.split(widths, dim=1), whole.y_mean.split(widths), strict=True)
    return [LeastSquaresMap(Alignment(matrix, whole.x_mean, mean)) for matrix, mean in parts]


def train_map(
    front: Reading,
    back: Reading,
    *,
    front_layer: int,
    back_layer: int,
    training: MapTraining,
    seed: int = 0,
) -> NormAffine:
    """Train LayerNorm + affine between two layers on the loss of the stitched model.

    Parameters
    ----------
    front, back : Reading
        Of the same batches, best other ones than those that the stitch is judged on. One step a
        batch, in a new random order each time round.
    front_layer, back_layer : int
    training : MapTraining
    seed : int
        Of the map's initial weights (torch's default) and of the order.

    Returns
    -------
    NormAffine
        In evaluation mode.

    Notes
    -----
    Gradients are taken with respect to the map alone: parameters, gradients, ``requires_grad`` and
    mode of both models stay what they are. Dropout is off.

    References
    ----------
    Brown et al. 2023, appendix on stitching; Bansal, Nakkiran & Barak 2021.
    """
    device = back.model.device
    with seeded(seed):
        phi = NormAffine(_width(front, front_layer), _width(back, back_layer)).to(device)
    parameters = list(phi.parameters())
    optimizer = torch.optim.SGD(
        parameters,
        lr=training.learning_rate,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
        nesterov=True,
    )
    schedule = get_linear_schedule_with_warmup(optimizer, training.warmup, training.steps)
    order = _order(len(back.batches), training.steps, seed=seed)
    with evaluating(back.model), torch.enable_grad():
        for i in order:
            batch, states = back.batches[i], front.states[i][front_layer].to(device)
            logits = upper_logits(back.model, phi(states), back_layer, batch)
            loss, n = summed_loss(logits, back.model, batch)
            gradients = torch.autograd.grad(loss / n, parameters)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            nn.utils.clip_grad_norm_(parameters, training.clip)
            optimizer.step()
            schedule.step()
    return phi.eval()


def _tokens(reading: Reading, layer: int) -> Tensor:
    """States of one layer, a row a token, padding left out: (tokens, d)."""
    kept = [
        states[layer][batch["attention_mask"].bool().to(states[layer].device)]
        for batch, states in zip(reading.batches, reading.states, strict=True)
    ]
    return torch.cat(kept)


def _width(reading: Reading, layer: int) -> int:
    return reading.states[0][layer].shape[2]


def _order(n: int, steps: int, *, seed: int) -> Iterator[int]:
    """Every batch once in a random order, then again in another, until there are enough."""
    generator = torch.Generator().manual_seed(seed)
    rounds = [torch.randperm(n, generator=generator) for _ in range(-(-steps // n))]
    yield from torch.cat(rounds)[:steps].tolist()
