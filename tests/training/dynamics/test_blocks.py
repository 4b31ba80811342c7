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
    GPT2Config,
    GPT2LMHeadModel,
)

from shrink_utils.models import Trunk, scratch_model
from shrink_utils.training.dynamics import (
    COMPONENTS,
    Allocator,
    Blocks,
    FixedSetLoss,
    allocated,
    block_steps,
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


def _place(blocks, parameter):
    rows = blocks.table[blocks.table.parameter == parameter]
    (place,) = set(zip(rows["stack"], rows.layer, rows.component, strict=True))
    return place


@pytest.mark.parametrize("kind", MAKE)
def test_every_parameter_of_bert_like_models_has_its_place(sizes, kind):
    model = MAKE[kind](sizes)
    table = Blocks(model).table
    assert table["size"].sum() == sum(p.numel() for p in model.parameters())
    assert set(table.parameter) == {name for name, _ in model.named_parameters()}
    assert set(table.component) <= set(COMPONENTS) - {"other"}
    trunk = table[table.layer > 0]
    assert set(trunk.layer) == {1, 2}
    assert {"query", "key", "value", "out", "W1", "W2", "LayerNorm"} <= set(trunk.component)


def test_names_are_read_as_people_read_them(sizes):
    blocks = Blocks(MAKE["mlm"](sizes))
    layer = "bert.encoder.layer.1"
    expected = {
        "bert.embeddings.word_embeddings.weight": (0, "embedding"),
        "bert.embeddings.LayerNorm.bias": (0, "LayerNorm"),
        f"{layer}.attention.self.query.weight": (2, "query"),
        f"{layer}.attention.self.value.bias": (2, "value"),
        f"{layer}.attention.output.dense.weight": (2, "out"),
        f"{layer}.attention.output.LayerNorm.weight": (2, "LayerNorm"),
        f"{layer}.intermediate.dense.bias": (2, "W1"),
        f"{layer}.output.dense.weight": (2, "W2"),
        f"{layer}.output.LayerNorm.weight": (2, "LayerNorm"),
        "cls.predictions.bias": (-1, "head"),
        "cls.predictions.transform.LayerNorm.weight": (-1, "head"),
    }
    for parameter, place in expected.items():
        assert _place(blocks, parameter) == ("", *place)


def test_a_translator_has_two_stacks_and_cross_attention(sizes):
    blocks = Blocks(MAKE["mt"](sizes))
    layer = "decoder.bert.encoder.layer.0"
    assert _place(blocks, "encoder.encoder.layer.0.output.dense.weight") == ("encoder", 1, "W2")
    assert _place(blocks, f"{layer}.crossattention.self.key.weight") == ("decoder", 1, "cross key")
    layer = f"{layer}.crossattention.output"
    assert _place(blocks, f"{layer}.LayerNorm.bias") == ("decoder", 1, "LayerNorm")
    assert _place(blocks, f"{layer}.dense.bias") == ("decoder", 1, "cross out")
    assert _place(blocks, "decoder.bert.embeddings.word_embeddings.weight")[1:] == (0, "embedding")


def test_the_layer_norm_of_solu_is_one():
    trunk = Trunk(width=8, depth=1, heads=2, activation="solu")
    blocks = Blocks(scratch_model(trunk, "mlm", vocab_size=20, max_length=6, seed=0))
    inside = blocks.table[blocks.table.parameter.str.contains("intermediate_act_fn")]
    assert len(inside) and set(inside.component) == {"LayerNorm"} and set(inside.layer) == {1}


def test_unknown_names_are_other_and_split_nothing():
    model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=2, n_positions=6))
    table = Blocks(model).table
    assert set(table.component) == {"other"} and set(table["head"]) == {-1}
    assert len(table) == len(list(model.named_parameters()))


def test_frozen_parameters_are_no_blocks(masked_lm):
    masked_lm.bert.embeddings.requires_grad_(False)
    assert 0 not in set(Blocks(masked_lm).table.layer)


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


def test_several_gradients_at_once_give_what_each_gives_alone_and_are_left_as_they_are(masked_lm):
    blocks = Blocks(masked_lm, token_ids=torch.tensor([3, 4, 19]))
    weights = {n: p.detach() for n, p in masked_lm.named_parameters()}
    # In float64 nothing has to be converted: what is worked on must be a copy all the same.
    before, after, one, other = (
        {n: torch.randn_like(x, dtype=torch.float64) for n, x in weights.items()} for _ in range(4)
    )
    kept = [x.clone() for of in (before, after, one, other) for x in of.values()]
    together = blocks.dots(before, after, one, other)
    for sums, by in zip(together, (one, other), strict=True):
        assert torch.equal(sums, *blocks.dots(before, after, by))
    given = [x for of in (before, after, one, other) for x in of.values()]
    assert all(map(torch.equal, kept, given))


def test_biases_of_keys_and_unused_word_pieces_are_not_counted(masked_lm):
    table = Blocks(masked_lm, token_ids=torch.tensor([3, 4, 19])).table
    left_out = table[~table.counted]
    assert set(left_out.parameter) == {
        "bert.encoder.layer.0.attention.self.key.bias",
        "bert.encoder.layer.1.attention.self.key.bias",
        "bert.embeddings.word_embeddings.weight",
        "cls.predictions.bias",
    }
    words = table[table.parameter == "bert.embeddings.word_embeddings.weight"]
    assert words["size"].tolist() == [3 * 8, 17 * 8] and words.counted.tolist() == [True, False]


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


def test_shares_of_the_trunk_are_of_its_layers_alone(table):
    inside = shares(table, "layer", trunk=True)
    assert inside.index.tolist() == [1, 2]
    sums = {layer: table[table.layer == layer].value.sum() for layer in (1, 2)}
    assert inside[2] == pytest.approx(sums[2] / (sums[1] + sums[2]))


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
    assert block_steps(_planted(), "component").shape == (4, 2)


def test_key_biases_have_no_gradient_and_are_not_counted(table):
    bias = table[table.parameter.str.endswith("attention.self.key.bias")]
    assert bias.value.abs().max() < 1e-7 < table.value.abs().max()
    found = hurting(table, "parameter", gradient="fixed set")
    assert not found.parameter.str.endswith("attention.self.key.bias").any()


def test_unknown_groups_and_empty_changes_are_refused(table):
    with pytest.raises(ValueError, match="by: "):
        allocated(table, "depth")
    with pytest.raises(ValueError, match="by: "):
        hurting(table, gradient="fixed set")
    with pytest.raises(ValueError, match="sum to 0"):
        shares(table.assign(value=0.0), "layer")
