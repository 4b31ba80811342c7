"""Whole small runs: what is in the loss, what is written down, what a seed fixes."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from shrink_utils.geometry import anisotropy
from shrink_utils.training import RunConfig, finetune

CONFIG = RunConfig(
    model="tiny-random",
    task="sentiment_movies",
    arm="prominent",
    seed=3,
    train_rows=40,
    eval_rows=16,
    epochs=2,
    learning_rate=1e-3,
    weight_decay=1e-4,
    max_length=12,
    batch_size=16,
)
# Of each kind one at least; the others are tested one by one (loops: 8 points hardly have any).
ARMS = ("none", "prominent", "published", "all", "random", "isoscore")


@pytest.fixture(scope="module")
def results():
    return {arm: finetune(replace(CONFIG, arm=arm)) for arm in ARMS}


def test_every_step_is_recorded_with_every_quantity(results):
    history = results["prominent"].history
    assert history.step.tolist() == [1, 2, 3, 4, 5, 6]  # 2 epochs of 16 + 16 + 8 rows
    assert history.rows.tolist() == [16, 16, 8, 16, 16, 8]
    expected = {"task_loss", "regularizer", "entropy", "entropy_all", "grad_norm", "learning_rate"}
    expected |= {f"{space}_{k}" for space in ("raw", "centred") for k in (1, 2, 3)}
    expected |= {f"{name}_{c}" for name in ("n_features", "n_bars") for c in (0, 1)}
    assert expected <= set(history.columns)
    assert history[sorted(expected)].notna().all(axis=None)


def test_bars_are_those_of_each_class(results):
    history = results["all"].history
    assert (history.n_bars_0 + history.n_bars_1 + 2 == history.rows).all()
    assert (history.n_features_0 == history.n_bars_0).all()


def test_the_regularizer_term_is_minus_the_entropy_of_the_selected_bars(results):
    for arm in ("prominent", "published", "all"):
        history = results[arm].history
        pd.testing.assert_series_equal(
            history.regularizer, -history.entropy, check_names=False, rtol=1e-5
        )
    assert (results["none"].history.regularizer == 0).all()


def test_a_penalty_is_recorded_beside_the_bars_that_nobody_looks_at(results):
    penalized, plain = results["isoscore"].history, results["none"].history
    assert (penalized.regularizer > 0).all()
    columns = ["entropy", "entropy_all", "n_features_0", "n_bars_0"]
    assert penalized.loc[0, columns].equals(plain.loc[0, columns])  # of the same first batch


def test_random_bars_are_as_many_as_the_prominent_ones(results):
    columns = ["n_features_0", "n_features_1", "n_bars_0", "n_bars_1"]
    random, prominent = (results[arm].history.loc[0, columns] for arm in ("random", "prominent"))
    assert random.equals(prominent)
    assert results["random"].history.entropy[0] != results["prominent"].history.entropy[0]


def test_the_weight_scales_the_term():
    half = finetune(replace(CONFIG, weight=0.5, epochs=1)).history.iloc[0]
    assert half.regularizer == pytest.approx(-0.5 * half.entropy, rel=1e-5)


def test_arms_of_a_seed_start_equal_and_then_part(results):
    first = {arm: result.history.task_loss.iloc[0] for arm, result in results.items()}
    assert len(set(first.values())) == 1
    last = {arm: result.history.task_loss.iloc[-1] for arm, result in results.items()}
    assert len(set(last.values())) == len(ARMS)


def test_the_same_configuration_gives_the_same_numbers(results):
    again = finetune(CONFIG)
    pd.testing.assert_frame_equal(again.history, results["prominent"].history)
    assert torch.equal(again.embeddings["after"], results["prominent"].embeddings["after"])


def test_another_seed_gives_other_numbers(results):
    other = finetune(replace(CONFIG, seed=4))
    assert other.history.task_loss.iloc[0] != results["prominent"].history.task_loss.iloc[0]


def test_embeddings_are_of_the_same_rows_before_and_after(results):
    embeddings = results["none"].embeddings
    assert embeddings["before"].shape == embeddings["after"].shape == (16, 32)
    assert embeddings["labels"].shape == (16,)
    assert not torch.equal(embeddings["before"], embeddings["after"])
    for arm in ("prominent", "published", "all"):
        assert torch.equal(results[arm].embeddings["before"], embeddings["before"])


def test_geometry_is_that_of_the_embeddings(results):
    result = results["all"]
    after = anisotropy(result.embeddings["after"], k=3, center=True).tolist()
    assert result.geometry["after"]["centred"] == pytest.approx(after)


def test_the_validation_rows_are_judged_before_training_and_after_it(results):
    evaluations = results["none"].evaluations
    assert [(e["epoch"], e["step"]) for e in evaluations] == [(0, 0), (2, 6)]
    assert all(set(e) == {"epoch", "step", "loss", "accuracy", "f1"} for e in evaluations)


def test_every_row_is_reported_as_it_comes():
    steps = []
    finetune(replace(CONFIG, epochs=1), on_row=lambda row: steps.append(row["step"]))
    assert steps == [1, 2, 3]


@pytest.mark.parametrize("pooling", ["mean", "first_last"])
def test_other_poolings_run(pooling):
    result = finetune(replace(CONFIG, pooling=pooling, epochs=1))
    assert result.history.entropy.notna().all()
    assert result.embeddings["after"].shape == (16, 32)


def test_torch_threads_and_random_numbers_are_given_back():
    before = torch.get_num_threads()
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    finetune(replace(CONFIG, epochs=1, threads=before + 1))
    assert torch.get_num_threads() == before
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    assert after == states


def test_a_length_beyond_the_encoders_positions_is_refused():
    with pytest.raises(
        ValueError, match="max_length: 600 tokens, but tiny-random reads at most 512"
    ):
        finetune(replace(CONFIG, max_length=600))
