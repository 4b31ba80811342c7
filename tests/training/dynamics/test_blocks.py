"""Which layer, component and head a parameter belongs to; sums over groups of them."""

import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertLMHeadModel,
    BertModel,
    EncoderDecoderModel,
)

from shrink_utils.training.dynamics import TRUNK, AllocationRecorder, Blocks, FixedSetLoss, shares


def _translator(sizes):
    decoder = BertConfig(**sizes, is_decoder=True, add_cross_attention=True)
    return EncoderDecoderModel(
        encoder=BertModel(BertConfig(**sizes)), decoder=BertLMHeadModel(decoder)
    )


MAKE = {
    "mlm": lambda sizes: BertForMaskedLM(BertConfig(**sizes)),
    "clm": lambda sizes: BertLMHeadModel(BertConfig(**sizes, is_decoder=True)),
    "mt": _translator,
    "classifier": lambda sizes: BertForSequenceClassification(BertConfig(**sizes)),
}


@pytest.mark.parametrize("kind", MAKE)
def test_every_parameter_of_bert_like_models_has_its_place(sizes, kind):
    model = MAKE[kind](sizes)
    table = Blocks(model).table
    assert table["size"].sum() == sum(p.numel() for p in model.parameters())
    assert set(table.parameter) == {name for name, _ in model.named_parameters()}
    assert set(table.component) <= {"embedding", *TRUNK, "head"}
    trunk = table[table.layer > 0]
    assert set(trunk.layer) == {1, 2}
    assert {"query", "key", "value", "out", "W1", "W2", "LayerNorm"} <= set(trunk.component)


def test_sums_are_over_the_rows_and_columns_of_each_block(masked_lm):
    blocks = Blocks(masked_lm)
    names = dict(masked_lm.named_parameters())
    before = {n: torch.zeros_like(p) for n, p in names.items()}
    after = {n: torch.rand_like(p) for n, p in names.items()}
    by = {n: torch.randn_like(p) for n, p in names.items()}
    (sums,) = blocks.dots(before, after, by)
    table = blocks.table.assign(found=sums.numpy())
    product = {n: after[n].double() * by[n].double() for n in names}
    layer, first, second = "bert.encoder.layer.0.attention", slice(4), slice(4, None)
    parts = {  # of two heads
        f"{layer}.self.value.weight": (first, second),  # rows
        f"{layer}.self.query.bias": (first, second),
        f"{layer}.output.dense.weight": ((slice(None), first), (slice(None), second)),  # columns
    }
    for name, (one, other) in parts.items():
        expected = [float(product[name][one].sum()), float(product[name][other].sum())]
        assert table[table.parameter == name].found.tolist() == pytest.approx(expected, rel=1e-7)
    total = sum(float(x.sum()) for x in product.values())
    assert table.found.sum() == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("by", ["step", "head", ["stack", "layer", "component", "head", "step"]])
def test_shares_of_any_grouping_sum_to_one(masked_lm, batches, train, by):
    recorder = AllocationRecorder(FixedSetLoss(batches))
    recorder.begin(masked_lm)
    train(masked_lm, batches, recorder, steps=3, lr=0.5)
    table, by = recorder.changes().table("trapezoid"), [by] if isinstance(by, str) else by
    assert shares(table, *by).sum() == pytest.approx(1)
    assert shares(table, *by, trunk=True).sum() == pytest.approx(1)
