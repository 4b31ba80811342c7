"""Isotropy and treated vectors of fine-tuned encoders, and STS-B."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils import geometry
from shrink_utils.geometry import principal_axes
from shrink_utils.models import hidden_states, load_encoder
from shrink_utils.study import run_encoder
from shrink_utils.study.after_finetuning.experiment import (
    PRETRAINED,
    REMOVED,
    cluster_axes,
    measure_after_finetuning,
    treated_accuracies,
    treatments,
)
from shrink_utils.study.after_finetuning.probes import deal_folds, predict_classes
from shrink_utils.text import load_task


@pytest.fixture
def table(finished):
    return measure_after_finetuning(finished)


@pytest.fixture
def rows(finished):
    return load_task(finished.tasks[0], max_eval=_n_rows(finished))["validation"]


def _n_rows(profile):
    return profile.diagnostic_sentences * 2 // 3


def _vectors(encoder, rows, profile, pooling="cls"):
    max_length = profile.grid[0].max_length
    return hidden_states(encoder, list(rows["text"]), pooling=pooling, max_length=max_length)


def _value(table, **where):
    for column, wanted in where.items():
        table = table[table[column] == wanted]
    return table.value.item()


def test_before_and_after_are_those_of_the_encoders_on_the_same_texts(
    table, finished, tiny_runs, rows
):
    encoders = {
        (PRETRAINED, 0): load_encoder(finished.models[0]),
        **{(run.config.arm, run.config.seed): run_encoder(run) for run in tiny_runs},
    }
    for (arm, seed), encoder in encoders.items():
        x = _vectors(encoder, rows, finished)[2]
        where = {"arm": arm, "seed": seed, "layer": 2, "measure": "AvgSim"}
        assert _value(table, **where) == pytest.approx(geometry.avg_sim(x).value, abs=1e-9)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("seed", [0, 1])
def test_accuracies_are_of_the_last_layer_and_the_seeds_halves(
    table, finished, rows, pooling, seed
):
    x = _vectors(load_encoder(finished.models[0]), rows, finished, pooling)[-1]
    expected = treated_accuracies(x, np.asarray(rows["label"]), seed=seed)
    before = table[(table.arm == PRETRAINED) & (table.seed == seed)]
    found = before[before.measure == "accuracy"]
    found = found[found.vectors == pooling]
    assert found.value.tolist() == pytest.approx(expected.value.tolist(), abs=0.03)
    assert found.treatment.tolist() == expected.treatment.tolist()
    assert set(found.layer) == {2}


def _cloud(n=400, d=30, loud=8.0):
    """The longest direction tells the class; the others are noise."""
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x[:, 3] *= loud
    return x, (x[:, 3] > 0).numpy()


@pytest.fixture(scope="module")
def accuracy():
    found = treated_accuracies(*_cloud())
    return found.set_index(["treatment", "removed", "skipped"]).value


def test_removing_the_direction_of_the_class_loses_it_and_removing_the_next_does_not(accuracy):
    for k in REMOVED:
        assert accuracy["global", k, 0] < 0.65
        assert accuracy["global", k, k] > 0.85


def test_subtracting_the_mean_costs_a_linear_probe_nothing(accuracy):
    assert accuracy["global", 0, 0] == accuracy["untreated", 0, 0] > 0.85


def test_an_accuracy_is_the_share_of_rows_that_the_other_half_gets_right(accuracy):
    x, labels = _cloud()
    folds = deal_folds(np.arange(400), n_folds=2)
    right = []
    for fold in (0, 1):
        fit, rest = folds != fold, folds == fold
        treat = principal_axes(x[fit]).treatment(remove=3, skip=3)
        right.append(predict_classes(treat(x[fit]), labels[fit], treat(x[rest])) == labels[rest])
    assert accuracy["global", 3, 3] == pytest.approx(np.mean(right))


def test_clusters_are_treated_each_by_itself():
    x, _ = _cloud()
    own = cluster_axes(x, rank=2 * max(REMOVED))
    assert len(own.means) > 1
    for k in (0, *REMOVED):
        assert torch.equal(treatments(x)["clusters", k, 0](x), own.treatment(remove=k)(x))


def test_a_tight_small_cluster_is_merged_and_not_fitted_alone():
    x = torch.cat([_cloud(n=100)[0], 1e3 + _cloud(n=3)[0]])
    assert len(cluster_axes(x, rank=9, most=2).means) == 1
