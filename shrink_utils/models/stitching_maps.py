"""Maps from the states of one model to those of another, and stitches by them at many layers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter

import torch
from torch import Tensor, nn
from transformers import get_linear_schedule_with_warmup

from shrink_utils.geometry import Alignment, affine
from shrink_utils.models.encoders import evaluating, seeded
from shrink_utils.models.stitching import (
    Map,
    Reading,
    Stitched,
    identity,
    stitched,
    summed_loss,
    upper_logits,
)
from shrink_utils.names import unknown_name

MAPS = ("identity", "affine", "trained")
ROWS_A_COLUMN = 64  # of a least-squares fit: more sharpen it by less than 2 % of what it leaves


@dataclass(frozen=True, kw_only=True)
class MapTraining:
    """How a `NormAffine` is trained; the defaults are those of Brown et al. at full scale.

    Raises ValueError for steps below 1; a learning rate, momentum or clip that is not above 0; a
    negative warm-up or weight decay.
    """

    steps: int = 2000
    warmup: int = 200  # the learning rate rises linearly over it, then falls linearly to 0
    learning_rate: float = 0.1  # of SGD; the paper's "1.0" is 0.1 in torch's convention
    momentum: float = 0.9  # Nesterov's
    weight_decay: float = 1e-3
    clip: float = 1.0  # largest length of the gradient

    def __post_init__(self) -> None:
        if not self.steps >= 1:
            raise ValueError(f"steps: must be at least 1, found {self.steps!r}")
        for name in ("learning_rate", "momentum", "clip"):  # Nesterov's step needs a momentum
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}: must be above 0, found {getattr(self, name)!r}")
        for name in ("warmup", "weight_decay"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}: must be 0 or more, found {getattr(self, name)!r}")


class NormAffine(nn.Module):
    """LayerNorm, then an affine map: the stitch of Brown et al., (b, t, width) to width_out."""

    def __init__(self, width: int, width_out: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.affine = nn.Linear(width, width_out)

    def forward(self, states: Tensor) -> Tensor:
        """(b, t, width) to (b, t, width_out)."""
        return self.affine(self.norm(states))


def stitch_grid(
    front: Reading,
    back: Reading,
    kind: str,
    *,
    fitted_on: tuple[Reading, Reading] | None = None,
    layers: Sequence[tuple[int, int]] | None = None,
    training: MapTraining | None = None,
    seed: int = 0,
    on_stitch: Callable[[], object] | None = None,
) -> list[Stitched]:
    """Stitch every layer of one model to every layer of another.

    Parameters
    ----------
    front, back
        Of the batches that stitches are judged on.
    kind : {"identity", "affine", "trained"}
        Nothing (models of one width), least squares on token states, or LayerNorm + affine trained
        on the loss of the stitched model.
    fitted_on
        Front and back read on the batches that maps are fitted to. Not for "identity".
    layers
        Pairs (front layer, back layer); all of them by default.
    training, seed
        Of "trained" maps; the training is that of the paper by default.
    on_stitch
        Called after each stitch, as for a progress bar.

    Returns
    -------
    list of Stitched
        One per pair, ordered by front layer.

    Raises
    ------
    ValueError
        An unknown kind, nothing to fit a map to, or what `stitched` refuses.
    """
    if kind not in MAPS:
        raise unknown_name("kind", "map", kind, MAPS)
    if kind != "identity" and fitted_on is None:
        raise ValueError(f"fitted_on: none, expected readings to fit {kind} maps to")
    if layers is None:
        layers = [(i, j) for i in range(front.depth + 1) for j in range(back.depth + 1)]
    results = []
    for i, pairs in groupby(sorted(layers), key=itemgetter(0)):
        js = [j for _, j in pairs]
        maps = _maps(kind, fitted_on, i, js, training or MapTraining(), seed)
        for j, phi in zip(js, maps, strict=True):
            results.append(stitched(front, back, phi, front_layer=i, back_layer=j))
            if on_stitch is not None:
                on_stitch()
    return results


def _maps(
    kind: str,
    fitted_on: tuple[Reading, Reading] | None,
    front_layer: int,
    back_layers: Sequence[int],
    training: MapTraining,
    seed: int,
) -> Iterable[Map]:
    """The maps from one layer of the front; trained ones one at a time, as they are asked for."""
    if kind == "identity":
        return [identity] * len(back_layers)
    if kind == "affine":
        return least_squares_maps(*fitted_on, front_layer=front_layer, back_layers=back_layers)
    options = {"front_layer": front_layer, "training": training, "seed": seed}
    return (train_map(*fitted_on, back_layer=j, **options) for j in back_layers)


def least_squares_maps(
    front: Reading, back: Reading, *, front_layer: int, back_layers: Sequence[int]
) -> list[Map]:
    """Affine maps from one layer of the front, each to another layer of the back.

    Parameters
    ----------
    front, back
        Of the same batches, best other ones than those that the stitch is judged on. Padding is
        left out of the fit; of more than 64 tokens per column, that many are taken, evenly spaced.

    Notes
    -----
    Least squares fits each column of the target independently, so that one decomposition of the
    front's states serves all layers of the back.
    """
    states = _tokens(front, front_layer)
    n, most = len(states), ROWS_A_COLUMN * states.shape[1]
    rows = torch.arange(min(n, most)) * n // min(n, most)
    states, targets = states[rows], [_tokens(back, layer)[rows] for layer in back_layers]
    whole = affine(states, torch.cat(targets, dim=1).to(states.device))
    widths = [target.shape[1] for target in targets]
    parts = zip(whole.matrix.split(widths, dim=1), whole.y_mean.split(widths), strict=True)
    return [partial(_mapped, Alignment(matrix, whole.x_mean, mean)) for matrix, mean in parts]


def _mapped(alignment: Alignment, states: Tensor) -> Tensor:
    """Map (b, t, d_front); in float64, because directions that hardly vary have large factors."""
    return alignment(states.flatten(0, 1)).unflatten(0, states.shape[:2]).to(states.dtype)


def _tokens(reading: Reading, layer: int) -> Tensor:
    """States of one layer, a row per token, padding left out: (tokens, d)."""
    kept = [
        states[layer][batch["attention_mask"].bool().to(states[layer].device)]
        for batch, states in zip(reading.batches, reading.states, strict=True)
    ]
    return torch.cat(kept)


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

    Gradients are taken with respect to the map alone: parameters, gradients, ``requires_grad`` and
    mode of both models stay what they are. Dropout is off; the map ends in evaluation mode.

    Parameters
    ----------
    front, back
        Of the same batches, best other ones than those that the stitch is judged on. One step per
        batch, in a new random order each time round.
    seed
        Of the map's initial weights (torch's default) and of the order.

    References
    ----------
    Brown et al. 2023, appendix on stitching; Bansal, Nakkiran & Barak 2021.
    """
    device = back.model.device
    below = front.states[0][front_layer]
    with seeded(seed):
        phi = NormAffine(below.shape[2], back.states[0][back_layer].shape[2])
    phi.to(device, below.dtype)
    parameters = list(phi.parameters())
    optimizer = torch.optim.SGD(
        parameters,
        lr=training.learning_rate,
        momentum=training.momentum,
        weight_decay=training.weight_decay,
        nesterov=True,
    )
    schedule = get_linear_schedule_with_warmup(optimizer, training.warmup, training.steps)
    with evaluating(back.model), torch.enable_grad():
        for i in _order(len(back.batches), training.steps, seed=seed):
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


def _order(n: int, steps: int, *, seed: int) -> list[int]:
    """Every batch once in a random order, then again in another, until there are enough."""
    generator = torch.Generator().manual_seed(seed)
    rounds = [torch.randperm(n, generator=generator) for _ in range(-(-steps // n))]
    return torch.cat(rounds)[:steps].tolist()
