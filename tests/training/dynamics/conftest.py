"""Tiny models for the tests of loss change allocation."""

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM


@pytest.fixture
def mean_loss():
    """The fixed loss without the package: mean over all predicted tokens, dropout off."""

    def compute(model, batches):
        model.eval()
        flat = [model(batch["input_ids"]).logits.flatten(0, 1) for batch in batches]
        labels = torch.cat([batch["labels"].flatten() for batch in batches])
        return nn.functional.cross_entropy(torch.cat(flat), labels)

    return compute


@pytest.fixture
def train():
    """Some steps of SGD on one batch after the other, followed by a recorder."""

    def run(model, batches, recorder, *, steps, **sgd):
        optimizer = torch.optim.SGD(model.parameters(), **sgd)
        for i in range(steps):
            optimizer.zero_grad()
            model(**batches[i % len(batches)]).loss.backward()
            recorder.on_pre_optimizer_step()
            optimizer.step()
            recorder.on_optimizer_step()

    return run


@pytest.fixture
def sizes():
    """Of the smallest BERT with two layers and two heads."""
    return {
        "vocab_size": 20,
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 6,
    }


@pytest.fixture
def masked_lm(sizes):
    """A BERT with dropout, in training mode."""
    return BertForMaskedLM(BertConfig(**sizes)).train()


@pytest.fixture
def batches():
    """Two fixed batches, of 3 and 2 examples, of the word-pieces 5 to 14."""
    generator = torch.Generator().manual_seed(1)
    made = []
    for rows in (3, 2):
        ids = torch.randint(5, 15, (rows, 6), generator=generator)
        labels = torch.where(torch.rand(rows, 6, generator=generator) < 0.4, ids, -100)
        labels[0, 0] = ids[0, 0]
        made.append({"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels})
    return made
