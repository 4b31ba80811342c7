"""What notebook 10 measures, with the sizes of smoke and fewer seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shrink_utils.study.dynamics.arms import measure_arms
from shrink_utils.study.dynamics.followed import allocations, closure_errors
from shrink_utils.study.dynamics.objectives import measure_dynamics
from shrink_utils.study.dynamics.sgd import measure_sgd
from shrink_utils.study.dynamics.stability import measure_stability
from shrink_utils.training.dynamics import RULES, allocated


@pytest.fixture
def small(tiny_profile, results, monkeypatch):
    """Two seeds and two steps; tables are kept, so that every one is measured once."""
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(results))
    return replace(
        tiny_profile,
        name="tiny_dynamics",
        pretraining=replace(tiny_profile.pretraining, seeds=(0, 1)),
        dynamics=replace(
            tiny_profile.dynamics,
            steps=2,
            data_sizes=(16, 24),
            sources=("editorials",),
            arms=("none", "all"),
        ),
    )


def test_every_objective_and_seed_is_followed_step_by_step(small):
    table = measure_dynamics(small)
    assert set(zip(table.objective, table.seed, strict=True)) == {
        (objective, seed) for objective in ("mlm", "clm", "mt") for seed in (0, 1)
    }
    for (objective, seed), record in table.groupby(["objective", "seed"]):
        rules = {"euler", "trapezoid", "batch"} | ({"simpson"} if seed == 0 else set())
        assert set(record[record.quantity == "allocation"].rule) == rules
        found = allocations(record)
        assert set(found.step) == {1, 2} and set(found.layer) == {-1, 0, 1, 2}
        assert set(found["stack"]) == ({"encoder", "decoder"} if objective == "mt" else {""})
        loss = record[record.quantity == "loss"].value
        assert closure_errors(record)["trapezoid"] < 0.05
        assert loss.iloc[-1] - loss.iloc[0] == pytest.approx(found.value.sum(), rel=0.05)


def test_recording_changes_nothing_and_is_timed_beside_plain_training(small):
    table = measure_dynamics(small)
    held_out = table[table.quantity == "held out"].pivot(
        index="objective", columns="rule", values="value"
    )
    assert (held_out.plain == held_out.trapezoid).all()
    seconds = table[table.quantity == "seconds"].groupby(["objective", "rule"]).value.count()
    assert seconds.unstack().loc["mt"].to_dict() == {"plain": 1, "simpson": 1, "trapezoid": 1}


def test_momentum_sgd_is_recorded_by_every_rule(small):
    record = measure_sgd(small)
    assert set(record[record.quantity == "allocation"].rule) == set(RULES)
    pieces = record[record.quantity == "pieces"]
    assert pieces.step.tolist() == [1, 2, 3] and pieces.value.between(1, 32).all()
    errors = closure_errors(record)
    assert errors["adaptive"] < errors["euler"]


def test_arms_start_from_the_same_loss_and_part(small):
    table = measure_arms(small)
    assert list(dict.fromkeys(table.arm)) == ["none", "all"] and set(table.seed) == {0}
    loss = table[table.quantity == "loss"].pivot(index="step", columns="arm", values="value")
    assert loss.loc[0, "none"] == loss.loc[0, "all"]
    assert loss.loc[2, "none"] != loss.loc[2, "all"]
    for _, record in table.groupby("arm"):
        assert closure_errors(record)["trapezoid"] < 0.05
        assert (record[record.quantity == "entropy"].value > 0).all()


def test_profiles_are_of_the_trunk_for_every_text_size_and_seed(small):
    table = measure_stability(small)
    runs = table.groupby(["source", "size", "seed"])
    assert len(runs) == 2 * 2
    assert set(table.layer) == {1, 2} and "embedding" not in set(table.component)
    weights = table.drop_duplicates(["layer", "component"])
    width = small.pretraining.width
    # W1 and its bias, the output projection and its bias
    by = weights.set_index(["layer", "component"]).parameters
    assert by[1, "W1"] == 4 * width * (width + 1) and by[2, "out"] == width * (width + 1)


def test_the_causal_runs_of_a_text_are_those_of_the_record(small):
    """The profile of a run is the sum of its allocation, not something else."""
    from shrink_utils.study.dynamics.followed import dynamics_config, follow, record_table

    config = dynamics_config(
        small,
        "clm",
        seed=1,
        source="editorials",
        sentences=24,
        steps=small.dynamics.stability_steps,
    )
    followed = follow(config, sentences=small.dynamics.sentences, rules=("trapezoid",))
    expected = allocated(allocations(record_table(followed.changes)), "layer", "component")
    found = measure_stability(small).query("source == 'editorials' and size == 24 and seed == 1")
    found = found.set_index(["layer", "component"]).value
    np.testing.assert_allclose(found, expected.reindex(found.index), rtol=1e-9)
