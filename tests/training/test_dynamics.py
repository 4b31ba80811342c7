"""Loss change allocation: exact where the integral is known, along a training, in its table."""

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch import nn
from torch.nn.functional import cross_entropy
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertLMHeadModel,
    BertModel,
    EncoderDecoderModel,
    GPT2Config,
    GPT2LMHeadModel,
    PrinterCallback,
    Trainer,
)

from shrink_utils.study.finetuning import _quiet_arguments
from shrink_utils.training.dynamics import (
    NOWHERE,
    TRUNK,
    AllocationRecorder,
    Blocks,
    FixedSetLoss,
    _loss_and_gradients,
    loss_change,
    record_table,
    shares,
)

SIZES = {"vocab_size": 20, "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 16, "max_position_embeddings": 6}
RULES = ("trapezoid", "simpson")


class Power(nn.Module):
    """Σ cᵢ θᵢᵖ: a sum over parameters, so that the exact allocation is cᵢ (yᵢᵖ − xᵢᵖ)."""

    def __init__(self, power: int) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.tensor([0.3, -1.0, 2.0, 0.7], dtype=torch.float64))
        self.ignored = nn.Parameter(torch.ones(2, dtype=torch.float64))
        self.c = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
        self.power = power

    def loss(self, model: nn.Module) -> list[torch.Tensor]:
        return [(self.c * model.theta**self.power).sum()]

    def weights(self, *values: float) -> dict[str, torch.Tensor]:
        return {
            "theta": torch.tensor(values, dtype=torch.float64),
            "ignored": torch.zeros(2, dtype=torch.float64),
        }


X, Y = (0.3, -1.0, 2.0, 0.7), (1.1, 0.4, -0.5, 0.7)


def _theta(changes, rule):
    """Contribution of the parameter that matters; it stands before the ignored one."""
    assert changes.blocks.parameter.tolist() == ["theta", "ignored"]
    assert changes.values[rule][0, 1] == 0
    return float(changes.values[rule][0, 0])


def _exact(model):
    x, y = torch.tensor([X, Y], dtype=torch.float64)
    return float((model.c * (y**model.power - x**model.power)).sum())


def _changes(model, **options):
    return loss_change(model, model.loss, model.weights(*X), model.weights(*Y), **options)


def test_the_trapezoid_is_exact_for_a_quadratic_loss_and_euler_is_not():
    model = Power(2)
    changes = _changes(model, rules=("euler", "trapezoid"))
    assert np.diff(changes.losses).item() == pytest.approx(_exact(model), rel=1e-12)
    assert _theta(changes, "trapezoid") == pytest.approx(_exact(model), rel=1e-12)
    # Euler misses the second-order term Σ c Δ².
    second = sum(c * (y - x) ** 2 for c, x, y in zip(model.c.tolist(), X, Y, strict=True))
    assert _theta(changes, "euler") == pytest.approx(_exact(model) - second, rel=1e-12)
    assert changes.closure("trapezoid") < 1e-12
    assert changes.closure("euler") == pytest.approx(abs(second / _exact(model)), rel=1e-9)


def test_simpson_is_exact_for_a_cubic_loss_and_the_trapezoid_misses_half_the_third_order():
    model = Power(3)
    changes = _changes(model, rules=("trapezoid", "simpson"))
    assert _theta(changes, "simpson") == pytest.approx(_exact(model), rel=1e-12)
    # ∫ 3cθ²Δ by two nodes: the error of the trapezoid is (1/12) f'' = c Δ³ / 2.
    third = sum(c * (y - x) ** 3 / 2 for c, x, y in zip(model.c.tolist(), X, Y, strict=True))
    assert _theta(changes, "trapezoid") == pytest.approx(_exact(model) + third, rel=1e-12)


def _batches():
    """Two fixed batches, of 3 and 2 examples, of the word-pieces 5 to 14."""
    generator = torch.Generator().manual_seed(1)
    for rows in (3, 2):
        ids = torch.randint(5, 15, (rows, 6), generator=generator)
        labels = torch.where(torch.rand(rows, 6, generator=generator) < 0.4, ids, -100)
        labels[0, 0] = ids[0, 0]
        yield {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": labels}


BATCHES = list(_batches())


def _trained(folder, *recorders):
    """A masked LM after four steps of the Trainer, with dropout."""
    torch.manual_seed(0)
    columns = {name: torch.cat([b[name] for b in BATCHES]).tolist() * 4 for name in BATCHES[0]}
    schedule = {"max_steps": 4, "learning_rate": 2e-3, "lr_scheduler_type": "constant"}
    trainer = Trainer(
        model=BertForMaskedLM(BertConfig(**SIZES)),
        args=_quiet_arguments(str(folder), per_device_train_batch_size=4, **schedule),
        train_dataset=Dataset.from_dict(columns),
        callbacks=list(recorders),
    )
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    return trainer.model


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A model that was watched while it was trained, its changes, and how often it was measured."""
    loss, evaluations = FixedSetLoss(BATCHES), []

    def counted(model):
        evaluations.append(1)
        return loss(model)

    recorder = AllocationRecorder(counted, rules=RULES)
    model = _trained(tmp_path_factory.mktemp("watched"), recorder)
    return model, recorder.changes(), len(evaluations)


def test_a_training_that_is_watched_ends_in_the_same_weights_to_the_bit(watched, tmp_path):
    model, changes, evaluations = watched
    for (name, x), y in zip(_trained(tmp_path).named_parameters(), model.parameters(), strict=True):
        assert torch.equal(x, y), name
    assert changes.values["trapezoid"].shape[0] == 4
    assert evaluations == 9  # steps share their ends
    assert changes.closure("simpson") < 1e-3
    flat = [model.eval()(batch["input_ids"]).logits.flatten(0, 1) for batch in BATCHES]
    labels = torch.cat([batch["labels"].flatten() for batch in BATCHES])
    expected = cross_entropy(torch.cat(flat), labels).item()
    assert changes.losses[-1, 1] == pytest.approx(expected, rel=1e-5)


def test_every_contribution_is_in_the_table_once(watched):
    _, changes, _ = watched
    table = record_table(changes)
    steps = table[table.quantity == "loss"].set_index("step").value
    change = steps.iloc[-1] - steps.iloc[0]
    for rule in RULES:
        found = table[(table.quantity == "allocation") & (table.rule == rule)]
        by_step = found.groupby("step").value.sum().to_numpy()
        np.testing.assert_allclose(by_step, changes.values[rule].sum(axis=1), rtol=1e-9)
        assert not found.duplicated(["step", *NOWHERE]).any()
        closure = abs(found.value.sum() - change) / abs(change)  # as chapter 10 has it
        assert closure == pytest.approx(changes.closure(rule), rel=1e-6)


@pytest.mark.parametrize("by", ["step", "head", ["stack", "layer", "component", "head", "step"]])
def test_shares_of_any_grouping_sum_to_one(watched, by):
    table, by = watched[1].table("trapezoid"), [by] if isinstance(by, str) else by
    assert shares(table, *by).sum() == pytest.approx(1)
    assert shares(table, *by, trunk=True).sum() == pytest.approx(1)


def _translator():
    decoder = BertConfig(**SIZES, is_decoder=True, add_cross_attention=True)
    return EncoderDecoderModel(
        encoder=BertModel(BertConfig(**SIZES)), decoder=BertLMHeadModel(decoder)
    )


MAKE = {
    "mlm": lambda: BertForMaskedLM(BertConfig(**SIZES)),
    "clm": lambda: BertLMHeadModel(BertConfig(**SIZES, is_decoder=True)),
    "mt": _translator,
    "classifier": lambda: BertForSequenceClassification(BertConfig(**SIZES)),
}


@pytest.mark.parametrize("kind", MAKE)
def test_every_parameter_of_bert_like_models_has_its_place(kind):
    model = MAKE[kind]()
    table = Blocks(model).table
    assert table["size"].sum() == sum(p.numel() for p in model.parameters())
    assert set(table.parameter) == {name for name, _ in model.named_parameters()}
    assert set(table.component) <= {"embedding", *TRUNK, "head"}
    trunk = table[table.layer > 0]
    assert set(trunk.layer) == {1, 2}
    assert {"query", "key", "value", "out", "W1", "W2", "LayerNorm"} <= set(trunk.component)


def test_sums_are_over_the_rows_and_columns_of_each_block():
    masked_lm = BertForMaskedLM(BertConfig(**SIZES))
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


GPT = {"vocab_size": 20, "n_positions": 32, "n_embd": 16, "n_layer": 1, "n_head": 1}


# The configuration of GPT-2 does not say that it is a decoder: its class does.
@pytest.mark.parametrize("make", [MAKE["clm"], lambda: GPT2LMHeadModel(GPT2Config(**GPT))])
def test_a_causal_model_predicts_every_label_but_the_first(make):
    model = make().eval()
    sets = [torch.randint(0, 20, shape) for shape in [(8, 3), (2, 6)]]
    point = _loss_and_gradients(model, FixedSetLoss([{"input_ids": x, "labels": x} for x in sets]))
    logits = torch.cat([model(x).logits[:, :-1].flatten(0, 1) for x in sets])
    labels = torch.cat([x[:, 1:].flatten() for x in sets])
    assert point.loss == pytest.approx(cross_entropy(logits, labels).item(), rel=1e-6)
