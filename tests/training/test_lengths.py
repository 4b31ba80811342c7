"""A batch in parts of like lengths gives what the whole batch gives."""

import pytest
import torch
from torch.utils.data import DataLoader
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    DataCollatorWithPadding,
)

from shrink_utils.models import load_classifier, pool
from shrink_utils.study.profiles import load_profile
from shrink_utils.text import load_task
from shrink_utils.training.rows import ENCODERS, by_length, tokenized

SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "pad_token_id": 1,
}
LENGTHS = (9, 3, 30, 4, 12, 5, 3, 8, 6)


def _model(kind):
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **SIZES)
    return AutoModelForSequenceClassification.from_config(config)


def _batch(lengths=LENGTHS, *, width=None):
    """Random words, padded on the right."""
    generator = torch.Generator().manual_seed(1)
    at = torch.arange(width or max(lengths))
    mask = (at < torch.tensor(lengths)[:, None]).long()  # (b, t)
    words = torch.randint(5, 50, mask.shape, generator=generator)
    labels = torch.arange(len(lengths)) % 2
    return {"input_ids": words.where(mask > 0, 1), "attention_mask": mask, "labels": labels}


@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
@pytest.mark.parametrize("kind", ENCODERS)
def test_parts_give_the_rows_of_the_batch_in_their_order(kind, pooling):
    model, batch = _model(kind).eval(), _batch()
    parts, place = by_length(batch, model)
    assert [part["attention_mask"].shape for part in parts] == [(3, 4), (2, 6), (2, 9), (2, 30)]
    outputs = [model(**part, output_hidden_states=True) for part in parts]
    pooled = [
        pool(output.hidden_states, part["attention_mask"], pooling=pooling)
        for output, part in zip(outputs, parts, strict=True)
    ]
    whole = model(**batch, output_hidden_states=True)
    expected = pool(whole.hidden_states, batch["attention_mask"], pooling=pooling)
    torch.testing.assert_close(torch.cat(pooled)[place], expected, rtol=1e-4, atol=1e-6)
    logits = torch.cat([output.logits for output in outputs])[place]
    torch.testing.assert_close(logits, whole.logits, rtol=1e-4, atol=1e-6)


def test_the_table_of_tokens_gets_the_gradient_of_the_whole_batch():
    model, batch = _model("bert"), _batch()
    table = model.get_input_embeddings()
    (whole,) = torch.autograd.grad(model(**batch).loss, table.weight)
    parts, _ = by_length(batch, model)
    assert len(parts) == 4
    loss = sum(model(**part).loss * len(part["labels"]) / len(LENGTHS) for part in parts)
    (in_parts,) = torch.autograd.grad(loss, table.weight)
    torch.testing.assert_close(in_parts, whole, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(_batch((20,) * 12), id="equal lengths"),
        pytest.param(_batch((16, 17, 18, 19, 20) * 4), id="little to save"),
        pytest.param({k: x.flip(-1) for k, x in _batch().items()}, id="padded on the left"),
        pytest.param(_batch((7,)), id="one row"),
    ],
)
def test_a_batch_passes_whole_where_parts_save_little_or_would_move_a_word(batch):
    parts, place = by_length(batch, _model("bert"))
    assert parts == [batch] and parts[0] is batch
    assert place.tolist() == list(range(len(batch["labels"])))


def test_the_batches_of_quick_pass_whole():
    """Their texts are cut at 16 or 20 tokens. The numbers of `quick` and `cohort` rest on it."""
    model, tokenizer = load_classifier("minilm", n_labels=2, seed=0)
    runs = {run.task: run for run in load_profile("quick").all_runs()}
    assert set(runs) == {"sentiment_movies", "sentiment_products"}
    for task, run in runs.items():
        rows = load_task(task)["train"].shuffle(seed=0)  # as the Trainer does
        tokens = tokenized(rows, tokenizer, max_length=run.max_length)
        pad = DataCollatorWithPadding(tokenizer)
        for batch in DataLoader(tokens, batch_size=64, collate_fn=pad):
            parts, _ = by_length(dict(batch), model)
            assert len(parts) == 1
