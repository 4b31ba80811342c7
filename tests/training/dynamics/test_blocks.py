"""Which layer, component and head a parameter belongs to; sums over groups of them."""

import pandas as pd
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

from shrink_utils.training.dynamics import (
    TRUNK,
    Allocator,
    Blocks,
    FixedSetLoss,
    allocated,
    hurting,
    shares,
)


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


def test_sums_are_over_the_rows_columns_and_word_pieces_of_each_block(masked_lm):
    used = torch.tensor([3, 4, 19])
    blocks = Blocks(masked_lm, token_ids=used)
    names = dict(masked_lm.named_parameters())
    before = {n: torch.zeros_like(p) for n, p in names.items()}
    after = {n: torch.rand_like(p) for n, p in names.items()}
    by = {n: torch.randn_like(p) for n, p in names.items()}
    (sums,) = blocks.dots(before, after, by)
    table = blocks.table.assign(found=sums.numpy())
    product = {n: after[n].double() * by[n].double() for n in names}
    layer, first, second = "bert.encoder.layer.0.attention", slice(4), slice(4, None)
    unused = [i for i in range(20) if i not in used.tolist()]
    parts = {  # of two heads, or of used and unused word-pieces
        f"{layer}.self.value.weight": (first, second),  # rows
        f"{layer}.self.query.bias": (first, second),
        f"{layer}.output.dense.weight": ((slice(None), first), (slice(None), second)),  # columns
        "bert.embeddings.word_embeddings.weight": (used, unused),
    }
    for name, (one, other) in parts.items():
        expected = [float(product[name][one].sum()), float(product[name][other].sum())]
        assert table[table.parameter == name].found.tolist() == pytest.approx(expected, rel=1e-7)
    total = sum(float(x.sum()) for x in product.values())
    assert table.found.sum() == pytest.approx(total, rel=1e-12)


@pytest.fixture
def table(masked_lm, batches, train):
    """Three steps of SGD, by the trapezoid."""
    loss = FixedSetLoss(batches)
    allocator = Allocator(masked_lm, loss, token_ids=loss.token_ids)
    train(masked_lm, batches, allocator, steps=3, lr=0.5)
    return allocator.changes().table("trapezoid")


GROUPINGS = [
    ("step",),
    ("layer",),
    ("component",),
    ("head",),
    ("parameter",),
    ("layer", "component"),
    ("stack", "layer", "component", "head", "step"),
]


@pytest.mark.parametrize("by", GROUPINGS, ids=" ".join)
def test_any_grouping_sums_to_the_total(table, by):
    total = table.value.sum()
    assert allocated(table, *by).sum() == pytest.approx(total, rel=1e-6)
    assert shares(table, *by).sum() == pytest.approx(1)
    assert shares(table, *by, trunk=True).sum() == pytest.approx(1)


def _planted():
    """Two components over four steps, one head each, and a key's bias that may not count."""
    values = {"W1": [-1.0, 0.5, -2.0, 0.25], "key": [-1.0, -1.0, 0.0, -3.0]}
    rows = [
        {"step": i, "component": name, "counted": True, "layer": 1, "value": value}
        for name, column in values.items()
        for i, value in enumerate(column, 1)
    ]
    bias = {"step": 1, "component": "key", "counted": False, "layer": 1, "value": 9.0}
    return pd.DataFrame([*rows, bias])


def test_the_steps_that_hurt_are_counted_and_dated():
    found = hurting(_planted(), "component", gradient="fixed set").set_index("component")
    assert found.loc["W1", ["positive", "of", "last", "maximum"]].tolist() == [2, 4, 4, 0.5]
    assert found.loc["key", ["positive", "of", "last", "maximum"]].tolist() == [0, 4, 0, 0.0]
    assert set(found.gradient) == {"fixed set"}
