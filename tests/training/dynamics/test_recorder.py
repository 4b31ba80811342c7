"""The callback, in runs of the Trainer and of our own."""

from __future__ import annotations

import pytest
import torch
from datasets import Dataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
)

from shrink_utils.training import RegularizedTrainer, StepRecorder, make_regularizer
from shrink_utils.training.dynamics import BATCH, AllocationRecorder, FixedSetLoss


def _arguments(folder, **options):
    return TrainingArguments(
        output_dir=folder,
        max_steps=4,
        per_device_train_batch_size=4,
        learning_rate=2e-3,
        lr_scheduler_type="constant",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        logging_steps=1,
        log_level="error",
        dataloader_pin_memory=False,
        **options,
    )


def _trained(sizes, rows, folder, callbacks, **options):
    torch.manual_seed(0)
    model = BertForMaskedLM(BertConfig(**sizes))
    trainer = Trainer(
        model=model,
        args=_arguments(folder, **options),
        train_dataset=Dataset.from_list(rows),
        callbacks=callbacks,
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return model


@pytest.fixture
def rows(batches):
    ids = torch.cat([batch["input_ids"] for batch in batches])
    labels = torch.cat([batch["labels"] for batch in batches])
    return [
        {"input_ids": i.tolist(), "labels": label.tolist()}
        for i, label in zip(ids, labels, strict=True)
    ] * 4


def test_a_trainer_run_with_it_ends_in_the_same_weights_to_the_bit(sizes, rows, batches, tmp_path):
    recorder = AllocationRecorder(FixedSetLoss(batches), rules=("trapezoid", "simpson"))
    plain = _trained(sizes, rows, tmp_path, [])
    watched = _trained(sizes, rows, tmp_path, [recorder])
    for (name, x), y in zip(plain.named_parameters(), watched.parameters(), strict=True):
        assert torch.equal(x, y), name
    changes = recorder.changes()
    assert changes.values["trapezoid"].shape[0] == 4
    assert changes.gradients == 9
    assert changes.closure("simpson") < 1e-3
    assert 0 < changes.seconds


def test_losses_are_those_of_the_fixed_set_at_the_ends(sizes, rows, batches, tmp_path):
    recorder = AllocationRecorder(FixedSetLoss(batches))
    model = _trained(sizes, rows, tmp_path, [recorder]).eval()
    labels = torch.cat([b["labels"].flatten() for b in batches])
    logits = torch.cat([model(b["input_ids"]).logits.flatten(0, 1) for b in batches])
    expected = torch.nn.functional.cross_entropy(logits, labels).item()
    assert recorder.changes().losses[-1, 1] == pytest.approx(expected, rel=1e-5)


def test_a_step_of_several_batches_is_one_step(sizes, rows, batches, tmp_path):
    seen = []
    recorder = AllocationRecorder(FixedSetLoss(batches), on_step=lambda: seen.append(1))
    _trained(sizes, rows, tmp_path, [recorder], gradient_accumulation_steps=2)
    assert len(seen) == recorder.changes().losses.shape[0] == 4


def test_the_task_loss_is_allocated_while_the_regularizer_trains(sizes, batches, tmp_path):
    """No regularizer is in the allocated loss, and it is in the gradient of the batch."""
    ids = torch.cat([batch["input_ids"] for batch in batches])
    labels = torch.tensor([0, 1, 0, 1, 0])
    rows = [
        {"input_ids": i.tolist(), "attention_mask": [1] * 6, "labels": int(y)}
        for i, y in zip(ids, labels, strict=True)
    ] * 4
    loss = FixedSetLoss([{"input_ids": ids, "labels": labels}])
    found = {}
    for arm in ("none", "all"):
        torch.manual_seed(0)
        model = BertForSequenceClassification(BertConfig(**sizes))
        recorder = AllocationRecorder(loss, batch_gradient=True)
        trainer = RegularizedTrainer(
            model=model,
            args=_arguments(tmp_path),
            train_dataset=Dataset.from_list(rows),
            regularizer=make_regularizer(arm, weight=1.0),
            recorder=StepRecorder(),
            pooling="cls",
            per_class=True,
        )
        trainer.remove_callback(PrinterCallback)
        trainer.add_callback(recorder)
        trainer.train()
        model.eval()
        found[arm] = recorder.changes()
        after = torch.nn.functional.cross_entropy(model(ids).logits, labels)
        assert found[arm].losses[-1, 1] == pytest.approx(after.item(), rel=1e-5)
        assert found[arm].closure("trapezoid") < 0.02
    assert found["none"].losses[0, 0] == found["all"].losses[0, 0]
    assert found["none"].values[BATCH][0].sum() != found["all"].values[BATCH][0].sum()


def test_nothing_trained_has_nothing_recorded(batches):
    with pytest.raises(ValueError, match="nothing has been trained"):
        AllocationRecorder(FixedSetLoss(batches)).changes()
