"""What an evaluation keeps and a step notes; tests/training/test_stock.py has the losses."""

import math

import pytest
import torch

from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training import BarcodeTrainer, StepRecorder
from shrink_utils.training.penalties import AverageCosine, RankedBars, Regrouped
from tests.training.conftest import bert, make_rows

pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument")


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_an_evaluation_keeps_the_embeddings_of_its_rows_in_their_order(make_trainer, pooling):
    own = {"recorder": StepRecorder(), "pooling": pooling}
    trainer = make_trainer(BarcodeTrainer, own=own, compute_metrics=lambda prediction: {})
    rows = make_rows(18)
    trainer.evaluate(rows)
    trainer.predict([rows[3], rows[5]])
    ids = torch.stack([row["input_ids"] for row in rows])
    with torch.no_grad():
        outputs = trainer.model.eval()(ids, output_hidden_states=True)
    states = outputs.hidden_states[-1]  # (18, t, d)
    expected = states[:, 0] if pooling == "cls" else states.mean(dim=1)
    whole, two = trainer.recorder.evaluated
    torch.testing.assert_close(whole.embeddings, expected)
    torch.testing.assert_close(whole.outputs, outputs.logits)
    torch.testing.assert_close(two.embeddings, expected[[3, 5]])
    torch.testing.assert_close(two.outputs, outputs.logits[[3, 5]])


def test_a_step_notes_the_gradients_of_both_losses_at_the_embeddings(make_trainer):
    """Against the same pass by hand."""
    regularizer = BarcodeRegularizer("all", weight=0.7)
    model = bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).train()
    own = {"recorder": StepRecorder(), "regularizer": regularizer}
    trainer = make_trainer(BarcodeTrainer, model=model, own=own)
    batch = trainer.data_collator(make_rows(12))
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


def test_a_part_without_labels_leaves_the_task_loss_of_a_step_a_number(make_trainer):
    rows = [row | {"labels": -100} if i % 2 else row for i, row in enumerate(make_rows(8))]
    sizes = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 4}
    own = {"regularizer": AverageCosine()}
    with pytest.warns(UserWarning, match="AverageCosine"):  # of one row a part
        trainer = make_trainer(BarcodeTrainer, rows=rows, own=own, logging_steps=1, **sizes)
        trainer.train()
    losses = [entry["task_loss"] for entry in trainer.state.log_history if "task_loss" in entry]
    assert len(losses) == 3 and all(map(math.isfinite, losses)) and max(losses) > 0
