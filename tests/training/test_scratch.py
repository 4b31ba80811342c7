"""Training from nothing: seeded, quiet, and it learns."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from transformers import TrainerCallback

from shrink_utils.models import OBJECTIVES
from shrink_utils.training import (
    ScratchConfig,
    examples,
    held_out_batches,
    held_out_loss,
    new_model,
    pretrain,
    scratch_tokenizer,
)

CONFIG = ScratchConfig(
    objective="mlm",
    width=16,
    depth=2,
    heads=2,
    source="products",
    sentences=80,
    vocabulary=300,
    max_length=12,
    steps=3,
    batch_size=16,
    learning_rate=1e-2,
    warmup=0.5,
    seed=0,
)


class _Reader(TrainerCallback):
    """Notes what the model is given at every training step."""

    def __init__(self):
        self.batches = []

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        def note(module, args, inputs):
            if module.training:
                self.batches.append({k: v for k, v in inputs.items() if torch.is_tensor(v)})

        self._hook = model.register_forward_pre_hook(note, with_kwargs=True)

    def on_train_end(self, args, state, control, **kwargs):
        self._hook.remove()


def _read(config):
    reader = _Reader()
    return pretrain(config, callbacks=[reader]), reader.batches


def _equal(first, second):
    return len(first) == len(second) and all(
        a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)
        for a, b in zip(first, second, strict=True)
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_one_seed_one_model_and_another_seed_reads_the_same_batches(objective):
    config = replace(CONFIG, objective=objective)
    state = torch.get_rng_state()
    (first, read), (again, _) = _read(config), _read(config)
    assert torch.equal(torch.get_rng_state(), state)
    weights = first.model.state_dict()
    assert all(torch.equal(x, weights[name]) for name, x in again.model.state_dict().items())
    assert first.evaluations == again.evaluations

    other, read_by_other = _read(replace(config, seed=1))
    assert len(read) == config.steps and _equal(read, read_by_other)
    assert other.evaluations != first.evaluations
    assert not _equal(read, _read(replace(config, data_seed=1))[1])


def test_the_trained_activation_is_the_one_that_was_asked_for():
    gelu, solu = (pretrain(replace(CONFIG, activation=name)) for name in ("gelu", "solu"))
    assert gelu.evaluations != solu.evaluations
    norms = [p for name, p in solu.model.named_parameters() if "intermediate_act_fn" in name]
    assert len(norms) == 4 and not all(torch.all((p == 0) | (p == 1)) for p in norms)


def test_the_history_has_a_row_a_step_and_the_rate_of_the_schedule():
    history = pretrain(replace(CONFIG, steps=8)).history
    assert list(history.columns) == ["step", "loss", "learning_rate"]
    assert history.step.tolist() == list(range(1, 9))
    # Four steps up from 0; then the inverse square root, 1 at the end of the warm-up.
    shares = [step / 4 if step < 4 else math.sqrt(4 / step) for step in range(8)]
    assert history.learning_rate.tolist() == pytest.approx([1e-2 * share for share in shares])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_held_out_loss_is_the_mean_over_predicted_tokens_without_dropout(objective):
    config = replace(CONFIG, objective=objective, dropout=0.5)
    tokenizer = scratch_tokenizer(config)
    batches = held_out_batches(config, tokenizer, n=20)
    model = new_model(config, tokenizer).train()
    loss = held_out_loss(model, batches)
    assert model.training and loss == held_out_loss(model, batches)
    terms = []
    model.eval()
    for batch in batches:
        with torch.inference_mode():
            logits = model(**batch).logits
        labels = batch["labels"]
        if objective == "clm":
            logits, labels = logits[:, :-1], labels[:, 1:]
        for row, y in zip(logits.flatten(0, 1), labels.flatten(), strict=True):
            if y != -100:
                terms.append((row.logsumexp(0) - row[y]).item())
    assert loss == pytest.approx(sum(terms) / len(terms), rel=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_model_learns_more_of_its_sentences_than_how_frequent_words_are(objective):
    """On 16 sentences seen again and again, the loss falls well below the unigram entropy."""
    config = replace(
        CONFIG, objective=objective, dropout=0.0, sentences=16, steps=80, width=32, depth=1
    )
    result = pretrain(config)
    train, _ = examples(config, result.tokenizer)
    words = Counter(x for row in train["input_ids"] for x in row[1:-1])
    total = sum(words.values())
    entropy = -sum(n / total * math.log(n / total) for n in words.values())
    assert result.history.loss.tail(10).mean() < 0.8 * entropy


def test_every_module_is_left_in_the_mode_it_was_in():
    tokenizer = scratch_tokenizer(CONFIG)
    model = new_model(CONFIG, tokenizer).train()
    model.bert.embeddings.eval()  # a frozen part
    modes = [module.training for module in model.modules()]
    batches = held_out_batches(CONFIG, tokenizer)
    held_out_loss(model, batches)
    with pytest.raises(IndexError):
        held_out_loss(model, [{key: x + 1000 for key, x in batch.items()} for batch in batches])
    assert [module.training for module in model.modules()] == modes


def test_training_prints_nothing_and_stores_nothing(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pretrain(replace(CONFIG, objective="clm", steps=1))
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""
    assert list(tmp_path.iterdir()) == []
