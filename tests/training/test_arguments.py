"""What the Trainer is asked for: rows per pass, one GPU per process."""

import pytest
from transformers import TrainingArguments

from shrink_utils.training.arguments import quiet_arguments
from shrink_utils.training.finetune import fine_tuning_arguments


def test_a_steps_rows_are_shared_out_over_its_processes(config, tmp_path, monkeypatch):
    found = fine_tuning_arguments(config, str(tmp_path))
    assert found.per_device_train_batch_size == found.per_device_eval_batch_size == 16
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(ValueError, match=r"batch_size: 16 rows cannot .* between 3 processes"):
        fine_tuning_arguments(config, str(tmp_path))


def test_a_process_that_sees_several_gpus_is_told_to_take_one(tmp_path, monkeypatch):
    monkeypatch.setattr(TrainingArguments, "n_gpu", 4)
    with pytest.raises(ValueError, match="CUDA_VISIBLE_DEVICES: one GPU per process, found 4"):
        quiet_arguments(str(tmp_path))
