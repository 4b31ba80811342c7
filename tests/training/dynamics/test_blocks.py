"""Layer, component and head of a parameter; sums over groups; which labels the loss counts."""

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

from shrink_utils.training.dynamics import (
    TRUNK,
    AllocationRecorder,
    Blocks,
    FixedSetLoss,
    _loss_and_gradients,
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


@pytest.mark.parametrize(
    "make",
    [
        lambda sizes: BertLMHeadModel(BertConfig(**sizes, is_decoder=True)),
        # Its configuration does not say that it is a decoder: its class does.
        lambda sizes: GPT2LMHeadModel(
            GPT2Config(vocab_size=20, n_positions=32, n_embd=16, n_layer=1, n_head=1)
        ),
    ],
    ids=["BERT", "GPT-2"],
)
def test_a_causal_model_predicts_every_label_but_the_first(make, sizes):
    model = make(sizes).eval()
    sets = [torch.randint(0, 20, shape) for shape in [(8, 3), (2, 6)]]
    point = _loss_and_gradients(model, FixedSetLoss([{"input_ids": x, "labels": x} for x in sets]))
    logits = torch.cat([model(x).logits[:, :-1].flatten(0, 1) for x in sets])
    labels = torch.cat([x[:, 1:].flatten() for x in sets])
    expected = torch.nn.functional.cross_entropy(logits, labels)
    assert point.loss == pytest.approx(expected.item(), rel=1e-6)
