"""Stitched models: the lower layers of one, a map, the upper layers of another.

g_{>m} ∘ φ ∘ f_{≤l} with f the *front* and g the *back*. What a stitch costs, its penalty, is the
stitched model's loss less that of g by itself. Layers, attention masks and heads are the models'
own; nothing of them is changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import (
    BertForMaskedLM,
    BertForSequenceClassification,
    BertLMHeadModel,
    PreTrainedModel,
)
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask

from shrink_utils.models.encoders import evaluating

Batch = Mapping[str, Tensor]  # input_ids and attention_mask (b, t), labels (b, t) or (b,)
Map = Callable[[Tensor], Tensor]  # states (b, t, d_front) → (b, t, d_back)
KINDS = (BertForMaskedLM, BertLMHeadModel, BertForSequenceClassification)
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
IGNORED = -100  # the label of what is not predicted, in torch and transformers


@dataclass(frozen=True)
class Reading:
    """A model, and the states of its layers on fixed batches: computed once, stitched often."""

    model: PreTrainedModel
    batches: list[Batch]  # what it read, with labels
    states: list[tuple[Tensor, ...]]  # per batch, each layer's (b, t, d), the embeddings first
    loss: float  # the model's own mean loss over all predictions, without dropout

    @property
    def depth(self) -> int:
        """Number of the last layer."""
        return depth_of(self.model)


class Stitched(NamedTuple):
    """What one stitched model loses on fixed batches."""

    front_layer: int  # l
    back_layer: int  # m
    loss: float  # mean over all predictions
    penalty: float  # `loss` less what the back loses by itself on the same batches


def identity(states: Tensor) -> Tensor:
    """The map that changes nothing."""
    return states


def read_layers(model: PreTrainedModel, batches: Sequence[Batch]) -> Reading:
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
        No batches, or a model of another kind.
    """
    if not len(batches):
        raise ValueError("batches: none, expected at least one")
    states = [lower_states(model, batch) for batch in batches]
    reading = Reading(model, list(batches), states, loss=float("nan"))
    top = reading.depth
    return replace(reading, loss=_mean_loss(reading, reading, identity, top, top))


def stitched(
    front: Reading, back: Reading, phi: Map = identity, *, front_layer: int, back_layer: int
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
    """
    _check(front, back, front_layer, back_layer)
    loss = _mean_loss(front, back, phi, front_layer, back_layer)
    return Stitched(front_layer, back_layer, loss, loss - back.loss)


def stitched_logits(front: Reading, back: Reading, *, front_layer: int, back_layer: int) -> Tensor:
    """What a model stitched by identity predicts, (predictions, classes), in the batches' order.

    Parameters and errors are those of `stitched`. A classifier gives a row per text, a language
    model a row per predicted token, which takes memory.
    """
    _check(front, back, front_layer, back_layer)
    stitches = _logits(front, back, identity, front_layer, back_layer)
    return torch.cat([logits for logits, _ in stitches])


def identity_stitches(front: Reading, back: Reading) -> list[Stitched]:
    """Two models of one shape stitched by identity at each pair of equal layers, 0 to the depth.

    Raises
    ------
    ValueError
        Models of different depth, or as `stitched`.
    """
    if front.depth != back.depth:
        raise ValueError(f"back: {back.depth} layers against the front's {front.depth}")
    return [stitched(front, back, front_layer=m, back_layer=m) for m in range(back.depth + 1)]


def depth_of(model: PreTrainedModel) -> int:
    """Number of layers above the embeddings; a ValueError for a model that cannot be cut."""
    if not isinstance(model, KINDS):
        known = ", ".join(kind.__name__ for kind in KINDS)
        raise ValueError(f"model: cannot cut a {type(model).__name__}, expected one of {known}")
    return len(model.base_model.encoder.layer)


@torch.no_grad()
def lower_states(model: PreTrainedModel, batch: Batch) -> tuple[Tensor, ...]:
    """States of every layer, f_{≤l} for l = 0 (the embeddings) … depth: each (b, t, d)."""
    depth_of(model)
    inputs = {name: batch[name].to(model.device) for name in INPUTS if name in batch}
    with evaluating(model):
        trunk = model.base_model
        return tuple(trunk(**inputs, use_cache=False, output_hidden_states=True).hidden_states)


def upper_logits(model: PreTrainedModel, states: Tensor, layer: int, batch: Batch) -> Tensor:
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
    Tensor
        (predictions, classes), differentiable with respect to `states`: of a classifier one row
        per text, of a language model one row per predicted token.

    Raises
    ------
    ValueError
        States of another width than the model's.
    """
    width = model.config.hidden_size
    if states.shape[2] != width:
        raise ValueError(
            f"states: {states.shape[2]} wide, the model takes {width}; map them to its width"
        )
    mask = _attention_mask(model, states, batch)
    for block in model.base_model.encoder.layer[layer:]:
        states = block(states, mask)  # (b, t, d)
    if isinstance(model, BertForSequenceClassification):
        return model.classifier(model.dropout(model.base_model.pooler(states)))
    # The head is most of a small language model: it reads predicted tokens only.
    return model.cls(states[_targets(model, batch) != IGNORED])


def summed_loss(logits: Tensor, model: PreTrainedModel, batch: Batch) -> tuple[Tensor, int]:
    """Summed cross-entropy of `upper_logits`, and the number of predictions it is the sum of."""
    targets = _targets(model, batch)
    targets = targets[targets != IGNORED]
    return cross_entropy(logits, targets, reduction="sum"), len(targets)


def _attention_mask(model: PreTrainedModel, states: Tensor, batch: Batch) -> Tensor | None:
    """Of the form that the model's attention wants: causal for a decoder, padding left out."""
    given = batch.get("attention_mask")
    given = None if given is None else given.to(states.device)
    make = create_causal_mask if model.config.is_decoder else create_bidirectional_mask
    options = {"past_key_values": None} if model.config.is_decoder else {}
    return make(config=model.config, inputs_embeds=states, attention_mask=given, **options)


def _targets(model: PreTrainedModel, batch: Batch) -> Tensor:
    """What each place predicts: of a causal model, the label of the next token."""
    labels = batch["labels"].to(model.device)
    if not model.config.is_decoder:
        return labels
    return torch.cat([labels[:, 1:], labels.new_full((len(labels), 1), IGNORED)], dim=1)


def _mean_loss(front: Reading, back: Reading, phi: Map, front_layer: int, back_layer: int) -> float:
    total, count = 0.0, 0
    for logits, batch in _logits(front, back, phi, front_layer, back_layer):
        loss, n = summed_loss(logits, back.model, batch)
        total, count = total + float(loss), count + n
    return total / count


@torch.no_grad()
def _logits(
    front: Reading, back: Reading, phi: Map, front_layer: int, back_layer: int
) -> Iterator[tuple[Tensor, Batch]]:
    """Batch by batch, so that a large vocabulary does not fill the memory."""
    with evaluating(back.model):
        for batch, states in zip(back.batches, front.states, strict=True):
            mapped = phi(states[front_layer].to(back.model.device))
            yield upper_logits(back.model, mapped, back_layer, batch), batch


def _check(front: Reading, back: Reading, front_layer: int, back_layer: int) -> None:
    for name, reading, layer in (("front", front, front_layer), ("back", back, back_layer)):
        if not 0 <= layer <= reading.depth:
            raise ValueError(f"{name}_layer: {layer}, expected 0 to {reading.depth}")
    texts = [[batch["input_ids"] for batch in reading.batches] for reading in (front, back)]
    if len(texts[0]) != len(texts[1]) or not all(map(torch.equal, *texts)):
        raise ValueError(
            "back: it read other texts than the front; read both from the same batches"
        )
