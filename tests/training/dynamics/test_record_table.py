"""Records of loss changes: nothing is lost in the table, and what is read off it."""

import numpy as np
import pytest

from shrink_utils.study import load_profile, pretrain
from shrink_utils.study.pretraining import dynamics_config, held_out_batches, scratch_tokenizer
from shrink_utils.training.dynamics import NOWHERE, AllocationRecorder, FixedSetLoss, record_table


def test_every_contribution_is_in_the_table_once():
    config = dynamics_config(load_profile("smoke"), "mlm", seed=1)
    loss = FixedSetLoss(held_out_batches(config, scratch_tokenizer(config), n=8))
    rules = ("trapezoid", "simpson")
    recorder = AllocationRecorder(loss, rules=rules)
    pretrain(config, callbacks=[recorder])
    changes = recorder.changes()
    table = record_table(changes)
    for rule in rules:
        found = table[(table.quantity == "allocation") & (table.rule == rule)]
        by_step = found.groupby("step").value.sum().to_numpy()
        np.testing.assert_allclose(by_step, changes.values[rule].sum(axis=1), rtol=1e-9)
        assert not found.duplicated(["step", *NOWHERE]).any()
    steps = table[table.quantity == "loss"].set_index("step").value
    change = steps.iloc[-1] - steps.iloc[0]
    totals = table[table.quantity == "allocation"].groupby("rule").value.sum()
    assert set(totals.index) == set(rules)
    for rule, total in totals.items():  # as chapter 10 has it
        assert abs(total - change) / abs(change) == pytest.approx(changes.closure(rule), rel=1e-6)
