"""Models trained here: once, whole, and the same again."""

import pytest
import torch

from shrink_utils.models import OBJECTIVES, SoLU
from shrink_utils.study import load_profile, scratch_config, train_or_load
from shrink_utils.text import load_sentences
from shrink_utils.training import pretrain


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_loaded_model_is_the_trained_one_bit_for_bit(tmp_path, objective):
    smoke = load_profile("smoke")
    config = scratch_config(smoke, objective, source="products", activation="solu")
    trained, loaded = pretrain(config), train_or_load(config, tmp_path)
    first, second = trained.model.state_dict(), loaded.model.state_dict()
    assert first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)
    assert any(isinstance(module, SoLU) for module in loaded.model.modules())
    assert not loaded.model.training
    assert loaded.evaluations == trained.evaluations
    texts = load_sentences("products", n=20)["text"][:]
    assert loaded.tokenizer(texts).input_ids == trained.tokenizer(texts).input_ids
    batch = loaded.tokenizer(texts, padding=True, truncation=True, return_tensors="pt")
    if objective == "mt":
        batch["decoder_input_ids"] = batch["input_ids"]
    with torch.inference_mode():
        assert torch.equal(loaded.model(**batch).logits, trained.model(**batch).logits)
