"""What the room refuses: the call, of the fixtures that it gets by name, and what its line says."""

from dataclasses import replace

import pytest
import torch
from transformers import (
    BertConfig,
    BertForTokenClassification,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    FunnelConfig,
    FunnelModel,
)

from shrink_utils.models import (
    hidden_states,
    load_encoder,
    pool,
    read_layers,
    stitch_grid,
    stitched,
    token_states,
    word_states,
)
from shrink_utils.models.encoders import load_classifier
from tests.models.conftest import make_batches, make_model, make_reading

TEXTS = ["one text", "and another"]
STATES = (torch.ones(3, 4, 5),) * 2
MASK = torch.tensor([[1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
CLASSIFIER = BertConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=1, vocab_size=9)
OPT = {"hidden_size": 32, "word_embed_proj_dim": 16, "num_hidden_layers": 2, "ffn_dim": 48}
OPT |= {"num_attention_heads": 2}
SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48)
CANINE = {**SMALL, "num_hash_buckets": 64, "downsampling_rate": 2, "local_transformer_stride": 8}
PEGASUS_X = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "block_size": 4}
PEGASUS_X |= {"num_global_tokens": 2}
PEGASUS_X |= {
    f"{half}_{what}": 2
    for half in ("encoder", "decoder")
    for what in ("attention_heads", "ffn_dim")
}
VIT = {**SMALL, "image_size": 32, "patch_size": 16}
WAV2VEC2 = {**SMALL, "conv_dim": [8], "conv_kernel": [4], "conv_stride": [4]}
SIZES = {"d_model": 32, "n_head": 2, "d_head": 16, "d_inner": 32, "block_sizes": [1, 1]}
FUNNEL = FunnelModel(FunnelConfig(vocab_size=376, num_decoder_layers=1, **SIZES))
PAIRED = EncoderDecoderConfig.from_encoder_decoder_configs(CLASSIFIER, CLASSIFIER)


class Slow:
    """A tokenizer that cannot tell where its pieces stand."""

    is_fast, model_max_length = False, 512


def _read(texts=TEXTS, **options):
    return lambda get: hidden_states(get("encoder"), texts, **options)


def _words(texts):
    return lambda get: word_states(get("encoder"), texts)


def _saved(kind="", read=lambda encoder, texts: None, model=None, **config):
    def call(get):
        encoder = load_encoder(get("save_tiny")(kind, model=model, **config))
        return read(encoder, ["the small dog"])

    return call


def _stitch(back=lambda: make_reading("mlm", 0), **layers):
    layers = {"front_layer": 1, "back_layer": 1} | layers
    return lambda _: stitched(make_reading("mlm", 0), back(), **layers)


def _nothing_to_predict(_):
    batches = make_batches("mlm")
    silent = [batch | {"labels": batch["labels"] * 0 - 100} for batch in batches]
    return read_layers(make_model("mlm", 0), silent)


REFUSED = [
    # Texts and how they are read; what is no text: `text.corpora.as_texts`.
    (_read("one text"), "texts: a string"),
    (_words(["a dog", 3]), "texts: item 1 is 3"),
    (_words(["dog \ud83d"]), "half a surrogate pair"),
    (_read(text_pairs=["one"]), "text_pairs: 1 texts beside 2"),
    (_read(text_pairs=[None] * 2), "text_pairs: item 0 is None, expected a string"),
    (_read(layers=[3]), r"layers: \[3\], expected indices out of \(0, 1, 2\)"),
    (_read(layers=[]), r"layers: \[\]"),
    (_read(max_length=513), "max_length: 513, expected 3 to 512"),
    (_read(max_length=2), "max_length: 2"),
    (_read(batch_size=0), "batch_size must be a whole number, 1 or more"),
    (
        lambda get: hidden_states(load_encoder(get("gpt2")), ["one two", "", "one"]),
        "texts: text 1, '', has no token",
    ),
    *(
        (
            _saved("opt", read, **OPT),
            r"layers: of 2 widths \(0: 32, 1: 32, 2: 16\); in Python, read",
        )
        for read in (word_states, hidden_states, token_states)
    ),
    (
        _saved("opt", lambda e, t: hidden_states(e, t, layers=[-1], pooling="first_last"), **OPT),
        "32 and 16 wide",
    ),
    (lambda get: pool(STATES, MASK, pooling="AVG"), "pooling: no pooling 'AVG' .*cls, mean"),
    (lambda get: pool((), MASK, pooling="cls"), "states: empty"),
    (lambda get: pool(STATES, MASK[:, :3], pooling="cls"), r"shape \(3, 3\).*\(3, 4, 5\)"),
    (lambda get: pool(STATES, MASK, pooling="mean"), "attention_mask: row 1 has no token"),
    (_words(["猫は家にいます"] * 3), "100% of their letters are of a script without spaces"),
    (_words(["ᚠᚢᚦ ᚨᚱᚲ"] * 40), "texts: 100% of their pieces are unknown to the tokenizer"),
    (
        lambda get: word_states(replace(get("encoder"), tokenizer=Slow()), ["a dog"]),
        r"cannot tell where.*has a tokenizer\.json",
    ),
    # Models.
    (_saved("vit", **VIT), "no part with layers that reads"),
    (_saved("wav2vec2", **WAV2VEC2), "no part with layers that reads"),
    (
        _saved(read=word_states, model=FUNNEL),
        r"tiny gives 5 layers .*; take a model that has a vector per token",
    ),
    (_saved("canine", hidden_states, **CANINE), "tiny gives .* layers of .*take a model that has"),
    (_saved("pegasus_x", hidden_states, **PEGASUS_X), "tiny gives 2 layers of .*, expected 2 of"),
    *(
        (
            lambda get, n=n: load_classifier("tiny-random", n_labels=n, seed=0),
            "n_labels must be a whole number, 1 or more",
        )
        for n in ("2", 2.0, 0, None)
    ),
    (
        _saved(model=EncoderDecoderModel(PAIRED)),
        r"a class that AutoModel does not read; save the part that .*, such as model\.encoder",
    ),
    # Stitches.
    (_stitch(back_layer=4), "back_layer: 4, expected 0 to 3"),
    (_stitch(lambda: make_reading("mlm", 1, width=8)), "states: 16 wide, the model takes 8"),
    (
        _stitch(lambda: make_reading("mlm", 0, batches=make_batches("mlm")[::-1])),
        "back: it read other texts",
    ),
    (_nothing_to_predict, "no label is predicted"),
    (lambda get: read_layers(make_model("mlm", 0), []), "batches: none"),
    (
        lambda get: read_layers(BertForTokenClassification(CLASSIFIER), make_batches("mlm")),
        "cannot cut a BertForTokenClassification",
    ),
    *(
        (lambda get, kind=kind: stitch_grid(*[make_reading("mlm", 0)] * 2, kind), message)
        for kind, message in {"train": "did you mean 'trained'", "affine": "fitted_on: no"}.items()
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_be_read_or_stitched_is_refused(call, message, request):
    with pytest.raises(ValueError, match=message):
        call(request.getfixturevalue)
