"""Rules where the integral is known in closed form; along a training; as the Trainer's callback."""

import numpy as np
import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import BertConfig, BertForMaskedLM, PrinterCallback, Trainer

from shrink_utils.study.finetuning import _quiet_arguments
from shrink_utils.training.dynamics import AllocationRecorder, FixedSetLoss, loss_change


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


def test_it_is_what_a_loop_by_hand_gives(masked_lm, batches, mean_loss, train):
    """Trapezoid by definition, parameter by parameter, with backward and no sharing."""
    model = masked_lm
    recorder = AllocationRecorder(FixedSetLoss(batches), rules=("euler", "trapezoid"))
    recorder.begin(model)
    expected = []

    def gradients():
        modes = torch.get_rng_state(), model.training
        found = torch.autograd.grad(mean_loss(model, batches), [*model.parameters()])
        torch.set_rng_state(modes[0])
        model.train(modes[1])
        return found

    for batch in batches:
        starts = {n: p.detach().clone() for n, p in model.named_parameters()}
        at_start = gradients()
        train(model, [batch], recorder, steps=1, lr=0.3)
        moves = [(p.detach() - starts[n]).double() for n, p in model.named_parameters()]
        expected.append(
            [
                float((move * (g.double() + h.double()) / 2).sum())
                for move, g, h in zip(moves, at_start, gradients(), strict=True)
            ]
        )
    table = recorder.changes().table("trapezoid")
    found = table.groupby(["step", "parameter"], sort=False).value.sum().unstack()
    found = found[[name for name, _ in model.named_parameters()]].to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-8)
    assert np.abs(found).max() > 1e-3


@pytest.fixture
def trained(sizes, batches, tmp_path):
    """A function that trains the masked LM of a seed by the Trainer, with or without a recorder."""

    schedule = {"max_steps": 4, "learning_rate": 2e-3, "lr_scheduler_type": "constant"}

    def run(*recorders):
        torch.manual_seed(0)
        ids, labels = (torch.cat([b[k] for b in batches]).tolist() for k in ("input_ids", "labels"))
        trainer = Trainer(
            model=BertForMaskedLM(BertConfig(**sizes)),
            args=_quiet_arguments(str(tmp_path), per_device_train_batch_size=4, **schedule),
            train_dataset=Dataset.from_dict({"input_ids": ids * 4, "labels": labels * 4}),
            callbacks=list(recorders),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        return trainer.model

    return run


def test_a_trainer_run_with_it_ends_in_the_same_weights_to_the_bit(trained, batches, mean_loss):
    loss, evaluations = FixedSetLoss(batches), []

    def counted(model):
        evaluations.append(1)
        return loss(model)

    recorder = AllocationRecorder(counted, rules=("trapezoid", "simpson"))
    plain, watched = trained(), trained(recorder)
    for (name, x), y in zip(plain.named_parameters(), watched.parameters(), strict=True):
        assert torch.equal(x, y), name
    changes = recorder.changes()
    assert changes.values["trapezoid"].shape[0] == 4
    assert len(evaluations) == 9  # steps share their ends
    assert changes.closure("simpson") < 1e-3
    assert changes.losses[-1, 1] == pytest.approx(mean_loss(watched, batches).item(), rel=1e-5)
