"""bfloat16 where the device has it, in the passes that train and nowhere else; still repeatable."""

from dataclasses import replace

import pytest
import torch
from transformers import DataCollatorWithPadding

from shrink_utils.models import pool
from shrink_utils.study import finetune, finetuning
from shrink_utils.study.finetuning import _tokenized
from shrink_utils.study.profiles import _native_precision
from shrink_utils.text import load_task


@pytest.mark.parametrize(
    ("capabilities", "gpu", "native"),
    [
        ({"avx512_f": True, "avx512_bf16": True, "amx_bf16": False}, None, "bfloat16"),
        ({"avx512_bf16": False, "amx_bf16": True}, None, "bfloat16"),
        # These emulate it.
        ({"avx512_vnni": True, "avx512_bf16": False}, None, "float32"),
        ({"avx512_f": True, "amx_tile": True, "amx_bf16": False}, None, "float32"),
        ({"architecture": "aarch64"}, None, "float32"),
        # A GPU trains, and so the processor is not asked.
        ({"avx512_bf16": False, "amx_bf16": False}, "native", "bfloat16"),
        ({"avx512_bf16": True, "amx_bf16": True}, "emulated", "float32"),
    ],
)
def test_what_trains_is_asked_for_its_instructions(monkeypatch, capabilities, gpu, native):
    def supported(including_emulation=True):
        return including_emulation or gpu == "native"

    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu is not None)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert _native_precision() == native


def test_evaluations_are_float32_passes_of_the_models_bit_for_bit(config, monkeypatch):
    """The run trains in bfloat16, also where the processor only emulates it."""
    monkeypatch.setattr(finetuning, "used_precision", lambda precision: precision)
    result, exact = finetune(replace(config, precision="bfloat16")), finetune(config)
    assert torch.equal(result.embeddings["before"], exact.embeddings["before"])
    assert result.evaluations[0] == exact.evaluations[0]
    assert not torch.equal(result.embeddings["after"], exact.embeddings["after"])

    rows = load_task(
        config.task, max_train=config.train_rows, max_eval=config.eval_rows, seed=config.seed
    )["validation"]
    examples = _tokenized(rows, result.tokenizer, max_length=config.max_length)
    inputs = DataCollatorWithPadding(result.tokenizer)([examples[i] for i in range(len(rows))])
    with torch.no_grad():
        output = result.model(**inputs, output_hidden_states=True)
    embeddings = pool(output.hidden_states, inputs["attention_mask"], pooling=config.pooling)
    assert torch.equal(result.embeddings["after"], embeddings)
    assert result.evaluations[-1]["loss"] == pytest.approx(output.loss.item(), rel=1e-6)
