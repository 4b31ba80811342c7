"""Small transformers with fresh weights: one trunk, and a head for each of three objectives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertLMHeadModel,
    BertModel,
    PreTrainedModel,
)

from shrink_utils.models._loading import quiet, seeded
from shrink_utils.models.solu import SoLU
from shrink_utils.models.translation import TranslationModel
from shrink_utils.names import unknown_name

__all__ = ["OBJECTIVES", "Trunk", "scratch_model", "trunk_of"]

OBJECTIVES = ("mlm", "clm", "mt")  # masked LM, causal LM, translation
ACTIVATIONS = ("gelu", "solu")


@dataclass(frozen=True, kw_only=True)
class Trunk:
    """What the models of every objective have in common.

    Parameters
    ----------
    width, depth, heads : int
        Of BERT's layers; the feed-forward part is four times as wide.
    activation : str
        Of the feed-forward part: ``"gelu"``, or ``"solu"`` with its LayerNorm.
    dropout : float
        Of embeddings, attention weights and both outputs of a layer.
    """

    width: int
    depth: int
    heads: int
    activation: Literal["gelu", "solu"] = "gelu"
    dropout: float = 0.1

    def __post_init__(self) -> None:
        for name in ("width", "depth", "heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}: must be at least 1, found {getattr(self, name)}")
        if self.width % self.heads:
            raise ValueError(f"width: {self.width} does not divide into {self.heads} heads")
        if self.activation not in ACTIVATIONS:
            raise unknown_name("activation", "activation", self.activation, ACTIVATIONS)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout: must be at least 0 and below 1, found {self.dropout}")


def scratch_model(
    trunk: Trunk,
    objective: str,
    *,
    vocab_size: int,
    max_length: int,
    pad_id: int = 0,
    start_id: int = 2,
    end_id: int = 3,
    seed: int,
) -> PreTrainedModel:
    """A model with fresh weights.

    Parameters
    ----------
    trunk : Trunk
    objective : str
        ``"mlm"``: a ``BertForMaskedLM``. ``"clm"``: a ``BertLMHeadModel``, whose attention is
        causal. ``"mt"``: a `TranslationModel` (an ``EncoderDecoderModel``), whose encoder is the
        trunk and whose decoder is a ``BertLMHeadModel`` of the same sizes with cross-attention.
    vocab_size, max_length : int
        Word-pieces, and tokens of the longest input.
    pad_id, start_id, end_id : int
        Tokens that pad, begin and end a text; the defaults are `train_tokenizer`'s.
    seed : int
        Of the weights. The trunk's are the same for every objective. The global random state is
        left as it was.

    Returns
    -------
    PreTrainedModel
        In evaluation mode, on the CPU, in float32.

    Raises
    ------
    ValueError
        Unknown ``objective``.

    Notes
    -----
    Weights are drawn with BERT's standard deviation of 0.02 times √(768 / width), which is BERT's
    at its own width. With 0.02 at a width of 64 attention begins almost even: some translation
    models then leave the sentence unread, and a SoLU masked LM learns word frequencies only.
    """
    if objective not in OBJECTIVES:
        raise unknown_name("objective", "objective", objective, OBJECTIVES)
    sizes = {
        "vocab_size": vocab_size,
        "hidden_size": trunk.width,
        "num_hidden_layers": trunk.depth,
        "num_attention_heads": trunk.heads,
        "intermediate_size": 4 * trunk.width,
        "hidden_act": "gelu",
        "initializer_range": 0.02 * math.sqrt(768 / trunk.width),  # BERT's, at BERT's own width
        "hidden_dropout_prob": trunk.dropout,
        "attention_probs_dropout_prob": trunk.dropout,
        "max_position_embeddings": max_length,
        "type_vocab_size": 1,
        "pad_token_id": pad_id,
        "bos_token_id": start_id,
        "eos_token_id": end_id,
        "use_cache": False,
    }
    with quiet(), seeded(seed):
        model = _with_head(objective, sizes)
    with quiet(), seeded(seed):  # again from the start: the same trunk below every head
        fresh = BertModel(BertConfig(**sizes), add_pooling_layer=False)
    trunk_of(model).load_state_dict(fresh.state_dict())
    if trunk.activation == "solu":
        _use_solu(model, 4 * trunk.width)
    return model.eval()


def trunk_of(model: PreTrainedModel) -> PreTrainedModel:
    """The ``BertModel`` that the objectives share: of an encoder–decoder, the encoder."""
    return model.encoder if isinstance(model, TranslationModel) else model.bert


def _with_head(objective: str, sizes: dict) -> PreTrainedModel:
    config = BertConfig(**sizes)
    if objective == "mlm":
        return BertForMaskedLM(config)
    if objective == "clm":
        model = BertLMHeadModel(BertConfig(**sizes, is_decoder=True))
        model.loss_type = "ForCausalLM"  # the library would take it too, and say that it guesses
        return model
    decoder = BertLMHeadModel(BertConfig(**sizes, is_decoder=True, add_cross_attention=True))
    model = TranslationModel(encoder=BertModel(config, add_pooling_layer=False), decoder=decoder)
    model.config.pad_token_id = config.pad_token_id
    model.config.decoder_start_token_id = config.bos_token_id
    model.config.eos_token_id = config.eos_token_id
    return model


def _use_solu(model: PreTrainedModel, width: int) -> None:
    """Put SoLU in the place of GeLU; a LayerNorm begins at 1 and 0, so nothing is drawn."""
    for module in model.modules():
        if hasattr(module, "intermediate_act_fn"):
            module.intermediate_act_fn = SoLU(width)
