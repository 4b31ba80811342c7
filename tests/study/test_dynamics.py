"""Records of loss changes: nothing is lost in the table, and what is read off it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.dynamics import (
    COUNTED,
    NOWHERE,
    allocations,
    closure_errors,
    hurting_steps,
    published_steps,
    record_table,
)
from shrink_utils.study.scratch import dynamics_config
from shrink_utils.training import held_out_batches, pretrain, scratch_tokenizer
from shrink_utils.training.dynamics import BATCH, AllocationRecorder, FixedSetLoss


def test_every_contribution_is_in_the_table_once():
    config = dynamics_config(load_profile("smoke"), "mlm", seed=1)
    loss = FixedSetLoss(held_out_batches(config, scratch_tokenizer(config), n=8))
    rules = ("trapezoid", "simpson")
    recorder = AllocationRecorder(loss, rules=rules, batch_gradient=True)
    pretrain(config, callbacks=[recorder])
    changes = recorder.changes()
    table = record_table(changes)
    for rule in (*rules, BATCH):
        found = allocations(table, rule)
        by_step = found.groupby("step").value.sum().to_numpy()
        np.testing.assert_allclose(by_step, changes.values[rule].sum(axis=1), rtol=1e-9)
        assert not found.duplicated(["step", *NOWHERE]).any()
    errors = closure_errors(table)
    assert set(errors.index) == set(rules)  # of a mini-batch there is none
    for rule, error in errors.items():
        assert error == pytest.approx(changes.closure(rule), rel=1e-6)


def record(rule: str = "trapezoid", **values: list[float]) -> pd.DataFrame:
    """One layer, a component's contributions by step as keyword; the others are −1 throughout."""
    steps = len(next(iter(values.values())))
    rows = [
        (step, layer, component, values.get(component, helps)[step - 1] if layer == 1 else -1.0)
        for helps in [[-1.0] * steps]
        for step in range(1, steps + 1)
        for layer in (1, 2)
        for component in (*COUNTED, "embedding", "cross query")
    ]
    table = pd.DataFrame(rows, columns=["step", "layer", "component", "value"])
    return table.assign(quantity="allocation", rule=rule, stack="", head=-1, counted=True)


def test_positive_block_steps_are_counted_over_layers():
    found = hurting_steps(record(key=[1, 1, -1, 2], W2=[-1, 3, -1, -1]), "fixed set")
    assert found.positive.to_dict() == dict.fromkeys(COUNTED, 0) | {"key": 3, "W2": 1}
    assert found.share["key"] == pytest.approx(3 / 4) and found.share.sum() == pytest.approx(1)
    assert found.rate["key"] == pytest.approx(3 / 8)  # 4 steps of 2 layers
    assert found["last"].to_dict()["key"] == 1 and found["last"]["W2"] == pytest.approx(2 / 4)
    assert found.maximum["W2"] == 3 and found.maximum["value"] == -1


def test_the_gradient_chooses_the_rule():
    both = pd.concat([record(key=[1.0, 1.0]), record("batch", key=[-1.0, -1.0])])
    assert hurting_steps(both, "fixed set").positive["key"] == 2
    assert hurting_steps(both, "mini-batch").positive["key"] == 0


def test_published_counts_are_those_of_v():
    table = published_steps().set_index(["objective", "component"])
    assert table.loc[("mlm", "query"), "positive"] == 2055
    assert table.loc["mlm"].share[["key", "query"]].sum() == pytest.approx(3620 / 3650)
    assert table.loc["clm"].positive.sum() == 29 + 5 * 24
    assert table.loc["mt"].positive.tolist() == [64, 64, 130, 113, 59, 131]
    assert table.loc["mlm", "last"].iloc[0] == pytest.approx(59727 / 125000)


def test_a_closure_error_is_relative_to_the_change():
    rows = [
        ("loss", "", 0, 5.0),
        ("loss", "", 1, 3.0),
        ("allocation", "euler", 1, -3.0),
        ("allocation", "batch", 1, -9.0),
    ]
    record = pd.DataFrame(rows, columns=["quantity", "rule", "step", "value"])
    assert closure_errors(record).to_dict() == {"euler": pytest.approx(0.5)}
