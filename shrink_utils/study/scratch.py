"""Small transformers with fresh weights: one trunk below a head per objective, or per class.

They are drawn and trained in float64. Training amplifies rounding: in float32 another processor
trains another model, in float64 the same one to some twelve digits, and models this small take
hardly longer.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertLMHeadModel,
    BertModel,
    EncoderDecoderModel,
    PreTrainedModel,
)
from transformers.modeling_outputs import Seq2SeqLMOutput

from shrink_utils.models.encoders import quiet, seeded
from shrink_utils.names import known_name, require
from shrink_utils.text.corpora import SPECIAL_TOKENS
from shrink_utils.text.pairs import ENTAILMENT

OBJECTIVES = ("mlm", "clm", "mt")  # masked LM, causal LM, translation
ACTIVATIONS = ("gelu", "solu")


@dataclass(frozen=True, kw_only=True)
class Trunk:
    """What the models of every objective have in common: BERT's layers.

    Raises ValueError for sizes below 1, heads that do not divide the width, an unknown activation
    and a dropout outside [0, 1).
    """

    width: int  # the feed-forward part is four times as wide
    depth: int
    heads: int
    activation: str = "gelu"  # of the feed-forward part; "solu" comes with its LayerNorm
    dropout: float = 0.1  # of embeddings, attention weights and both outputs of a layer

    def __post_init__(self) -> None:
        require(self, "width depth heads", lambda v: v >= 1, "at least 1")
        if self.width % self.heads:
            raise ValueError(f"width: {self.width} does not divide into {self.heads} heads")
        known_name("activation", "activation", self.activation, ACTIVATIONS)
        require(self, "dropout", lambda v: 0 <= v < 1, "at least 0 and below 1")


class SoLU(nn.Module):
    """The softmax linear unit LayerNorm(x · softmax(x)), over a last axis of the given width.

    Without the LayerNorm the output would be about ``width`` times smaller than the input; the
    published SoLU models have one.

    References
    ----------
    Elhage et al. (2022), *Softmax Linear Units*, Transformer Circuits Thread.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) to (…, width)."""
        return self.norm(x * x.softmax(dim=-1))


class _TranslationModel(EncoderDecoderModel):
    """transformers' EncoderDecoderModel, with the loss computed here.

    The library's own forward pass warns of a change of its version 4.12 whenever it computes a
    loss, at every step.
    """

    def forward(
        self,
        input_ids: Tensor | None = None,  # by name, as the Trainer asks for the names
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        **options: object,
    ) -> Seq2SeqLMOutput:
        """As `EncoderDecoderModel.forward`, the loss being the mean over the labels, in nats.

        Inputs are (b, t), labels (b, u) with −100 where there is none. The decoder reads the labels
        shifted by one place behind the start token, or `decoder_input_ids` (b, u) instead.
        """
        if labels is not None and decoder_input_ids is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        options |= {"attention_mask": attention_mask, "decoder_input_ids": decoder_input_ids}
        output = super().forward(input_ids=input_ids, **options)
        if labels is not None:
            output.loss = cross_entropy(output.logits.flatten(0, 1), labels.flatten())
        return output


def scratch_model(
    trunk: Trunk, objective: str, *, vocab_size: int, max_length: int, seed: int
) -> PreTrainedModel:
    """A model with fresh weights, in evaluation mode, on the CPU, in float64.

    Parameters
    ----------
    trunk
    objective
        ``"mlm"``: a ``BertForMaskedLM``. ``"clm"``: a ``BertLMHeadModel``, whose attention is
        causal. ``"mt"``: a `_TranslationModel` (an ``EncoderDecoderModel``), whose encoder is the
        trunk and whose decoder is a ``BertLMHeadModel`` of the same sizes with cross-attention.
    vocab_size, max_length
        Word-pieces of a `train_tokenizer`, and tokens of the longest input.
    seed
        Of the weights. The trunk's are the same for every objective. The global random state is
        left as it was.

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
    known_name("objective", "objective", objective, OBJECTIVES)
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
        "pad_token_id": SPECIAL_TOKENS.index("[PAD]"),
        "bos_token_id": SPECIAL_TOKENS.index("[CLS]"),
        "eos_token_id": SPECIAL_TOKENS.index("[SEP]"),
        "use_cache": False,
    }
    with _drawing(seed):
        model = _with_head(objective, sizes)
    with _drawing(seed):  # again from the start: the same trunk below every head
        fresh = BertModel(BertConfig(**sizes), add_pooling_layer=False)
    shared = model.encoder if objective == "mt" else model.bert
    shared.load_state_dict(fresh.state_dict())
    if trunk.activation == "solu":
        with _drawing(seed):  # of its dtype; nothing is drawn
            for module in model.modules():
                if hasattr(module, "intermediate_act_fn"):
                    module.intermediate_act_fn = SoLU(4 * trunk.width)
    return model.eval()


def _new_pair_classifier(
    trunk: Trunk, *, vocab_size: int, max_length: int, seed: int
) -> PreTrainedModel:
    """A ``BertForSequenceClassification`` that says whether a text entails another.

    Parameters are those of `scratch_model`; so are mode, device and the global random state.
    Output 0 is entailment.

    Notes
    -----
    Weights are drawn with standard deviation 1/√width. BERT's .02 is .55/√width at its width of
    768; a trunk of 64 that begins at .02 has next to no attention pattern to begin with and, in
    some hundred steps, does not learn to find a word of one text in the other.
    """
    sizes = {"vocab_size": vocab_size, "max_length": max_length}
    config = scratch_model(trunk, "mlm", **sizes, seed=seed).config
    config.initializer_range = trunk.width**-0.5
    config.id2label = dict(enumerate(ENTAILMENT))
    config.label2id = {name: i for i, name in enumerate(ENTAILMENT)}
    with _drawing(seed):
        return BertForSequenceClassification(config).eval()


def _with_new_head(model: PreTrainedModel, *, seed: int) -> PreTrainedModel:
    """A copy of a `_new_pair_classifier` whose pooler and output layer are drawn anew."""
    with _drawing(seed):
        copy = BertForSequenceClassification(model.config)
    copy.bert.embeddings.load_state_dict(model.bert.embeddings.state_dict())
    copy.bert.encoder.load_state_dict(model.bert.encoder.state_dict())
    return copy.eval()


@contextmanager
def _drawing(seed: int) -> Iterator[None]:
    """New weights are drawn in float64, from the seed; the global state is left as it was."""
    found = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with quiet(), seeded(seed):
            yield
    finally:
        torch.set_default_dtype(found)


def _next_token_loss(logits: Tensor, labels: Tensor, **options: object) -> Tensor:
    """Mean over the labels (b, u), in nats; the library's own loss rounds to float32."""
    return cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


def _with_head(objective: str, sizes: dict) -> PreTrainedModel:
    config = BertConfig(**sizes)
    if objective == "mlm":
        return BertForMaskedLM(config)
    if objective == "clm":
        model = BertLMHeadModel(BertConfig(**sizes, is_decoder=True))
        model.loss_function = _next_token_loss
        return model
    decoder = BertLMHeadModel(BertConfig(**sizes, is_decoder=True, add_cross_attention=True))
    model = _TranslationModel(encoder=BertModel(config, add_pooling_layer=False), decoder=decoder)
    model.config.decoder_start_token_id = config.bos_token_id
    model.config.pad_token_id, model.config.eos_token_id = config.pad_token_id, config.eos_token_id
    return model
