"""Sums over groups, and the steps that hurt."""

from __future__ import annotations

import pandas as pd
import pytest
import torch

from shrink_utils.training.dynamics import (
    Allocator,
    FixedSetLoss,
    allocated,
    block_steps,
    hurting,
    shares,
)


@pytest.fixture
def table(masked_lm, batches):
    """Three steps of SGD, by the trapezoid."""
    loss = FixedSetLoss(batches)
    allocator = Allocator(masked_lm, loss, token_ids=loss.token_ids)
    optimizer = torch.optim.SGD(masked_lm.parameters(), lr=0.5)
    for batch in [*batches, batches[0]]:
        optimizer.zero_grad()
        masked_lm(**batch).loss.backward()
        allocator.start()
        optimizer.step()
        allocator.finish()
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
