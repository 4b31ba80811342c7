"""What models trained here read and are judged by."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from shrink_utils.text import load_pairs
from shrink_utils.training import (
    ScratchConfig,
    examples,
    held_out_batches,
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
    learning_rate=1e-3,
    warmup=0.1,
    seed=0,
)
CLM, MT = (replace(CONFIG, objective=objective) for objective in ("clm", "mt"))


@pytest.fixture(scope="module")
def tokenizer():
    return scratch_tokenizer(CONFIG)


@pytest.fixture(scope="module")
def sentences():
    return load_pairs("products", n=80)


def test_all_objectives_share_the_tokenizer_which_spells_both_languages(tokenizer, sentences):
    assert scratch_tokenizer(CLM).vocab == scratch_tokenizer(MT).vocab == tokenizer.vocab
    for column in ("text", "translation"):
        ids = tokenizer(sentences["train"][column][:]).input_ids
        assert not any(tokenizer.unk_token_id in row for row in ids)
    assert tokenizer.model_max_length == 12


def test_inputs_are_the_sentences_cut_to_length(tokenizer, sentences):
    for config in (CONFIG, CLM, MT):
        train, _ = examples(config, tokenizer)
        expected = tokenizer(sentences["train"]["text"][:]).input_ids
        expected = [row if len(row) <= 12 else [*row[:11], row[-1]] for row in expected]
        assert train["input_ids"][:] == expected


def test_labels_are_what_each_objective_predicts(tokenizer, sentences):
    train, held_out = examples(CLM, tokenizer)
    assert train["labels"][:] == train["input_ids"][:]
    assert held_out["labels"][:] == held_out["input_ids"][:]
    translated = sentences["held_out"]["translation"][:]
    _, held_out = examples(MT, tokenizer)
    for ids, text in zip(held_out["labels"], translated, strict=True):
        whole = tokenizer(text).input_ids
        assert ids == (whole[1:] if len(whole) <= 12 else [*whole[1:11], whole[-1]])
    assert examples(CONFIG, tokenizer)[0].column_names == ["input_ids"]


def test_masked_places_and_no_others_are_to_be_predicted(tokenizer):
    half = replace(CONFIG, masked=0.5)
    _, masked = examples(half, tokenizer)
    _, plain = examples(CLM, tokenizer)
    predicted = changed = total = 0
    for row, ids in zip(masked, plain["input_ids"], strict=True):
        for x, y, original in zip(row["input_ids"], row["labels"], ids, strict=True):
            assert y in (-100, original) and (y != -100 or x == original)
            assert original not in (2, 3) or y == -100  # [CLS] and [SEP] stay
            predicted += y != -100
            changed += x == tokenizer.mask_token_id
            total += original not in (2, 3)
    assert abs(predicted / total - 0.5) < 0.05
    assert abs(changed / predicted - 0.8) < 0.05  # as in BERT


def test_the_judges_are_the_same_for_every_seed_and_size_of_model(tokenizer):
    other = replace(CONFIG, seed=5, data_seed=7, width=32, steps=9)
    for a, b in zip(
        held_out_batches(CONFIG, tokenizer), held_out_batches(other, tokenizer), strict=True
    ):
        assert a.keys() == b.keys() == {"input_ids", "attention_mask", "labels"}
        assert all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("config", [CONFIG, CLM, MT], ids=["mlm", "clm", "mt"])
def test_batches_hold_the_first_sentences_padded(config, tokenizer):
    _, held_out = examples(config, tokenizer)
    batches = held_out_batches(config, tokenizer, n=20)
    assert [len(batch["input_ids"]) for batch in batches] == [16, 4]
    rows = [
        (x[m.bool()].tolist(), y[y != -100].tolist())
        for batch in batches
        for x, m, y in zip(
            *(batch[k] for k in ("input_ids", "attention_mask", "labels")), strict=True
        )
    ]
    for (ids, labels), row in zip(rows, held_out.select(range(20)), strict=True):
        assert ids == row["input_ids"]
        assert labels == [y for y in row["labels"] if y != -100]


def test_more_judges_than_there_are_are_refused(tokenizer):
    n = len(load_pairs("products")["held_out"])
    with pytest.raises(ValueError, match=f"n: {n + 1}, expected 1 to {n} held-out sentences"):
        held_out_batches(CONFIG, tokenizer, n=n + 1)
