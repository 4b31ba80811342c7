"""Cut a BERT between two layers: what lies below gives states, what lies above takes them.

The layers, the attention masks and the heads are the model's own; nothing of it is changed.
"""

from __future__ import annotations

from collections.abc import Mapping

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

from shrink_utils.models.evaluation import evaluating

__all__ = ["Batch", "depth_of", "lower_states", "summed_loss", "upper_logits"]

Batch = Mapping[str, Tensor]  # input_ids and attention_mask (b, t), labels (b, t) or (b,)
KINDS = (BertForMaskedLM, BertLMHeadModel, BertForSequenceClassification)
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
IGNORED = -100  # the label of what is not predicted, in torch and transformers


def depth_of(model: PreTrainedModel) -> int:
    """Number of layers above the embeddings.

    Raises
    ------
    ValueError
        A model of a kind that this module cannot cut.
    """
    if not isinstance(model, KINDS):
        known = ", ".join(kind.__name__ for kind in KINDS)
        raise ValueError(f"model: cannot cut a {type(model).__name__}, expected one of {known}")
    return len(model.base_model.encoder.layer)


@torch.no_grad()
def lower_states(model: PreTrainedModel, batch: Batch) -> tuple[Tensor, ...]:
    """States of every layer, f_{≤l} for l = 0 (the embeddings) … depth.

    Parameters
    ----------
    model
        `BertForMaskedLM`, `BertLMHeadModel` or `BertForSequenceClassification`.
    batch
        What the model reads; labels are not looked at.

    Returns
    -------
    tuple of Tensor
        Each (b, t, d), on the model's device.
    """
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
        As for `lower_states`. Run in the mode it is in: see `evaluating`.
    states : Tensor, shape (b, t, d)
        In place of what the model's own layer `layer` gives.
    layer : int
        m, from 0 (all layers lie above) to the depth (only the head does).
    batch
        ``attention_mask`` is applied as the model does, ``labels`` say where it predicts.

    Returns
    -------
    Tensor, shape (predictions, classes)
        Of a classifier one row a text; of a language model one row a token that is predicted.
        Differentiable with respect to `states`.

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
