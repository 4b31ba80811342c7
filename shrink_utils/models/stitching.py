"""Stitched models: the lower layers of one, a map, the upper layers of another.

g_{>m} ∘ φ ∘ f_{≤l} with f the *front* and g the *back*. What a stitch costs, its penalty, is the
stitched model's loss less that of g by itself. Layers, attention masks and heads are the models'
own; nothing of them is changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import (
    BertForMaskedLM,
    BertForSequenceClassification,
    BertLMHeadModel,
    PreTrainedModel,
    get_linear_schedule_with_warmup,
)
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask

from shrink_utils.geometry import affine
from shrink_utils.geometry.maps import Alignment
from shrink_utils.models.encoders import evaluating, seeded
from shrink_utils.names import IGNORED, known_name, require

Batch = Mapping[str, Tensor]  # input_ids and attention_mask (b, t), labels (b, t) or (b,)
Map = Callable[[Tensor], Tensor]  # states (b, t, d_front) → (b, t, d_back)
KINDS = (BertForMaskedLM, BertLMHeadModel, BertForSequenceClassification)
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
MAPS = ("identity", "affine", "trained")
# Of SGD with Nesterov's momentum; the paper's rate of "1.0" is 0.1 in torch's convention.
SGD = {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-3, "nesterov": True}
LONGEST_GRADIENT = 1.0  # a longer one is clipped
ROWS_A_COLUMN = 64  # of a least-squares fit: more sharpen it by less than 2 % of what it leaves
IDENTITY = nn.Identity()


@dataclass(frozen=True)
class Activations:
    """A model, and the states of its layers on fixed batches: computed once, stitched often."""

    model: PreTrainedModel
    batches: list[Batch]  # what it read, with labels
    states: list[tuple[Tensor, ...]]  # per batch, each layer's (b, t, d), the embeddings first
    loss: float  # the model's own mean loss over all predictions, without dropout

    @property
    def depth(self) -> int:
        """Number of the last layer."""
        return len(self.model.base_model.encoder.layer)


class Stitched(NamedTuple):
    """What one stitched model loses on fixed batches."""

    front_layer: int  # l
    back_layer: int  # m
    loss: float  # mean over all predictions
    penalty: float  # `loss` less what the back loses by itself on the same batches


def read_layers(model: PreTrainedModel, batches: Sequence[Batch]) -> Activations:
    """Run a model once over fixed batches and keep the states of all its layers.

    Parameters
    ----------
    model
        `BertForMaskedLM`, `BertLMHeadModel` (as a decoder) or `BertForSequenceClassification`;
        left as it is.
    batches
        Dicts with ``input_ids``, ``attention_mask``, ``labels`` and, for pairs of texts,
        ``token_type_ids``.

    Raises
    ------
    ValueError
        No batches, a model of another kind, or batches where nothing is predicted.

    Examples
    --------
    >>> from shrink_utils.models import load_classifier
    >>> model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    >>> batch = dict(tokenizer(["a text", "another"], return_tensors="pt", padding=True))
    >>> read = read_layers(model, [batch | {"labels": torch.tensor([0, 1])}])
    >>> read.depth
    2
    """
    if not len(batches):
        raise ValueError("batches: none, expected at least one")
    if not isinstance(model, KINDS):
        known = ", ".join(kind.__name__ for kind in KINDS)
        raise ValueError(f"model: cannot cut a {type(model).__name__}, expected one of {known}")
    states = []
    with torch.no_grad(), evaluating(model):
        for batch in batches:
            inputs = {name: batch[name].to(model.device) for name in INPUTS if name in batch}
            found = model.base_model(**inputs, use_cache=False, output_hidden_states=True)
            states.append(tuple(found.hidden_states))  # (b, t, d) each
    read = Activations(model, list(batches), states, loss=float("nan"))
    top = {"front_layer": read.depth, "back_layer": read.depth}
    return replace(read, loss=stitched(read, read, **top).loss)


def stitched(
    front: Activations, back: Activations, phi: Map = IDENTITY, *, front_layer: int, back_layer: int
) -> Stitched:
    """Loss and penalty of g_{>m} ∘ φ ∘ f_{≤l}: exactly 0 for a model and itself, by identity.

    Parameters
    ----------
    front, back
        Of the same batches. Neither model is changed in any way.
    phi
        Takes states (b, t, d) of the front to states of the back.
    front_layer, back_layer
        l and m; 0 is the embedding layer. l = m = 0 takes the front's embeddings and nothing else
        of it, l = m = depth takes everything but the head.

    Raises
    ------
    ValueError
        A layer that a model has not, other texts, or a map to another width than the back's.

    References
    ----------
    Lenc & Vedaldi 2015, *Understanding image representations by measuring their equivariance and
    equivalence*; Bansal, Nakkiran & Barak 2021, *Revisiting model stitching to compare neural
    representations*; on language models, Brown et al. 2023, section 3.

    Examples
    --------
    >>> from shrink_utils.models import load_classifier
    >>> model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    >>> batch = dict(tokenizer(["a text", "another"], return_tensors="pt", padding=True))
    >>> read = read_layers(model, [batch | {"labels": torch.tensor([0, 1])}])
    >>> stitched(read, read, front_layer=1, back_layer=1).penalty
    0.0
    """
    total, count = 0.0, 0
    for logits, targets in _predictions(front, back, phi, front_layer, back_layer):
        total += float(cross_entropy(logits, targets, reduction="sum"))
        count += len(targets)
    if not count:
        raise ValueError(f"batches: no label is predicted, as all of them are {IGNORED}")
    loss = total / count
    return Stitched(front_layer, back_layer, loss, loss - back.loss)


def stitched_logits(
    front: Activations, back: Activations, *, front_layer: int, back_layer: int
) -> Tensor:
    """What a model stitched by identity predicts, (predictions, classes), in the batches' order.

    Parameters and errors are those of `stitched`. A classifier gives a row per text, a language
    model a row per predicted token, which takes memory.

    Examples
    --------
    >>> from shrink_utils.models import load_classifier
    >>> model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    >>> batch = dict(tokenizer(["a text", "another"], return_tensors="pt", padding=True))
    >>> read = read_layers(model, [batch | {"labels": torch.tensor([0, 1])}])
    >>> stitched_logits(read, read, front_layer=0, back_layer=1).shape
    torch.Size([2, 2])
    """
    found = _predictions(front, back, IDENTITY, front_layer, back_layer)
    return torch.cat([logits for logits, _ in found])


def _upper_logits(
    model: PreTrainedModel, states: Tensor, layer: int, batch: Batch
) -> tuple[Tensor, Tensor]:
    """g_{>m}: run what lies above a layer on given states, at the places that are predicted.

    Parameters
    ----------
    model
        As for `read_layers`. Run in the mode it is in: see `evaluating`.
    states
        (b, t, d), in place of what the model's own layer `layer` gives.
    layer
        m, from 0 (all layers lie above) to the depth (only the head does).
    batch
        ``attention_mask`` is applied as the model does, ``labels`` say where it predicts.

    Returns
    -------
    logits, targets
        (predictions, classes), differentiable with respect to `states`, and (predictions,): of a
        classifier one row per text, of a language model one row per predicted token.

    Raises
    ------
    ValueError
        States of another width than the model's.
    """
    config, width = model.config, model.config.hidden_size
    targets = batch["labels"].to(states.device)
    if states.shape[2] != width:
        raise ValueError(
            f"states: {states.shape[2]} wide, the model takes {width}; map them to its width"
        )
    # Of the form that the model's attention wants: causal for a decoder, padding left out.
    given = batch["attention_mask"].to(states.device)
    make = create_causal_mask if config.is_decoder else create_bidirectional_mask
    options = {"past_key_values": None} if config.is_decoder else {}
    mask = make(config=config, inputs_embeds=states, attention_mask=given, **options)
    for block in model.base_model.encoder.layer[layer:]:
        states = block(states, mask)  # (b, t, d)
    if isinstance(model, BertForSequenceClassification):
        return model.classifier(model.dropout(model.base_model.pooler(states))), targets
    if config.is_decoder:  # a place predicts the next token
        targets = torch.cat([targets[:, 1:], targets.new_full((len(targets), 1), IGNORED)], dim=1)
    # The head is most of a small language model: it reads predicted tokens only.
    predicted = targets != IGNORED
    return model.cls(states[predicted]), targets[predicted]


@torch.no_grad()
def _predictions(
    front: Activations, back: Activations, phi: Map, front_layer: int, back_layer: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batch by batch, so that a large vocabulary does not fill the memory."""
    for name, side, layer in (("front", front, front_layer), ("back", back, back_layer)):
        if not 0 <= layer <= side.depth:
            raise ValueError(f"{name}_layer: {layer}, expected 0 to {side.depth}")
    texts = [[batch["input_ids"] for batch in side.batches] for side in (front, back)]
    if len(texts[0]) != len(texts[1]) or not all(map(torch.equal, *texts)):
        raise ValueError(
            "back: it read other texts than the front; read both from the same batches"
        )
    with evaluating(back.model):
        for batch, states in zip(back.batches, front.states, strict=True):
            mapped = phi(states[front_layer].to(back.model.device))
            yield _upper_logits(back.model, mapped, back_layer, batch)


@dataclass(frozen=True, kw_only=True)
class MapTraining:
    """How LayerNorm + affine is trained; the defaults are those of Brown et al. at full scale.

    Raises ValueError for steps below 1 or a negative warm-up.

    Examples
    --------
    >>> MapTraining(steps=100).warmup
    200
    """

    steps: int = 2000
    warmup: int = 200  # the learning rate rises linearly over it, then falls linearly to 0

    def __post_init__(self) -> None:
        require(self, "steps", lambda x: x >= 1, "at least 1")
        require(self, "warmup", lambda x: x >= 0, "0 or more")


def stitch_grid(
    front: Activations,
    back: Activations,
    kind: str,
    *,
    fitted_on: tuple[Activations, Activations] | None = None,
    layers: Sequence[tuple[int, int]] | None = None,
    training: MapTraining | None = None,
    seed: int = 0,
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

    Returns
    -------
    list of Stitched
        One per pair, ordered by front layer.

    Raises
    ------
    ValueError
        An unknown kind, nothing to fit a map to, or what `stitched` refuses.

    Examples
    --------
    >>> from shrink_utils.models import load_classifier
    >>> model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    >>> batch = dict(tokenizer(["a text", "another"], return_tensors="pt", padding=True))
    >>> read = read_layers(model, [batch | {"labels": torch.tensor([0, 1])}])
    >>> len(stitch_grid(read, read, "identity"))
    9
    """
    known_name("kind", "map", kind, MAPS)
    if kind != "identity" and fitted_on is None:
        raise ValueError(f"fitted_on: none, expected activations to fit {kind} maps to")
    if layers is None:
        layers = [(i, j) for i in range(front.depth + 1) for j in range(back.depth + 1)]
    results = []
    for i, pairs in groupby(sorted(layers), key=itemgetter(0)):
        js = [j for _, j in pairs]
        maps: Iterable[Map] = [IDENTITY] * len(js)
        if kind == "affine":
            maps = _least_squares_maps(*fitted_on, front_layer=i, back_layers=js)
        elif kind == "trained":  # one at a time, as they are asked for
            options = {"front_layer": i, "training": training or MapTraining(), "seed": seed}
            maps = (_train_map(*fitted_on, back_layer=m, **options) for m in js)
        for j, phi in zip(js, maps, strict=True):
            results.append(stitched(front, back, phi, front_layer=i, back_layer=j))
    return results


def _least_squares_maps(
    front: Activations, back: Activations, *, front_layer: int, back_layers: Sequence[int]
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


def _tokens(activations: Activations, layer: int) -> Tensor:
    """States of one layer, a row per token, padding left out: (tokens, d)."""
    kept = [
        states[layer][batch["attention_mask"].bool().to(states[layer].device)]
        for batch, states in zip(activations.batches, activations.states, strict=True)
    ]
    return torch.cat(kept)


def _train_map(
    front: Activations,
    back: Activations,
    *,
    front_layer: int,
    back_layer: int,
    training: MapTraining,
    seed: int = 0,
) -> nn.Sequential:
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
        width, width_out = below.shape[2], back.states[0][back_layer].shape[2]
        phi = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width_out))
    phi.to(device, below.dtype)
    parameters = list(phi.parameters())
    optimizer = torch.optim.SGD(parameters, **SGD)
    schedule = get_linear_schedule_with_warmup(optimizer, training.warmup, training.steps)
    # Every batch once in a random order, then again in another, until there are enough.
    n, generator = len(back.batches), torch.Generator().manual_seed(seed)
    rounds = [torch.randperm(n, generator=generator) for _ in range(-(-training.steps // n))]
    with evaluating(back.model), torch.enable_grad():
        for i in torch.cat(rounds)[: training.steps].tolist():
            batch, states = back.batches[i], front.states[i][front_layer].to(device)
            logits, targets = _upper_logits(back.model, phi(states), back_layer, batch)
            loss = cross_entropy(logits, targets, reduction="sum") / len(targets)
            gradients = torch.autograd.grad(loss, parameters)
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient
            nn.utils.clip_grad_norm_(parameters, LONGEST_GRADIENT)
            optimizer.step()
            schedule.step()
    return phi.eval()
