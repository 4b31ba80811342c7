"""Gradients of the whole loss against its definition written out; what a step notes."""

import copy
import math

import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import DataCollatorWithPadding, TrainerCallback

from shrink_utils.models import Encoder, hidden_states, load_classifier
from shrink_utils.study.finetuning import _quiet_arguments, _tokenized
from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.topology import barcodes as of_topology
from shrink_utils.topology.spanning_tree import minimum_spanning_tree
from shrink_utils.training import BarcodeTrainer, StepRecorder
from shrink_utils.training.penalties import AverageCosine, RankedBars, Regrouped

TEXTS = ["one", "two words", "three words now", "four words stand here", "five", "and six"]


def _rows(n):
    texts = [f"{TEXTS[k % len(TEXTS)]} {k}" for k in range(n)]  # equal rows have no bars
    columns = {"text": texts, "text_pair": [None] * n, "label": [k % 2 for k in range(n)]}
    return Dataset.from_dict(columns)


@pytest.fixture
def make_trainer(tmp_path):
    def make(*, regularizer=None, rows=None, **options):
        model, tokenizer = load_classifier("tiny-random", n_labels=2, seed=0)
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0  # two passes have to agree
        return BarcodeTrainer(
            model=model,
            args=_quiet_arguments(str(tmp_path), use_cpu=True, **options),
            data_collator=DataCollatorWithPadding(tokenizer),
            train_dataset=None if rows is None else _tokenized(rows, tokenizer),
            regularizer=regularizer or BarcodeRegularizer("all", weight=0.7),
            recorder=StepRecorder(),
            pooling="cls",
        )

    return make


def _batch(trainer):
    batch = trainer.data_collator.tokenizer(TEXTS, padding=True, return_tensors="pt")
    return {**batch, "labels": torch.tensor([0, 1, 0, 1, 0, 1])}


class Gradients(TrainerCallback):
    """What the optimizer is about to see."""

    def on_pre_optimizer_step(self, args, state, control, model=None, **kwargs):
        self.seen = {name: p.grad.clone() for name, p in model.named_parameters()}


def test_the_gradient_of_a_step_is_that_of_both_losses(make_trainer):
    gradients, regularizer = Gradients(), BarcodeRegularizer("all", weight=0.7)
    options = {"max_steps": 1, "per_device_train_batch_size": 10, "max_grad_norm": 0.0}
    trainer = make_trainer(regularizer=regularizer, rows=_rows(10), **options)
    by_hand, batch = copy.deepcopy(trainer.model), next(iter(trainer.get_train_dataloader()))
    trainer.add_callback(gradients)
    trainer.train()
    outputs = by_hand(**batch, output_hidden_states=True)
    term = regularizer(outputs.hidden_states[-1][:, 0], batch["labels"]).loss
    assert term.item() != 0
    (outputs.loss + term).backward()
    for name, parameter in by_hand.named_parameters():
        torch.testing.assert_close(gradients.seen[name], parameter.grad, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_an_evaluation_keeps_the_embeddings_of_its_rows_in_their_order(make_trainer, pooling):
    trainer, rows = make_trainer(), _rows(18)
    tokenizer = trainer.data_collator.tokenizer
    trainer.pooling, trainer.compute_metrics = pooling, lambda prediction: {}
    trainer.evaluate(_tokenized(rows, tokenizer))
    trainer.predict(_tokenized(rows.select([3, 5]), tokenizer))
    encoder = Encoder("tiny-random", trainer.model.base_model, tokenizer)
    expected = hidden_states(encoder, rows["text"][:], pooling=pooling)[-1]  # (18, d)
    whole, two = trainer.recorder.evaluated
    assert torch.allclose(whole.embeddings, expected, atol=1e-5)
    assert torch.allclose(two.embeddings, expected[[3, 5]], atol=1e-5)
    assert whole.outputs.shape == (18, 2)
    assert torch.allclose(two.outputs, whole.outputs[[3, 5]], atol=1e-5)


def test_regression_takes_the_batch_as_one_cloud(make_trainer):
    trainer = make_trainer()
    trainer.model.config.problem_type = "regression"
    batch = _batch(trainer) | {"labels": torch.rand(6, 2)}
    trainer.compute_loss(trainer.model.train(), batch)
    assert trainer.recorder._observed["n_bars_0"] == 5
    assert "n_bars_1" not in trainer.recorder._observed


def test_a_penalty_is_added_and_the_prominent_bars_are_watched(make_trainer):
    penalty = AverageCosine(weight=0.7)
    trainer = make_trainer(regularizer=penalty)
    model, batch = trainer.model.train(), _batch(trainer)
    outputs = model(**batch, output_hidden_states=True)
    cls = outputs.hidden_states[-1][:, 0].detach()  # (b, d)
    loss = trainer.compute_loss(model, batch)
    expected, bars = penalty(cls, batch["labels"]).loss, BarcodeRegularizer()(cls, batch["labels"])
    assert torch.allclose(loss, outputs.loss + expected)
    observed = trainer.recorder._observed
    assert observed["regularizer"] == expected.item()
    assert observed["entropy"] == float(bars.entropy.sum())
    assert observed["n_features_0"] == bars.n_features[0]
    loss.backward()
    assert all(p.grad.isfinite().all() for p in model.base_model.encoder.parameters())


def test_a_step_notes_the_gradients_of_both_losses_at_the_embeddings(make_trainer):
    """Against the same pass by hand."""
    regularizer = BarcodeRegularizer("all", weight=0.7)
    trainer = make_trainer(regularizer=regularizer)
    model, batch = trainer.model.train(), _batch(trainer)
    outputs = model(**batch, output_hidden_states=True)
    last = outputs.hidden_states[-1]  # (b, t, d)
    (task,) = torch.autograd.grad(outputs.loss, last, retain_graph=True)
    cls = last[:, 0].detach().requires_grad_()
    (reward,) = torch.autograd.grad(regularizer(cls, batch["labels"]).loss, cls)
    trainer.compute_loss(model, batch).backward()  # afterwards the graph is still whole
    observed = trainer.recorder._observed
    assert observed["task_gradient"] == pytest.approx(task.norm().item(), rel=1e-4)
    assert observed["reward_gradient"] == pytest.approx(reward.norm().item(), rel=1e-4)
    assert observed["task_gradient"] > 0 and observed["reward_gradient"] > 0


def test_a_step_notes_the_shape_of_its_classes_and_how_far_its_bars_are_from_equal():
    """Two classes at ±3 on the first axis; inside, sums of squares 4 and 16 on the others."""
    inside = torch.tensor([[0.0, 1, 0], [0, -1, 0], [0, 0, 2], [0, 0, -2]])
    apart = torch.tensor([3.0, 0, 0])
    x, labels = torch.cat([inside + apart, inside - apart]), torch.tensor([0] * 4 + [1] * 4)
    recorder, bars = StepRecorder(), BarcodeRegularizer("all")(x, labels)
    recorder.observe(torch.zeros(()), x, labels, bars, regularizer=torch.zeros(()))
    observed = recorder._observed
    assert observed["within_1"] == pytest.approx(16 / 20)
    assert observed["between"] == pytest.approx(72 / 92)
    assert observed["n_selected"] == 6
    lengths = torch.tensor([2.0, 5**0.5, 5**0.5])  # of each class's tree
    p = lengths / lengths.sum()
    missing = 2 * (math.log(3) + (p * p.log()).sum().item())
    assert observed["missing_entropy"] == pytest.approx(missing, abs=1e-6)
    more, unknown = torch.cat([x, x + 9]), torch.cat([labels, torch.full((8,), -100)])
    recorder.observe(torch.zeros(()), more, unknown, bars, regularizer=torch.zeros(()))
    for name in ("within_1", "between"):  # rows without a label are no class
        assert recorder._observed[name] == observed[name]
    recorder.observe(torch.zeros(()), x, None, bars, regularizer=torch.zeros(()))
    assert not {"within_1", "between"} & set(recorder._observed)  # a regression has no classes


# Trees of a step of two classes: each class's, and for other groups their own as well.
TREES = {
    "prominent": (BarcodeRegularizer, 2),
    "a penalty": (AverageCosine, 2),
    "one cloud": (lambda: Regrouped("batch"), 3),
}


@pytest.mark.filterwarnings("ignore:.* no class of the first batch")
@pytest.mark.parametrize("reward", TREES)
def test_no_step_builds_a_tree_that_it_has_already(make_trainer, monkeypatch, reward):
    made, expected = TREES[reward]
    trainer, built = make_trainer(regularizer=made()), []

    def counted(*args):
        built.append(args)
        return minimum_spanning_tree(*args)

    monkeypatch.setattr(of_topology, "minimum_spanning_tree", counted)
    trainer.compute_loss(trainer.model.train(), _batch(trainer))
    assert len(built) == expected


@pytest.mark.parametrize(
    "reward",
    [
        BarcodeRegularizer(),
        BarcodeRegularizer(rule="published"),
        AverageCosine(),
        Regrouped("batch"),
        Regrouped("shuffled"),
        RankedBars("longest"),
    ],
    ids=lambda reward: f"{type(reward).__name__} {reward.extra_repr()}",
)
def test_the_entropy_of_every_bar_is_that_of_the_classes_whatever_the_reward_is_of(reward):
    x, labels = torch.randn(20, 5), torch.arange(20) % 2
    recorder, every = StepRecorder(), BarcodeRegularizer("all")(x, labels)
    recorder.observe(torch.zeros(()), x, labels, reward(x, labels), regularizer=torch.zeros(()))
    observed = recorder._observed
    assert observed["entropy_all"] == pytest.approx(float(every.entropy.sum()), rel=1e-6)
    assert (observed["n_bars_0"], observed["n_bars_1"]) == (9, 9)
