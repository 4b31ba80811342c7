"""Records of allocations as tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.dynamics.followed import (
    allocations,
    closure_errors,
    dynamics_config,
    follow,
    record_table,
)
from shrink_utils.training.dynamics import BATCH


@pytest.fixture(scope="module")
def followed():
    smoke = load_profile("smoke")
    config = dynamics_config(smoke, "mlm", seed=1)
    return follow(config, sentences=8, rules=("trapezoid", "simpson"), batch_gradient=True), config


def test_the_config_is_the_trunk_with_the_sizes_of_dynamics():
    smoke = load_profile("smoke")
    config = dynamics_config(smoke, "clm", seed=2, source="movies")
    assert (config.width, config.depth) == (smoke.pretraining.width, smoke.pretraining.depth)
    assert (config.steps, config.batch_size) == (smoke.dynamics.steps, smoke.dynamics.batch_size)
    assert (config.vocabulary, config.max_length) == (
        smoke.dynamics.vocabulary,
        smoke.dynamics.max_length,
    )
    assert (config.objective, config.seed, config.source) == ("clm", 2, "movies")


def test_every_contribution_is_in_the_table_once(followed):
    changes = followed[0].changes
    record = record_table(changes)
    for rule in ("trapezoid", "simpson", BATCH):
        found = allocations(record, rule)
        by_step = found.groupby("step").value.sum().to_numpy()
        np.testing.assert_allclose(by_step, changes.values[rule].sum(axis=1), rtol=1e-9)
        assert not found.duplicated(
            ["step", "stack", "layer", "component", "head", "counted"]
        ).any()


def test_losses_begin_before_the_first_step(followed):
    (result, config) = followed
    loss = record_table(result.changes).query("quantity == 'loss'")
    assert loss.step.tolist() == list(range(config.steps + 1))
    assert loss.value.iloc[0] == result.changes.losses[0, 0]
    assert loss.value.iloc[-1] == result.changes.losses[-1, 1]
    assert 0 < result.seconds and 0 < result.held_out


def test_closure_errors_are_those_of_the_record(followed):
    changes = followed[0].changes
    errors = closure_errors(record_table(changes))
    assert set(errors.index) == {"trapezoid", "simpson"}  # of a mini-batch there is none
    for rule, error in errors.items():
        assert error == pytest.approx(changes.closure(rule), rel=1e-6)


def test_following_the_same_training_twice_gives_the_same_numbers(followed):
    (first, config) = followed
    again = follow(config, sentences=8, rules=("trapezoid",))
    np.testing.assert_array_equal(
        again.changes.values["trapezoid"], first.changes.values["trapezoid"]
    )
    other = follow(replace(config, seed=5), sentences=8, rules=("trapezoid",))
    assert other.changes.losses[0, 0] != first.changes.losses[0, 0]


def test_a_closure_error_is_relative_to_the_change():
    place = {"stack": "", "layer": 1, "component": "W1", "head": -1, "counted": True}
    rows = [
        {"quantity": "loss", "rule": "", "step": 0, "value": 5.0},
        {"quantity": "loss", "rule": "", "step": 1, "value": 3.0},
        {"quantity": "allocation", "rule": "euler", "step": 1, "value": -3.0},
    ]
    record = pd.DataFrame([{**place, **row} for row in rows])
    assert closure_errors(record).to_dict() == {"euler": pytest.approx(0.5)}
