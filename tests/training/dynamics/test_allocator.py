"""Along a training: by hand, beside the record."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from shrink_utils.training.dynamics import BATCH, Allocator, FixedSetLoss, loss_change


def _train(model, batches, allocator, *, steps, **sgd):
    optimizer = torch.optim.SGD(model.parameters(), **sgd)
    for i in range(steps):
        optimizer.zero_grad()
        model(**batches[i % len(batches)]).loss.backward()
        if allocator is not None:
            allocator.start()
        optimizer.step()
        if allocator is not None:
            allocator.finish()


def _mean_loss(model, batches):
    """The fixed loss without the package: mean over all predicted tokens, dropout off."""
    model.eval()
    flat = torch.cat([model(batch["input_ids"]).logits.flatten(0, 1) for batch in batches])
    loss = nn.functional.cross_entropy(flat, torch.cat([b["labels"].flatten() for b in batches]))
    model.train()
    return loss


def test_it_is_what_a_loop_by_hand_gives(masked_lm, batches):
    """Trapezoid by definition, parameter by parameter, with backward and no sharing."""
    model = masked_lm
    allocator = Allocator(model, FixedSetLoss(batches), rules=("euler", "trapezoid"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
    expected = []
    for batch in batches:
        state = torch.get_rng_state()
        starts = {n: p.detach().clone() for n, p in model.named_parameters()}
        at_start = torch.autograd.grad(_mean_loss(model, batches), [*model.parameters()])
        torch.set_rng_state(state)
        optimizer.zero_grad()
        model(**batch).loss.backward()
        allocator.start()
        optimizer.step()
        allocator.finish()
        at_end = torch.autograd.grad(_mean_loss(model, batches), [*model.parameters()])
        moves = [(p.detach() - starts[n]).double() for n, p in model.named_parameters()]
        expected.append(
            [
                float((move * (g.double() + h.double()) / 2).sum())
                for move, g, h in zip(moves, at_start, at_end, strict=True)
            ]
        )
    table = allocator.changes().table("trapezoid")
    found = table.groupby(["step", "parameter"], sort=False).value.sum().unstack()
    found = found[[name for name, _ in model.named_parameters()]].to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-8)
    assert np.abs(found).max() > 1e-3


def test_training_with_it_is_training_without_it_to_the_bit(sizes, batches):
    from transformers import BertConfig, BertForMaskedLM

    weights = []
    for watched in (False, True):
        torch.manual_seed(5)
        model = BertForMaskedLM(BertConfig(**sizes)).train()
        rules = ("euler", "trapezoid", "simpson", "adaptive")
        allocator = Allocator(model, FixedSetLoss(batches), rules=rules) if watched else None
        _train(model, batches, allocator, steps=4, lr=0.5, momentum=0.9)
        weights.append(model.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_the_end_of_a_step_is_the_start_of_the_next(masked_lm, batches):
    for rules, a_step in ((("euler", "trapezoid"), 1), (("trapezoid", "simpson"), 2)):
        allocator = Allocator(masked_lm, FixedSetLoss(batches), rules=rules)
        _train(masked_lm, batches, allocator, steps=3, lr=0.1)
        changes = allocator.changes()
        assert changes.gradients == 1 + 3 * a_step
        np.testing.assert_array_equal(changes.losses[1:, 0], changes.losses[:-1, 1])


def test_weights_that_something_else_moved_are_measured_anew(masked_lm, batches):
    allocator = Allocator(masked_lm, FixedSetLoss(batches))
    _train(masked_lm, batches, allocator, steps=1, lr=1e-3)
    with torch.no_grad():
        masked_lm.cls.predictions.bias += torch.linspace(0, 1, 20)
    _train(masked_lm, batches, allocator, steps=1, lr=1e-3)
    changes = allocator.changes()
    assert changes.gradients == 4
    assert changes.losses[1, 0] != changes.losses[0, 1]
    # What something else did is no part of the change that is allocated.
    assert changes.closure("trapezoid") < 0.01


def test_adaptive_splitting_holds_where_euler_errs_by_more_than_its_size():
    """Momentum SGD that overshoots, on a loss with steep walls."""
    model = nn.Linear(3, 1, bias=False)
    nn.init.constant_(model.weight, 2.0)
    x = torch.tensor([[1.0, 0.2, -0.1], [0.3, 1.0, 0.4], [-0.2, 0.1, 1.0]])

    def loss(model):
        return [torch.cosh(model(x)).sum().log()]

    rules = ("euler", "trapezoid", "adaptive")
    allocator = Allocator(model, loss, rules=rules, tolerance=1e-4)
    optimizer = torch.optim.SGD(model.parameters(), lr=2.5, momentum=0.9)
    for _ in range(12):
        optimizer.zero_grad()
        loss(model)[0].backward()
        allocator.start()
        optimizer.step()
        allocator.finish()
    changes = allocator.changes()
    assert changes.closure("euler") > 1
    assert changes.closure("adaptive") <= 1e-3
    assert changes.pieces.max() > 1


def test_the_batch_gradient_is_the_one_that_the_optimizer_was_given(masked_lm, batches):
    allocator = Allocator(masked_lm, FixedSetLoss(batches), batch_gradient=True)
    _train(masked_lm, batches, allocator, steps=1, lr=0.1)
    squares = sum(float((p.grad.double() ** 2).sum()) for p in masked_lm.parameters())
    # SGD moves by −lr · gradient.
    assert allocator.changes().values[BATCH].sum() == pytest.approx(-0.1 * squares, rel=1e-4)


def test_the_plain_function_agrees_with_the_record(masked_lm, batches):
    loss = FixedSetLoss(batches)
    before = {n: p.detach().clone() for n, p in masked_lm.named_parameters()}
    allocator = Allocator(masked_lm, loss, rules=("simpson",))
    _train(masked_lm, batches, allocator, steps=1, lr=0.2)
    after = {n: p.detach().clone() for n, p in masked_lm.named_parameters()}
    with torch.no_grad():
        for parameter in masked_lm.parameters():
            parameter.zero_()  # the function does not look at them
    plain = loss_change(masked_lm, loss, before, after, rules=("simpson",))
    recorded = allocator.changes()
    np.testing.assert_allclose(plain.values["simpson"], recorded.values["simpson"], rtol=1e-9)
    assert plain.change == recorded.change
    assert not any(p.detach().any() for p in masked_lm.parameters())


def test_use_out_of_order_is_refused(masked_lm, batches):
    allocator = Allocator(masked_lm, FixedSetLoss(batches))
    with pytest.raises(RuntimeError, match="start"):
        allocator.finish()
    with pytest.raises(ValueError, match="no step"):
        allocator.changes()
    with pytest.raises(ValueError, match="rules"):
        Allocator(masked_lm, FixedSetLoss(batches), rules=())
