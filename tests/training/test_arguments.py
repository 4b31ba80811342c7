"""What the Trainer is asked for: rows per pass, precision; what it seeds comes back."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import TrainingArguments

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
