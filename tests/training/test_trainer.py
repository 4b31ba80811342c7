"""Gradients of the whole loss, against its definition written out."""

from __future__ import annotations

import pytest
import torch
from datasets import Dataset
from transformers import DataCollatorWithPadding, TrainingArguments

from shrink_utils.models import Encoder, hidden_states, load_classifier
from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import RegularizedTrainer, StepRecorder
from shrink_utils.training.penalties import AverageCosine
from shrink_utils.training.rows import tokenized


def _trainer(tmp_path, *, per_class: bool, regularizer=None) -> RegularizedTrainer:
    model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
    return RegularizedTrainer(
        model=model,
        args=TrainingArguments(output_dir=tmp_path, report_to="none", use_cpu=True),
        data_collator=DataCollatorWithPadding(tokenizer),
        regularizer=regularizer or BarcodeRegularizer("all", weight=0.7),
        recorder=StepRecorder(),
        pooling="cls",
        per_class=per_class,
    )


def _batch(trainer):
    texts = ["one", "two words", "three words now", "four words stand here", "five", "and six"]
    batch = trainer.data_collator.tokenizer(texts, padding=True, return_tensors="pt")
    return {**batch, "labels": torch.tensor([0, 1, 0, 1, 0, 1])}


def test_the_loss_is_task_minus_weighted_entropies_class_by_class(tmp_path):
    trainer, regularizer = _trainer(tmp_path, per_class=True), BarcodeRegularizer("all")
    model = trainer.model.eval()  # no dropout, so that two passes agree
    batch = _batch(trainer)
    outputs = model(**batch, output_hidden_states=True)
    cls = outputs.hidden_states[-1][:, 0]  # (b, d)
    entropy = sum(-regularizer(cls[batch["labels"] == c]).loss for c in (0, 1))
    model.training = True  # the trainer regularizes while training; the layers stay in eval
    assert torch.allclose(trainer.compute_loss(model, batch), outputs.loss - 0.7 * entropy)


def test_evaluation_sees_the_task_alone(tmp_path):
    trainer = _trainer(tmp_path, per_class=True)
    model, batch = trainer.model.eval(), _batch(trainer)
    loss, outputs = trainer.compute_loss(model, batch, return_outputs=True)
    assert torch.equal(loss, model(**batch).loss)
    assert set(outputs) == {"loss", "logits", "embeddings"}


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_an_evaluation_keeps_the_embeddings_of_its_rows_in_their_order(tmp_path, pooling):
    trainer = _trainer(tmp_path, per_class=True)
    trainer.pooling, trainer.compute_metrics = pooling, lambda prediction: {}
    texts = ["a", "two words", "three words now", "b", "c d", "and a longer one at last"] * 3
    rows = Dataset.from_dict({"text": texts, "text_pair": [None] * 18, "label": [0, 1] * 9})
    trainer.evaluate(tokenized(rows, trainer.data_collator.tokenizer))
    trainer.predict(tokenized(rows.select([3, 5]), trainer.data_collator.tokenizer))
    encoder = Encoder("tiny-random", trainer.model.base_model, trainer.data_collator.tokenizer)
    expected = hidden_states(encoder, texts, pooling=pooling)[-1]  # (18, d)
    whole, two = trainer.evaluated
    assert torch.allclose(whole, expected, atol=1e-5)
    assert torch.allclose(two, expected[[3, 5]], atol=1e-5)


def test_an_evaluation_without_metrics_keeps_nothing(tmp_path):
    trainer = _trainer(tmp_path, per_class=True)
    rows = Dataset.from_dict({"text": ["a", "b"], "text_pair": [None] * 2, "label": [0, 1]})
    trainer.evaluate(tokenized(rows, trainer.data_collator.tokenizer))
    assert trainer.evaluated == []


def test_the_regularizer_reaches_the_encoder(tmp_path):
    trainer = _trainer(tmp_path, per_class=True)
    trainer.model.train()
    loss = trainer.compute_loss(trainer.model, _batch(trainer))
    task = trainer.recorder._parts[-1]["task_loss"]
    assert loss.item() < task
    loss.backward()
    gradients = [p.grad for p in trainer.model.base_model.encoder.parameters()]
    assert all(g is not None and g.isfinite().all() for g in gradients)


def test_regression_takes_the_batch_as_one_cloud(tmp_path):
    trainer = _trainer(tmp_path, per_class=False)
    trainer.model.train()
    trainer.compute_loss(trainer.model, _batch(trainer))
    assert trainer.recorder._parts[-1]["n_bars_0"] == 5
    assert "n_bars_1" not in trainer.recorder._parts[-1]


def test_a_penalty_is_added_and_the_prominent_bars_are_watched(tmp_path):
    penalty = AverageCosine(weight=0.7)
    trainer = _trainer(tmp_path, per_class=True, regularizer=penalty)
    model, batch = trainer.model.eval(), _batch(trainer)
    outputs = model(**batch, output_hidden_states=True)
    cls = outputs.hidden_states[-1][:, 0].detach()  # (b, d)
    model.training = True
    loss = trainer.compute_loss(model, batch)
    expected, bars = penalty(cls, batch["labels"]).loss, BarcodeRegularizer()(cls, batch["labels"])
    assert torch.allclose(loss, outputs.loss + expected)
    observed = trainer.recorder._parts[-1]
    assert observed["regularizer"] == expected.item()
    assert observed["entropy"] == float(bars.entropy.sum())
    assert observed["n_features_0"] == bars.n_features[0]
    loss.backward()
    assert all(p.grad.isfinite().all() for p in trainer.model.base_model.encoder.parameters())


def test_bars_are_counted_among_components_whatever_is_selected(tmp_path):
    """`entropy_all` is about these, also where loops are regularized."""
    loops = BarcodeRegularizer(homology_dim=1)
    trainer = _trainer(tmp_path, per_class=True, regularizer=loops)
    trainer.model.train()
    trainer.compute_loss(trainer.model, _batch(trainer))
    observed = trainer.recorder._parts[-1]
    assert [observed["n_bars_0"], observed["n_bars_1"]] == [2, 2]  # three rows a class
    assert observed["n_features_0"] < 2
