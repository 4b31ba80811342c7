"""Encoders load quietly and verified: every weight of a layer is the file's, or nothing is read."""

import json
import time
from functools import partial

import pytest
import torch
from safetensors.torch import load_file, save_file

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


def test_only_the_head_of_a_classifier_depends_on_its_seed(caplog):
    before = torch.get_rng_state()
    first, again, other = (load_classifier("minilm", n_labels=3, seed=s)[0] for s in (5, 5, 6))
    assert caplog.messages == [] and torch.equal(torch.get_rng_state(), before)
    assert not _changed(first, again) and first.config.num_labels == 3
    assert _changed(first, other) == {"classifier.weight"}
    assert not _changed(first.base_model, load_encoder("minilm").model)


def test_a_saved_classifier_is_read_back_and_random_weights_are_fresh_and_seeded(tmp_path, capfd):
    model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=4)
    save_classifier(model, tokenizer, tmp_path / "model")
    assert capfd.readouterr().err == ""
    again, _ = load_classifier(str(tmp_path / "model"), n_labels=2, seed=9)
    assert not _changed(model, again)
    first, again, other = (random_encoder("tiny-random", seed=s) for s in (1, 1, 2))
    assert not _changed(first.model, again.model) and not first.model.training
    for encoder in (other, load_encoder("tiny-random")):
        assert "encoder.layer.1.attention.self.query.weight" in _changed(first.model, encoder.model)


XLNET = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 48}  # has no positions
ROBERTA = {**SMALL, "max_position_embeddings": 34}  # padding has position 0


@pytest.mark.parametrize(
    ("kind", "config", "limit"),
    [("roberta", ROBERTA, 33), ("xlnet", XLNET, 64), ("bert", SMALL, 64)],
)
def test_an_encoder_reads_as_many_tokens_as_it_has_places_for(save_tiny, kind, config, limit):
    encoder = load_encoder(save_tiny(kind, maximum=64, **config))
    assert encoder.max_length == limit
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


SCALED = {
    "weight_scale": torch.float8_e4m3fn,
    "scale_weight": torch.float8_e5m2,
    "SCB": torch.int8,
    "weight.absmax": torch.uint8,
    "zero_point": torch.float32,  # whole numbers in a type of fractions
    "scale": torch.float32,
    "_scale": torch.float32,  # query_scale: beside the layer, whose weights are floats
    "weight_scaling_factor": torch.float16,
    "lora_A": torch.float32,  # no scale, but what is dropped belongs to the weight, too
}


def _with_scales(beside, dtype):
    """A damage: the queries' weights in 8 bits, and what they were divided by beside them."""

    def damage(folder):
        weights = load_file(folder / "model.safetensors")
        for name in [name for name in weights if name.endswith("query.weight")]:
            scale = weights[name].abs().max() / 120
            weights[name] = (weights[name] / scale).to(dtype)
            dot = "" if beside.startswith("_") else "."
            if beside:
                weights[name.replace(".weight", dot + beside)] = scale
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return damage


def _sharded(folder):
    load_encoder(folder).model.save_pretrained(folder, max_shard_size="1MB")
    (folder / "model.safetensors").unlink()
    next(folder.glob("model-00001-of-*")).unlink()


def _cut_short(folder, *, kept):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])


def _without_tokenizer(folder):
    for file in [*folder.glob("tokenizer*"), *folder.glob("vocab*"), *folder.glob("special*")]:
        file.unlink()


DAMAGES = {
    **{f"below {p}": _renamed(f"{p}.{{}}".format) for p in ("_orig_mod", "module.bert")},
    "weights renamed": _renamed(lambda n: n.replace("query", "q")),
    "a layer is missing": _renamed(lambda n: "layer.1" not in n and n),
    "embeddings are missing": _renamed(lambda n: "word_emb" not in n and n),
    "a learned table of positions is missing": _renamed(lambda n: "position_emb" not in n and n),
    "a layer too many is configured": _configured(num_hidden_layers=3),
    "another width is configured": _configured(hidden_size=48),
    "quantized, by its configuration": _configured(quantization_config={"quant_method": "gptq"}),
    **{f"quantized, by {beside}": _with_scales(beside, dtype) for beside, dtype in SCALED.items()},
    "of 8 bits, whose scale lies elsewhere": _with_scales("", torch.int8),
    "an adapter": lambda f: (f / "adapter_config.json").write_text("{}"),
    "no kind of model": _configured(model_type=None, architectures=None),
    "an unknown kind of model": _configured(model_type="nobodys"),
    "a shard is missing": _sharded,
    "a pickle": lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
    "no configuration": lambda f: (f / "config.json").unlink(),
    "a broken configuration": lambda f: (f / "config.json").write_text("{"),
    **{f"cut short at {n}": partial(_cut_short, kept=n) for n in (4, -100)},
    "no tokenizer": _without_tokenizer,
}


def _classifier(name):
    return load_classifier(name, n_labels=2, seed=0)


OF_A_CLASSIFIER = ("weights renamed", "a layer is missing", "quantized, by SCB", "no tokenizer")
LOADS = [(load_encoder, damage) for damage in DAMAGES]
LOADS += [(_classifier, damage) for damage in OF_A_CLASSIFIER]


@pytest.mark.parametrize(("load", "damage"), LOADS)
def test_a_folder_that_does_not_hold_the_whole_model_is_refused_by_name(saved, load, damage):
    DAMAGES[damage](saved)
    with pytest.raises((ValueError, FileNotFoundError), match=f"^name: .*{saved.name}") as told:
        load(str(saved))
    assert "\n" not in str(told.value)


VIT = {**SMALL, "image_size": 32, "patch_size": 16}
T5 = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 1, "num_heads": 2}
CLIP = {"text_config": {**SMALL, "vocab_size": 376}, "vision_config": VIT}


@pytest.mark.parametrize(("kind", "config"), [("vit", VIT), ("t5", T5), ("clip", CLIP)])
def test_what_is_no_one_stack_of_layers_that_reads_texts_is_refused(save_tiny, kind, config):
    folder = save_tiny(kind, **config)
    with pytest.raises(ValueError, match=f"name: .*{folder.name}"):
        load_encoder(folder)


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


def test_tokens_of_another_class_than_the_tokenizers_file_are_refused(save_tiny):
    """transformers makes word-pieces for a BERT, whatever its tokenizer.json says."""
    folder = save_tiny("bert", "bytes", **SMALL)
    load_encoder(folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    del settings["tokenizer_class"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=r"name: .*tokenizer\.json"):
        load_encoder(folder)


def test_a_vocabulary_alone_is_a_tokenizer_and_one_that_knows_nothing_is_named(saved, encoder):
    _without_tokenizer(saved)
    pieces = sorted(encoder.tokenizer.get_vocab().items(), key=lambda item: item[1])
    (saved / "vocab.txt").write_text("\n".join(piece for piece, _ in pieces), encoding="utf-8")
    tokenizer = load_encoder(str(saved)).tokenizer
    assert tokenizer.tokenize("unregularized") == ["un", "##re", "##gul", "##ari", "##zed"]
    (saved / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe", encoding="utf-8")
    with pytest.raises(ValueError, match="texts: 100%"):
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
    with pytest.raises(ValueError, match=f"name: .*{saved.name}"):
        load(str(saved))
    assert not (saved / "was_run").exists()


def test_gemma_needs_a_reader_before_anything_is_downloaded(monkeypatch):
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    monkeypatch.setattr(encoders, "fetch", lambda name: pytest.fail("it was fetched"))
    with pytest.raises(ValueError, match=r"'gemma'.*pip install gguf"):
        load_encoder("gemma")


def test_a_hub_that_does_not_answer_is_asked_once_and_a_folder_asks_none(saved, monkeypatch):
    asked = []

    def no_network(self, name, **options):
        asked.append(name)
        assert options["timeout"] <= 5
        raise ConnectionError("no network")

    monkeypatch.setattr(encoders.HfApi, "model_info", no_network)
    load_encoder(str(saved))
    since = time.monotonic()
    with pytest.raises(FileNotFoundError, match="someone/some-model"):
        load_encoder("someone/some-model")
    assert asked == ["someone/some-model"] and time.monotonic() - since < 5
    with pytest.raises(FileNotFoundError, match=r"minlm.*minilm"):
        load_encoder("minlm")
