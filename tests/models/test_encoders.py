"""Encoders load quietly and verified: every weight of a layer is the file's, or nothing is read."""

import json
import time
from functools import partial

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import (
    DistilBertConfig,
    DistilBertModel,
    MarianConfig,
    MarianMTModel,
    RoFormerConfig,
    RoFormerModel,
)
from transformers.utils import logging as transformers_logging

from shrink_utils.models import encoders, hidden_states, random_encoder, word_states
from shrink_utils.models.encoders import load_classifier, load_encoder, save_classifier
from shrink_utils.sources import source_path

SMALL = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48)


def _changed(first, second) -> set[str]:
    """Names of the weights that differ."""
    weights = second.state_dict()
    return {name for name, x in first.state_dict().items() if not torch.equal(x, weights[name])}


@pytest.mark.parametrize(("name", "n_layers", "width"), [("minilm", 7, 384), ("mpnet", 13, 768)])
def test_a_trained_encoder_puts_like_sentences_close(name, n_layers, width):
    if not source_path(name).is_dir():
        pytest.skip(f"{name} was not fetched")
    encoder = load_encoder(name)
    assert encoder.layers == tuple(range(n_layers)) and encoder.max_length == 512
    assert encoder.model.dtype == torch.float32 and not encoder.model.training
    texts = ["A man plays the guitar.", "Someone is playing guitar.", "Prices rose last year."]
    unit = torch.nn.functional.normalize(hidden_states(encoder, texts, pooling="mean")[-1])
    assert unit.shape[1] == width and unit[0] @ unit[1] > 0.8 > 0.2 > unit[0] @ unit[2]


@pytest.mark.parametrize("name", ["tiny-random", "minilm"])
def test_only_the_head_of_a_classifier_depends_on_its_seed(name, caplog):
    before, level = torch.get_rng_state(), transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_info()
    transformers_logging.enable_propagation()
    try:
        first, again, other = (load_classifier(name, n_labels=3, seed=s)[0] for s in (5, 5, 6))
        assert transformers_logging.get_verbosity() == transformers_logging.INFO
    finally:
        transformers_logging.disable_propagation()
        transformers_logging.set_verbosity(level)
    assert caplog.messages == [] and torch.equal(torch.get_rng_state(), before)
    assert not _changed(first, again) and first.config.num_labels == 3
    assert _changed(first, other) == {"classifier.weight"}
    assert not _changed(first.base_model, load_encoder(name).model)


def test_a_saved_classifier_is_read_back_and_random_weights_are_fresh_and_seeded(tmp_path, capfd):
    model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=4)
    save_classifier(model, tokenizer, tmp_path / "model")
    assert capfd.readouterr().err == ""
    assert not _changed(model.base_model, load_encoder(tmp_path / "model").model)
    again, _ = load_classifier(str(tmp_path / "model"), n_labels=2, seed=9)
    assert not _changed(model, again)
    first, again, other = (random_encoder("tiny-random", seed=s) for s in (1, 1, 2))
    assert not _changed(first.model, again.model)
    for encoder in (other, load_encoder("tiny-random")):
        assert "encoder.layer.1.attention.self.query.weight" in _changed(first.model, encoder.model)
    assert first.name == "tiny-random, random weights" and not first.model.training


XLNET = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 48}  # has no positions
ROBERTA = {**SMALL, "max_position_embeddings": 34}  # padding has position 0


@pytest.mark.parametrize(
    ("kind", "config", "limit"),
    [("roberta", ROBERTA, 33), ("xlnet", XLNET, 64), ("bert", SMALL, 64)],
)
def test_an_encoder_reads_as_many_tokens_as_it_has_places_for(save_tiny, kind, config, limit):
    encoder = load_encoder(save_tiny(kind, maximum=64, **config))
    assert encoder.max_length == limit
    assert hidden_states(encoder, ["dog " * 200]).shape == (3, 1, 32)
    assert hidden_states(encoder, ["dog " * 200], max_length=limit).shape == (3, 1, 32)


def test_a_tokenizer_without_padding_pads_with_its_end_of_text_on_the_right(saved, gpt2):
    tokenizer = load_encoder(str(saved)).tokenizer
    tokenizer.pad_token, tokenizer.eos_token, tokenizer.padding_side = None, "[SEP]", "left"
    tokenizer.save_pretrained(saved)
    loaded = load_encoder(str(saved))
    assert (loaded.tokenizer.pad_token, loaded.tokenizer.padding_side) == ("[SEP]", "right")
    model, tokenizer = load_classifier(gpt2, n_labels=2, seed=0)
    assert model.config.pad_token_id == tokenizer.pad_token_id
    batch = tokenizer(["a dog", "a dog and a house"], padding=True, return_tensors="pt")
    alone = model(**tokenizer(["a dog"], return_tensors="pt")).logits
    torch.testing.assert_close(model(**batch).logits[:1], alone, rtol=1e-5, atol=1e-6)


def _renamed(change):
    """A damage: every weight under another name, none where `change` gives an empty one."""

    def damage(folder):
        weights = load_file(folder / "model.safetensors")
        changed = {change(name): value for name, value in weights.items() if change(name)}
        save_file(changed, folder / "model.safetensors", metadata={"format": "pt"})

    return damage


def _configured(**changes):
    def damage(folder):
        config = json.loads((folder / "config.json").read_text()) | changes
        kept = {name: value for name, value in config.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(kept))

    return damage


def _with_scales(beside, dtype, *, sharded=False):
    """A damage: the queries' weights in 8 bits, and what they were divided by beside them."""

    def damage(folder):
        weights = load_file(folder / "model.safetensors")
        for name in [name for name in weights if name.endswith("query.weight")]:
            scale = weights[name].abs().max() / 120
            weights[name] = (weights[name] / scale).to(dtype)
            weights |= {name.replace("weight", beside): scale} if beside else {}
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
        if sharded:
            (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
            index = {
                "metadata": {},
                "weight_map": dict.fromkeys(weights, "model-00001-of-00001.safetensors"),
            }
            (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    return damage


def _sharded(folder):
    load_encoder(folder).model.save_pretrained(folder, max_shard_size="1MB")
    (folder / "model.safetensors").unlink()
    next(folder.glob("model-00001-of-*")).unlink()


def _moved(folder):
    (folder / "0_Transformer").mkdir()
    (folder / "config.json").rename(folder / "0_Transformer" / "config.json")


def _cut_short(folder, *, kept):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])


def _without_tokenizer(folder):
    for file in [*folder.glob("tokenizer*"), *folder.glob("vocab*"), *folder.glob("special*")]:
        file.unlink()


WRAPPED = "lacks 37 weights that its layers read, such as .*; it has them below"


@pytest.mark.parametrize("load", [load_encoder, lambda n: load_classifier(n, n_labels=2, seed=0)])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        *((_renamed(f"{prefix}.{{}}".format), WRAPPED) for prefix in ("_orig_mod", "0.auto_model")),
        (_renamed("module.bert.{}".format), WRAPPED),
        (_renamed(lambda n: n.replace("query", "q")), "lacks 4 weights .*query"),
        (_renamed(lambda n: "layer.1" not in n and n), r"lacks 16 weights .*layer\.1"),
        (_renamed(lambda n: "word_emb" not in n and n), "lacks 1 weights .*word_embeddings"),
        (_configured(num_hidden_layers=3), r"lacks 16 weights .*layer\.2"),
        (_configured(hidden_size=48), r"in the file \(32,\), by its config.json \(48,\)"),
        (_configured(quantization_config={"quant_method": "gptq", "bits": 4}), "is quantized"),
        *(
            (_with_scales(beside, dtype), f"query.*{beside}.* take the weights it was made from")
            for beside, dtype in {
                "weight_scale": torch.float8_e4m3fn,
                "scale_weight": torch.float8_e5m2,
                "weight_scale_inv": torch.float8_e4m3fn,
                "SCB": torch.int8,
                "weight.absmax": torch.uint8,
                "zero_point": torch.float32,  # whole numbers in a type of fractions
                "scales": torch.bfloat16,
            }.items()
        ),
        (_with_scales("", torch.float8_e4m3fn), r"query\.weight is in F8_E4M3"),
        (_with_scales("", torch.int16, sharded=True), r"query\.weight is in I16"),
        (_configured(model_type=None, architectures=None), "Should have a `model_type` key"),
        (_configured(model_type="nobodys"), "cannot be read: .*`nobodys`"),
        (_sharded, "no encoder can be read from the folder .*model-00001-of"),
        (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "from the folder"),
        (_moved, "has no config.json; there is one in its folder '0_Transformer'"),
        (lambda f: (f / "adapter_config.json").write_text("{}"), "is an adapter; merge it"),
        (lambda f: (f / "config.json").write_text("{"), "not a valid JSON"),
        *((partial(_cut_short, kept=n), "damaged or cut short") for n in (4, 1000, -100)),
        (_without_tokenizer, r"has no tokenizer .*put tokenizer\.json"),
    ],
)
def test_a_folder_that_does_not_hold_the_whole_model_is_refused_in_one_line(
    saved, load, damage, message
):
    damage(saved)
    with pytest.raises((ValueError, FileNotFoundError), match=f"^name: .*{message}") as told:
        load(str(saved))
    assert "\n" not in str(told.value)
    for file in ("config.json", "model.safetensors"):
        if (saved / file).is_file():  # in place of its folder
            with pytest.raises(FileNotFoundError, match=f"{file}' is a file; give .*, '.*tiny'"):
                load(str(saved / file))


def test_whole_numbers_that_are_no_weights_and_half_precision_are_read(saved, encoder):
    weights = load_file(saved / "model.safetensors")
    weights = {name: weight.to(torch.bfloat16) for name, weight in weights.items()}
    weights["embeddings.position_ids"] = torch.arange(512)[None]
    weights |= {"logit_scale": torch.tensor(4.6), "head.scale": torch.ones(1)}
    weights |= {"h.0.attn.bias": torch.ones(4, 4).byte()}
    save_file(weights, saved / "model.safetensors", metadata={"format": "pt"})
    for name, weight in load_encoder(saved).model.state_dict().items():
        assert torch.equal(weight, encoder.model.state_dict()[name].bfloat16().float())


def test_a_pooler_or_a_head_may_be_new(saved, encoder):
    _renamed(lambda name: "pooler" not in name and name)(saved)
    assert _changed(encoder.model, load_encoder(str(saved)).model) == {"pooler.dense.weight"}


SIZES = {"d_model": 32, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 376}
SIZES |= {f"{half}_attention_heads": 2 for half in ("encoder", "decoder")}
SIZES |= {f"{half}_ffn_dim": 48 for half in ("encoder", "decoder")}
DISTIL = {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 48, "vocab_size": 376}


@pytest.mark.parametrize(
    "model",
    [
        MarianMTModel(MarianConfig(**SIZES, pad_token_id=0, decoder_start_token_id=0)),
        DistilBertModel(DistilBertConfig(**DISTIL, sinusoidal_pos_embds=True)),
        RoFormerModel(RoFormerConfig(**SMALL, vocab_size=376)),
    ],
)
def test_positions_that_transformers_computes_need_not_be_in_the_file(save_tiny, model):
    folder = save_tiny("", model=model)
    _renamed(lambda name: "position" not in name and name)(folder)
    loaded, own = load_encoder(folder).model, model.state_dict()
    for name, weight in loaded.state_dict().items():
        name = name if name in own else f"model.encoder.{name}"
        assert torch.equal(weight, own[name]), name
    table = next(name for name in loaded.state_dict() if "position" in name)
    n, width = loaded.state_dict()[table].shape
    rates = 10_000 ** (-2 * (torch.arange(width) // 2) / width)
    angles = torch.arange(n)[:, None] * rates
    expected = torch.cat([angles[:, ::2].sin(), angles[:, 1::2].cos()], dim=1)
    # Each model has its own order of them.
    found = loaded.state_dict()[table].sort(dim=1).values
    torch.testing.assert_close(found, expected.sort(dim=1).values, rtol=0, atol=1e-4)


def test_a_learned_table_of_positions_that_is_missing_is_refused(saved):
    _renamed(lambda name: "position_emb" not in name and name)(saved)
    with pytest.raises(ValueError, match=r"lacks 1 weights .*position_embeddings"):
        load_encoder(str(saved))


QWEN = {**SMALL, "num_key_value_heads": 2}


@pytest.mark.parametrize("kind", ["qwen2", "llama", "bert"])
@pytest.mark.parametrize("pieces", ["pieces", "unigram", "bytes"])
def test_tokens_are_those_of_the_tokenizers_file(save_tiny, kind, pieces):
    folder = save_tiny(kind, pieces, **(SMALL if kind == "bert" else QWEN))
    for settings in ({}, {"tokenizer_class": None}):
        file = folder / "tokenizer_config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | settings))
        for load in (load_encoder, random_encoder):
            tokenizer = load(folder).tokenizer
            for text in ("the small dog", "don't they Shrink? Café"):
                expected = Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).tokens
                assert tokenizer(text).tokens() == expected
            assert (tokenizer.padding_side, tokenizer.pad_token) == ("right", "<pad>")


def test_a_vocabulary_alone_is_a_tokenizer_and_one_that_knows_nothing_is_named(saved, encoder):
    _without_tokenizer(saved)
    pieces = sorted(encoder.tokenizer.get_vocab().items(), key=lambda item: item[1])
    (saved / "vocab.txt").write_text("\n".join(piece for piece, _ in pieces), encoding="utf-8")
    tokenizer = load_encoder(str(saved)).tokenizer
    assert tokenizer.tokenize("unregularized") == ["un", "##re", "##gul", "##ari", "##zed"]
    (saved / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe", encoding="utf-8")
    with pytest.raises(ValueError, match=r"texts: 100% of their pieces are unknown"):
        word_states(load_encoder(str(saved)), ["a sentence in which not one of all is known"] * 40)


@pytest.mark.parametrize("load", [load_encoder, random_encoder])
def test_code_of_a_model_or_a_tokenizer_is_not_run_and_nobody_asked(saved, load, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("somebody was asked"))
    (saved / "own.py").write_text(f"open({str(saved / 'was_run')!r}, 'w')\nclass Own: pass\n")
    settings = saved / "tokenizer_config.json"
    own = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", None]}}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | own))
    assert load(str(saved)).tokenizer.tokenize("bars") == ["bars"]  # by BERT's own code
    names = {name: "own.Own" for name in ("AutoConfig", "AutoModel", "AutoTokenizer")}
    _configured(model_type="own", architectures=["Own"], auto_map=names)(saved)
    with pytest.raises(ValueError, match="needs code that comes with it, and no such code is run"):
        load(str(saved))
    assert not (saved / "was_run").exists()


def test_gguf_needs_its_reader_before_anything_is_downloaded(tmp_path, monkeypatch):
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    monkeypatch.setattr(encoders, "fetch", lambda name: pytest.fail("it was fetched"))
    for name in ("gemma", str(tmp_path)):
        with pytest.raises(ValueError, match=r"are in GGUF.*pip install gguf==0\.19\.0"):
            load_encoder(name)


def test_safetensors_are_read_where_a_gguf_lies_beside_and_of_several_gguf_none(saved, encoder):
    (saved / "model-Q4_K_M.gguf").write_bytes(b"GGUF")
    (saved / "model-Q8_0.gguf").write_bytes(b"GGUF")
    assert not _changed(encoder.model, load_encoder(saved).model)
    (saved / "model.safetensors").unlink()
    for _ in range(2):  # with a configuration beside them, and without
        with pytest.raises(ValueError, match=r"^name: .*model-Q4_K_M\.gguf, model-Q8_0\.gguf"):
            load_encoder(saved)
        (saved / "config.json").unlink(missing_ok=True)


def test_a_gguf_that_reads_pictures_is_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "find_spec", lambda name: "gguf")
    for name in ("mmproj-F16.gguf", "weights.gguf", "a.mmproj.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    assert encoders._location(str(tmp_path))["gguf_file"] == "weights.gguf"
    (tmp_path / "weights.gguf").unlink()
    with pytest.raises(FileNotFoundError, match=r"^name: .*has no config\.json"):
        load_encoder(tmp_path)


def test_a_hub_that_does_not_answer_is_asked_once_and_a_folder_asks_none(saved, monkeypatch):
    asked = []

    def no_network(self, name, **options):
        asked.append(name)
        assert options["timeout"] <= 5
        raise ConnectionError("no network")

    monkeypatch.setattr(encoders.HfApi, "model_info", no_network)
    load_encoder(str(saved))
    since = time.monotonic()
    with pytest.raises(FileNotFoundError, match="no encoder 'someone/some-model'"):
        load_encoder("someone/some-model")
    assert asked == ["someone/some-model"] and time.monotonic() - since < 5
    with pytest.raises(FileNotFoundError, match=r"did you mean 'minilm'\?.*need no hub"):
        load_encoder("minlm")
