"""Records of loss changes: nothing is lost in the table, and what is read off it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.dynamics import (
    NOWHERE,
    allocations,
    closure_errors,
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


def test_a_closure_error_is_relative_to_the_change():
    rows = [
        ("loss", "", 0, 5.0),
        ("loss", "", 1, 3.0),
        ("allocation", "euler", 1, -3.0),
        ("allocation", "batch", 1, -9.0),
    ]
    record = pd.DataFrame(rows, columns=["quantity", "rule", "step", "value"])
    assert closure_errors(record).to_dict() == {"euler": pytest.approx(0.5)}
