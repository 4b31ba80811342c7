"""Maps between layers for stitching: least squares, trained, and the grid of all pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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
    """LayerNorm, then an affine map, (b, t, width) to (b, t, width_out): Brown et al.'s stitch."""

    def __init__(self, width: int, width_out: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.affine = nn.Linear(width, width_out)

    def forward(self, states: Tensor) -> Tensor:
        return self.affine(self.norm(states))


@dataclass(frozen=True, kw_only=True)
class MapTraining:
    """How a `NormAffine` is trained; the defaults are those of Brown et al. at full scale."""

    steps: int = 2000
    warmup: int = 200  # the learning rate rises linearly, then falls linearly to 0
    learning_rate: float = 0.1  # the paper's "1.0" is 0.1 in torch's convention
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


def least_squares_maps(
    front: Reading, back: Reading, *, front_layer: int, back_layers: Sequence[int]
) -> list[LeastSquaresMap]:
    """Affine maps from one layer of the front, each to another of the `back_layers`.

    The readings are of the same batches, best other ones than those that the stitch is judged on.
    Padding is left out of the fit; of more than 64 tokens per column, that many are taken, evenly
    spaced. One decomposition of the front's states serves all layers of the back.
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
        Of the same batches, best other ones than those that the stitch is judged on. One step per
        batch, in a new random order each time round.
    seed : int
        Of the map's initial weights (torch's default) and of the order.

    Returns
    -------
    NormAffine
        In evaluation mode.

    Notes
    -----
    Gradients are taken with respect to the map alone: parameters, gradients, ``requires_grad`` and
    mode of both models stay what they are. Dropout is off. Brown et al. 2023, appendix on
    stitching; Bansal, Nakkiran & Barak 2021.
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


MAPS = ("identity", "affine", "trained")

LayerPair = tuple[int, int]


def stitch_grid(
    front: Reading,
    back: Reading,
    kind: str,
    *,
    fitted_on: tuple[Reading, Reading] | None = None,
    layers: Sequence[LayerPair] | None = None,
    training: MapTraining | None = None,
    seed: int = 0,
    on_stitch: Callable[[], object] | None = None,
) -> list[Stitched]:
    """Stitch every layer of one model to every layer of another.

    Parameters
    ----------
    front, back : Reading
        Of the batches that stitches are judged on.
    kind : {"identity", "affine", "trained"}
        Nothing (models of one width), least squares on token states, or LayerNorm + affine trained
        on the loss of the stitched model.
    fitted_on : (Reading, Reading), optional
        Of front and back, of the batches that maps are fitted to. Not for "identity".
    layers : sequence of (int, int), optional
        Pairs (front layer, back layer); all of them by default.
    training, seed
        Of "trained" maps; the paper's training by default.
    on_stitch : callable, optional
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
    for (i, j), phi in _maps(kind, fitted_on, sorted(layers), training or MapTraining(), seed):
        results.append(stitched(front, back, phi, front_layer=i, back_layer=j))
        if on_stitch is not None:
            on_stitch()
    return results


def _maps(
    kind: str,
    fitted_on: tuple[Reading, Reading] | None,
    layers: Sequence[LayerPair],
    training: MapTraining,
    seed: int,
) -> Iterator[tuple[LayerPair, Map]]:
    """Each pair of layers with its map, one front layer's maps at a time."""
    back_layers = defaultdict(list)
    for i, j in layers:
        back_layers[i].append(j)
    for i, js in back_layers.items():
        if kind == "identity":
            maps = [identity] * len(js)
        elif kind == "affine":
            maps = least_squares_maps(*fitted_on, front_layer=i, back_layers=js)
        else:
            maps = (
                train_map(*fitted_on, front_layer=i, back_layer=j, training=training, seed=seed)
                for j in js
            )
        for j, phi in zip(js, maps, strict=True):
            yield (i, j), phi
