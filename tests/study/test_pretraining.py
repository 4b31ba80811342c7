"""Training from nothing: what is read, what it is judged by, seeded, quiet, and it learns."""

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy
from transformers import DataCollatorForSeq2Seq, TrainerCallback

from shrink_utils.study import pretrain
from shrink_utils.study.pretraining import (
    _held_out_loss,
    examples,
    held_out_batches,
    new_model,
    scratch_tokenizer,
)
from shrink_utils.text.corpora import split_sentences


@pytest.fixture
def tokenizer(scratch_config):
    return scratch_tokenizer(scratch_config)


class _Reader(TrainerCallback):
    """Notes what the model is given at every training step, and the learning rate."""

    def __init__(self):
        self.batches, self.rates = [], []

    def on_log(self, args, state, control, logs=None, **kwargs):
        self.rates += [logs["learning_rate"]] if "loss" in logs else []

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


def test_one_seed_one_model_and_another_seed_reads_the_same_batches(scratch_config):
    config, state = scratch_config, torch.get_rng_state()
    (first, read), (again, _) = _read(config), _read(config)
    assert torch.equal(torch.get_rng_state(), state)
    weights = first.model.state_dict()
    assert all(torch.equal(x, weights[name]) for name, x in again.model.state_dict().items())
    assert first.evaluations == again.evaluations

    other, read_by_other = _read(replace(config, seed=1))
    assert len(read) == config.steps and _equal(read, read_by_other)
    assert other.evaluations != first.evaluations
    assert not _equal(read, _read(replace(config, data_seed=1))[1])


def test_the_rate_rises_linearly_and_then_falls_as_the_inverse_square_root(scratch_config):
    reader = _Reader()
    pretrain(replace(scratch_config, steps=8), callbacks=[reader])
    # Four steps up from 0; then the inverse square root, 1 at the end of the warm-up.
    shares = [step / 4 if step < 4 else math.sqrt(4 / step) for step in range(8)]
    assert reader.rates == pytest.approx([1e-2 * share for share in shares])


def test_the_held_out_loss_is_the_mean_over_predicted_tokens_without_dropout(scratch_config):
    config = replace(scratch_config, dropout=0.5)
    tokenizer = scratch_tokenizer(config)
    batches = held_out_batches(config, tokenizer, n=20)
    model = new_model(config, tokenizer).train()
    loss = _held_out_loss(model, batches)
    assert model.training and loss == _held_out_loss(model, batches)
    terms = []
    model.eval()
    for batch in batches:
        with torch.inference_mode():
            logits = model(**batch).logits[:, :-1].flatten(0, 1)
        labels = batch["labels"][:, 1:].flatten()
        terms += cross_entropy(logits, labels, reduction="none")[labels != -100].tolist()
    assert loss == pytest.approx(sum(terms) / len(terms), rel=1e-5)


def test_a_model_learns_more_of_its_sentences_than_how_frequent_words_are(scratch_config):
    """Of 16 sentences seen again and again, it predicts well below the unigram entropy."""
    config = replace(scratch_config, dropout=0.0, sentences=16, steps=80, width=32, depth=1)
    result = pretrain(config)
    train = examples(config, result.tokenizer)
    words = Counter(x for row in train["input_ids"] for x in row[1:-1])
    total = sum(words.values())
    entropy = -sum(n / total * math.log(n / total) for n in words.values())
    batch = DataCollatorForSeq2Seq(result.tokenizer)(train.to_list())
    assert _held_out_loss(result.model, [batch]) < 0.8 * entropy


def test_a_causal_model_is_to_predict_the_tokens_that_it_reads(scratch_config, tokenizer):
    rows = split_sentences("products", n=80)["train"]
    ids = tokenizer(rows["text"][:], truncation=True).input_ids
    train = examples(scratch_config, tokenizer)
    assert (train["input_ids"][:], train["labels"][:]) == (ids, ids)
    _, (batch, *_) = _read(scratch_config)  # encoded when its turn comes
    assert all(row[row != -100].tolist() in ids for row in batch["labels"])
