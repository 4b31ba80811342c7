"""What the Trainer is asked for: rows per pass, precision; what it seeds comes back."""

import random
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import TrainingArguments

from shrink_utils.training import finetune, trainer
from shrink_utils.training.arguments import quiet_arguments, random_state_kept
from shrink_utils.training.finetune import fine_tuning_arguments


def test_a_steps_rows_are_shared_out_over_its_parts(config, tmp_path, monkeypatch):
    config = replace(config, accumulation=4)
    found = fine_tuning_arguments(config, str(tmp_path))
    assert (found.per_device_train_batch_size, found.gradient_accumulation_steps) == (4, 4)
    assert found.per_device_eval_batch_size == 16
    monkeypatch.setenv("WORLD_SIZE", "3")
    message = r"batch_size: 16 rows do not make 4 .* each of 3 processes"
    with pytest.raises(ValueError, match=message):
        fine_tuning_arguments(config, str(tmp_path))


def test_bfloat16_is_for_the_encoder_and_not_for_the_regularizer(config, monkeypatch):
    """The bars are taken in float32, of what the rounded pass gives."""
    config = replace(config, arm="all", train_rows=32, epochs=1)
    exact = finetune(config).history
    seen = []
    regularize = trainer.RegularizedTrainer._regularize

    def watched(self, embeddings, *others):
        seen.append((embeddings.dtype, torch.is_autocast_enabled("cpu")))
        return regularize(self, embeddings, *others)

    monkeypatch.setattr(trainer.RegularizedTrainer, "_regularize", watched)
    module = sys.modules["shrink_utils.training.finetune"]  # the package's name is the function
    monkeypatch.setattr(module, "used_precision", lambda precision: precision)
    rounded = finetune(replace(config, precision="bfloat16")).history
    assert seen == [(torch.float32, False)] * 2
    difference = (rounded.regularizer - exact.regularizer).abs()
    assert difference.between(1e-7, 0.02).all()  # bfloat16 has three digits


def test_a_process_that_sees_several_gpus_is_told_to_take_one(tmp_path, monkeypatch):
    monkeypatch.setattr(TrainingArguments, "n_gpu", 4)
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES: one GPU per process, found 4"):
        quiet_arguments(str(tmp_path))


def test_all_random_generators_go_on_where_they_were_even_after_an_error():
    def seed(number):
        random.seed(number)
        np.random.seed(number)
        torch.manual_seed(number)

    def drawn():
        return random.random(), np.random.random(), torch.rand(1).item()

    seed(1)
    expected = drawn()
    seed(1)
    with pytest.raises(KeyError), random_state_kept():
        seed(2)
        drawn()
        raise KeyError
    assert drawn() == expected
