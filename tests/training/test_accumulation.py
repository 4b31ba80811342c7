"""A step in parts: its loss, its gradient and its row, against their definition written out."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import DataCollatorWithPadding, TrainerCallback

from shrink_utils.models import load_classifier
from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import RegularizedTrainer, RunConfig, StepRecorder, finetune
from shrink_utils.training.arguments import quiet_arguments

CONFIG = RunConfig(
    model="tiny-random",
    task="sentiment_movies",
    arm="all",
    seed=3,
    train_rows=40,
    eval_rows=16,
    epochs=2,
    learning_rate=1e-3,
    weight_decay=1e-4,
    max_length=12,
    batch_size=16,
)


class Gradients(TrainerCallback):
    """What the optimizer is about to see."""

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.seen = {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.fixture
def model():
    model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0  # two passes have to agree
    return model, tokenizer


def _rows(tokenizer, n: int) -> Dataset:
    texts = [" ".join(["word", "another", "third"][: 1 + k % 3] * (1 + k // 3)) for k in range(n)]
    return Dataset.from_dict({**tokenizer(texts), "labels": [k % 2 for k in range(n)]})


@pytest.mark.parametrize("weight", [0.0, 0.7])
def test_the_gradient_of_a_step_in_parts(model, weight, tmp_path, monkeypatch):
    """Ten rows in parts of 4, 4 and 2: mean over rows of the task's, over parts of the term."""
    model, tokenizer = model
    by_hand, parts = copy.deepcopy(model), []
    gradients, regularizer = Gradients(), BarcodeRegularizer("all", weight=weight)
    trainer = RegularizedTrainer(
        model=model,
        args=quiet_arguments(
            str(tmp_path),
            max_steps=1,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=3,
            max_grad_norm=0.0,
        ),
        train_dataset=_rows(tokenizer, 10),
        data_collator=DataCollatorWithPadding(tokenizer),
        regularizer=regularizer,
        recorder=StepRecorder(),
        pooling="cls",
        per_class=True,
    )
    compute = trainer.compute_loss

    def watched(model, inputs, **options):
        parts.append(inputs)
        return compute(model, inputs, **options)

    monkeypatch.setattr(trainer, "compute_loss", watched)
    trainer.add_callback(gradients)
    trainer.train()
    assert [len(part["labels"]) for part in parts] == [4, 4, 2]
    loss = torch.zeros(())
    for part in parts:
        outputs = by_hand(**part, output_hidden_states=True)
        term = regularizer(outputs.hidden_states[-1][:, 0], part["labels"]).loss
        loss = loss + outputs.loss * len(part["labels"]) / 10 + term / 3
    loss.backward()
    for name, parameter in by_hand.named_parameters():
        torch.testing.assert_close(gradients.seen[name], parameter.grad, rtol=1e-4, atol=1e-7)


def test_a_row_is_a_step_and_holds_the_mean_of_its_parts():
    whole = finetune(CONFIG).history
    history = finetune(replace(CONFIG, accumulation=4)).history
    assert history.step.tolist() == whole.step.tolist() == [1, 2, 3, 4, 5, 6]
    assert history.rows.tolist() == whole.rows.tolist() == [16, 16, 8, 16, 16, 8]
    assert history.n_bars_0[0] + history.n_bars_1[0] <= 4 - 1  # of a part of 4 rows
    assert history.regularizer[0] == pytest.approx(-history.entropy[0], rel=1e-5)
