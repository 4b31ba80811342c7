"""What the Trainer is asked for: the rows of a pass, and the precision that the device has."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from transformers import TrainingArguments

from shrink_utils.training import RunConfig, arguments, finetune, trainer
from shrink_utils.training.arguments import fine_tuning_arguments, quiet_arguments, used_precision

CONFIG = RunConfig(
    model="tiny-random",
    task="sentiment_movies",
    arm="all",
    seed=3,
    train_rows=32,
    eval_rows=16,
    epochs=1,
    learning_rate=1e-3,
    weight_decay=1e-4,
    max_length=12,
    batch_size=16,
)
BFLOAT16 = replace(CONFIG, precision="bfloat16")


def _device(monkeypatch, *, cuda: bool, bf16: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: bf16)


@pytest.mark.parametrize(
    ("cuda", "bf16", "used"),
    [(True, True, "bfloat16"), (True, False, "float32"), (False, True, "float32")],
)
def test_the_precision_is_the_devices(monkeypatch, cuda, bf16, used):
    _device(monkeypatch, cuda=cuda, bf16=bf16)
    assert used_precision(BFLOAT16) == used
    assert used_precision(CONFIG) == "float32"


def test_a_steps_rows_are_shared_out_over_its_parts(tmp_path, monkeypatch):
    config = replace(CONFIG, accumulation=4)
    found = fine_tuning_arguments(config, str(tmp_path))
    assert (found.per_device_train_batch_size, found.gradient_accumulation_steps) == (4, 4)
    assert found.per_device_eval_batch_size == 16
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(
        ValueError, match=r"batch_size: 16 rows do not make 4 .* each of 3 processes"
    ):
        fine_tuning_arguments(config, str(tmp_path))


def test_bfloat16_is_for_the_encoder_and_not_for_the_regularizer(monkeypatch):
    """Mixed precision as a GPU would have it, on the CPU: the bars are taken in float32."""
    exact = finetune(CONFIG).history
    seen = []
    regularize = trainer.RegularizedTrainer._regularize

    def watched(self, embeddings, *others):
        seen.append((embeddings.dtype, torch.is_autocast_enabled("cpu")))
        return regularize(self, embeddings, *others)

    monkeypatch.setattr(trainer.RegularizedTrainer, "_regularize", watched)
    monkeypatch.setattr(arguments, "used_precision", lambda config: "bfloat16")
    monkeypatch.setattr(
        arguments,
        "quiet_arguments",
        lambda folder, **options: quiet_arguments(folder, **options | {"use_cpu": True}),
    )
    rounded = finetune(BFLOAT16).history
    assert seen == [(torch.float32, False)] * 2
    difference = (rounded.regularizer - exact.regularizer).abs()
    assert difference.between(1e-7, 0.02).all()  # bfloat16 has three digits


def test_a_process_that_sees_several_gpus_takes_the_rows_of_one(tmp_path, monkeypatch):
    def found(self):
        self._n_gpu = 4
        return torch.device("cpu")

    monkeypatch.setattr(TrainingArguments, "device", property(found))
    options = {"per_device_train_batch_size": 16}
    assert TrainingArguments(str(tmp_path), **options).train_batch_size == 64
    assert quiet_arguments(str(tmp_path), **options).train_batch_size == 16
