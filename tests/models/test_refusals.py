"""What the room refuses: the call, of fixtures that it gets by name, and what its line names."""

from dataclasses import replace

import pytest
import torch
from transformers import BertConfig, BertForTokenClassification, FunnelConfig, FunnelModel

from shrink_utils.models import (
    hidden_states,
    load_classifier,
    load_encoder,
    pool,
    read_layers,
    stitch_grid,
    stitched,
    token_states,
    word_states,
)
from tests.models.conftest import make_batches, make_model, make_reading

TEXTS = ["one text", "and another"]
STATES = (torch.ones(3, 4, 5),) * 2
MASK = torch.tensor([[1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]])
CLASSIFIER = BertConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=1, vocab_size=9)
OPT = {"hidden_size": 32, "word_embed_proj_dim": 16, "num_hidden_layers": 2, "ffn_dim": 48}
OPT |= {"num_attention_heads": 2}
SIZES = {"d_model": 32, "n_head": 2, "d_head": 16, "d_inner": 32, "block_sizes": [1, 1]}
FUNNEL = FunnelModel(FunnelConfig(vocab_size=376, num_decoder_layers=1, **SIZES))


class Slow:
    """A tokenizer that cannot tell where its pieces stand."""

    is_fast, model_max_length = False, 512


def _read(texts=TEXTS, **options):
    return lambda get: hidden_states(get("encoder"), texts, **options)


def _words(texts):
    return lambda get: word_states(get("encoder"), texts)


def _saved(kind="", read=hidden_states, model=None, **config):
    def call(get):
        return read(load_encoder(get("save_tiny")(kind, model=model, **config)), ["the small dog"])

    return call


def _stitch(back=lambda: make_reading("mlm", 0), **layers):
    layers = {"front_layer": 1, "back_layer": 1} | layers
    return lambda _: stitched(make_reading("mlm", 0), back(), **layers)


def _nothing_to_predict(_):
    batches = make_batches("mlm")
    silent = [batch | {"labels": batch["labels"] * 0 - 100} for batch in batches]
    return read_layers(make_model("mlm", 0), silent)


def _grid(kind):
    return lambda _: stitch_grid(*[make_reading("mlm", 0)] * 2, kind)


REFUSED = [
    (_read("one text"), ["texts"]),
    (_words(["a dog", 3]), ["texts", "3"]),
    (_read(text_pairs=["one"]), ["text_pairs", "1", "2"]),
    (_read(text_pairs=[None] * 2), ["text_pairs", "None"]),
    (_read(layers=[3]), ["layers", "[3]"]),
    (_read(layers=[]), ["layers", "[]"]),
    (_read(max_length=513), ["max_length", "513", "512"]),
    (_read(max_length=2), ["max_length", "2"]),
    (_read(text_pairs=TEXTS, max_length=4), ["max_length", "4", "5 to 512"]),
    (_read(batch_size=0), ["batch_size", "0"]),
    (lambda get: hidden_states(load_encoder(get("gpt2")), ["one two", ""]), ["texts", "text 1"]),
    (_saved("opt", lambda e, t: hidden_states(e, t, pooling="first_last"), **OPT), ["32", "16"]),
    *(
        (_saved("opt", read, **OPT), ["encoder", "16 and 32", "layers"])
        for read in (hidden_states, token_states, word_states)
    ),
    (lambda _: pool(STATES, MASK, pooling="AVG"), ["pooling", "AVG"]),
    (lambda _: pool((), MASK), ["states"]),
    (lambda _: pool(STATES, MASK[:, :3]), ["attention_mask", "(3, 3)", "(3, 4, 5)"]),
    (lambda _: pool(STATES, MASK, pooling="mean"), ["attention_mask", "row 1"]),
    (_words(["猫は家にいます"] * 3), ["texts", "100%"]),
    (_words(["ᚠᚢᚦ ᚨᚱᚲ"] * 40), ["texts", "100%"]),
    (lambda get: word_states(replace(get("encoder"), tokenizer=Slow()), ["a"]), ["tokenizer"]),
    (_saved(model=FUNNEL), ["encoder", "5 layers"]),
    *(
        (lambda _, n=n: load_classifier("tiny-random", n_labels=n, seed=0), ["n_labels", repr(n)])
        for n in ("2", 2.0, 0, None)
    ),
    (_stitch(back_layer=4), ["back_layer", "4"]),
    (_stitch(lambda: make_reading("mlm", 1, width=8)), ["states", "16", "8"]),
    (_stitch(lambda: make_reading("mlm", 0, batches=make_batches("mlm")[::-1])), ["back"]),
    (_nothing_to_predict, ["label"]),
    (lambda _: read_layers(make_model("mlm", 0), []), ["batches"]),
    (
        lambda _: read_layers(BertForTokenClassification(CLASSIFIER), make_batches("mlm")),
        ["BertForTokenClassification"],
    ),
    (_grid("train"), ["kind", "train"]),
    (_grid("affine"), ["fitted_on"]),
]


@pytest.mark.parametrize(("call", "named"), REFUSED)
def test_what_cannot_be_read_or_stitched_is_refused(call, named, request):
    with pytest.raises(ValueError) as error:
        call(request.getfixturevalue)
    assert all(name in str(error.value) for name in named)
