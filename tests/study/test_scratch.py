"""Models trained here: once, whole, and the same again."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from shrink_utils.models import OBJECTIVES, SoLU, hidden_states, word_states
from shrink_utils.study import load_profile, scratch_config, scratch_encoder, train_or_load
from shrink_utils.text import load_sentences
from shrink_utils.training import pretrain


@pytest.fixture(scope="module")
def smoke():
    return load_profile("smoke")


def _config(smoke, objective="mlm", **changes):
    return scratch_config(smoke, objective, source="products", **changes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(smoke, folder):
    return train_or_load(_config(smoke), folder)


def _weights_equal(first, second):
    first, second = first.state_dict(), second.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_loaded_model_is_the_trained_one_bit_for_bit(smoke, tmp_path, objective):
    config = _config(smoke, objective, activation="solu")
    trained, loaded = pretrain(config), train_or_load(config, tmp_path)
    assert _weights_equal(trained.model, loaded.model)
    assert any(isinstance(module, SoLU) for module in loaded.model.modules())
    assert not loaded.model.training
    assert loaded.evaluations == trained.evaluations
    pd.testing.assert_frame_equal(loaded.history, trained.history)
    texts = load_sentences("products", n=20)["text"][:]
    assert loaded.tokenizer(texts).input_ids == trained.tokenizer(texts).input_ids
    batch = loaded.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    if objective == "mt":
        batch["decoder_input_ids"] = batch["input_ids"]
    with torch.inference_mode():
        assert torch.equal(loaded.model(**batch).logits, trained.model(**batch).logits)


def test_a_damaged_model_is_moved_aside_and_trained_again(smoke, tmp_path, run):
    path = train_or_load(_config(smoke), tmp_path).folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.warns(UserWarning, match=r"model\.safetensors changed on disk.*computing again"):
        again = train_or_load(_config(smoke), tmp_path)
    assert _weights_equal(again.model, run.model)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {run.folder.name, f"{run.folder.name}.damaged-1"}


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_encoder_of_a_run_is_read_like_any_other(smoke, folder, objective):
    run = train_or_load(_config(smoke, objective), folder)
    encoder = scratch_encoder(run)
    assert (encoder.layers, encoder.max_length, encoder.name) == ((0, 1, 2), 12, run.config.label)
    texts = load_sentences("products", n=9)["text"][:]
    words = word_states(encoder, texts, max_length=12)
    assert words.vectors.shape[0] == 3 and words.vectors.shape[2] == 16
    assert len(words.word) == words.vectors.shape[1] > 20
    states = hidden_states(encoder, texts[:1], pooling="mean", max_length=12)
    batch = run.tokenizer(texts[0], truncation=True, return_tensors="pt")
    trunk = run.model.encoder if objective == "mt" else run.model.bert
    with torch.inference_mode():
        expected = trunk(**batch, output_hidden_states=True).hidden_states
    expected = torch.stack([x[0].mean(0) for x in expected]).float()  # read in float32
    torch.testing.assert_close(states[:, 0], expected)
