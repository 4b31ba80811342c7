"""What notebook 10 measures, with the sizes of smoke and fewer seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.dynamics.experiment import (
    NOWHERE,
    allocations,
    dynamics_config,
    follow,
    measure_dynamics,
    measure_stability,
    record_table,
)
from shrink_utils.study.dynamics.reading import closure_errors
from shrink_utils.training.dynamics import BATCH, allocated


@pytest.fixture(scope="module")
def followed():
    """Configuration; changes, held-out loss and seconds."""
    config = dynamics_config(load_profile("smoke"), "mlm", seed=1)
    rules = ("trapezoid", "simpson")
    return config, follow(config, sentences=8, rules=rules, batch_gradient=True)


def test_every_contribution_is_in_the_table_once(followed):
    _, (changes, *_) = followed
    record = record_table(changes)
    for rule in ("trapezoid", "simpson", BATCH):
        found = allocations(record, rule)
        by_step = found.groupby("step").value.sum().to_numpy()
        np.testing.assert_allclose(by_step, changes.values[rule].sum(axis=1), rtol=1e-9)
        assert not found.duplicated(["step", *NOWHERE]).any()
    errors = closure_errors(record)
    assert set(errors.index) == {"trapezoid", "simpson"}  # of a mini-batch there is none
    for rule, error in errors.items():
        assert error == pytest.approx(changes.closure(rule), rel=1e-6)


def test_following_the_same_training_twice_gives_the_same_numbers(followed):
    config, (first, *_) = followed
    again, *_ = follow(config, sentences=8, rules=("trapezoid",))
    np.testing.assert_array_equal(again.values["trapezoid"], first.values["trapezoid"])
    other, *_ = follow(replace(config, seed=5), sentences=8, rules=("trapezoid",))
    assert other.losses[0, 0] != first.losses[0, 0]


@pytest.fixture
def small(tiny_profile, results, monkeypatch):
    """Two seeds and two steps; tables are kept, so that every one is measured once."""
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(results))
    monkeypatch.setattr(type(tiny_profile.dynamics), "sources", ("editorials",))
    dynamics = replace(tiny_profile.dynamics, steps=2, data_sizes=(16, 24))
    pretraining = replace(tiny_profile.pretraining, seeds=(0, 1))
    return replace(tiny_profile, name="tiny_dynamics", pretraining=pretraining, dynamics=dynamics)


def test_recording_changes_nothing_and_is_timed_beside_plain_training(small):
    table = measure_dynamics(small)
    held_out = table[table.quantity == "held out"]
    held_out = held_out.pivot(index="objective", columns="rule", values="value")
    assert (held_out.plain == held_out.trapezoid).all()
    seconds = table[table.quantity == "seconds"].groupby(["objective", "rule"]).value.count()
    assert seconds.unstack().loc["mt"].to_dict() == {"plain": 1, "trapezoid": 1}


def test_the_causal_runs_of_a_text_are_those_of_the_record(small):
    """The profile of a run is the sum of its allocation, not something else."""
    sizes = small.dynamics
    changed = {"source": "editorials", "sentences": 24, "steps": sizes.stability_steps}
    config = dynamics_config(small, "clm", seed=1, **changed)
    changes, *_ = follow(config, sentences=sizes.sentences, rules=("trapezoid",))
    expected = allocated(allocations(record_table(changes)), "layer", "component")
    found = measure_stability(small).query("source == 'editorials' and size == 24 and seed == 1")
    found = found.set_index(["layer", "component"]).value
    np.testing.assert_allclose(found, expected.reindex(found.index), rtol=1e-9)
