"""Measures before and after fine-tuning: on runs of the tiny encoder, against the room below."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from shrink_utils import geometry
from shrink_utils.models import hidden_states, load_encoder
from shrink_utils.study import run_encoder
from shrink_utils.study.finetuned.geometry import (
    PRETRAINED,
    isotropy,
    measure_after_finetuning,
    study_encoders,
    text_states,
)
from shrink_utils.study.finetuned.treated import treated_accuracies
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


def test_every_encoder_layer_and_measure_has_its_row(table, finished):
    shape = table[table.measure != "accuracy"]
    assert set(shape.arm) == {PRETRAINED, "none", "all", "isotropic"}
    assert set(shape.layer) == {1, 2}  # at layer 0 all [CLS] vectors are one point
    assert shape.groupby(["arm", "seed"]).size().eq(2 * 5).all()
    assert len(shape) == (3 * 2 + 1) * 2 * 5  # two seeds of two arms and before; the Gaussian cloud
    assert set(table.n) == {_n_rows(finished)}


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


def test_the_isotropic_cloud_has_the_shape_of_the_others(table, finished):
    cloud = np.random.default_rng(0).normal(size=(_n_rows(finished), 32))
    for layer in (1, 2):
        where = {"arm": "isotropic", "layer": layer, "measure": "IsoScore"}
        assert _value(table, **where) == geometry.iso_score(cloud, bias_corrected=True)


def test_a_second_call_loads_the_table(table, finished, monkeypatch):
    def fail(*_, **__):
        raise AssertionError("measured again")

    monkeypatch.setattr("shrink_utils.study.finetuned.geometry.run_grid", fail)
    assert measure_after_finetuning(finished).equals(table)


def test_isotropy_is_measured_by_the_geometry_room():
    x = torch.randn(50, 6) + 1
    found = isotropy(x)
    unit = normalize(x.double(), dim=1)
    assert found == {
        "log I(W)": geometry.partition_isotropy(x),
        "log I(W), unit norm": geometry.partition_isotropy(unit),
        "IsoScore": geometry.iso_score(x, bias_corrected=True),
        "AvgSim": geometry.avg_sim(x).value,
        "elongated directions": geometry.elongated_directions(x),
    }


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_one_pass_gives_both_poolings_in_the_order_of_the_rows(finished, rows, pooling):
    encoder = load_encoder(finished.models[0])
    found = text_states(encoder, rows, max_length=16)[pooling]
    expected = hidden_states(encoder, list(rows["text"]), pooling=pooling, max_length=16)
    torch.testing.assert_close(found, expected)


def test_texts_in_pairs_are_read_as_pairs(finished):
    pairs = load_task("coherence", max_eval=8)["validation"]
    encoder = load_encoder(finished.models[0])
    options = {"text_pairs": list(pairs["text_pair"]), "max_length": 32}
    expected = hidden_states(encoder, list(pairs["text"]), **options)
    torch.testing.assert_close(text_states(encoder, pairs, max_length=32)["cls"], expected)


def test_the_pretrained_encoder_comes_first_and_other_tasks_are_passed_over(finished, tiny_runs):
    found = list(study_encoders(finished, tiny_runs, task=finished.tasks[0]))
    assert [(keys["arm"], seeds) for keys, seeds, _ in found] == [
        (PRETRAINED, [0, 1]),
        *((run.config.arm, [run.config.seed]) for run in tiny_runs),
    ]
    assert len(list(study_encoders(finished, tiny_runs, task="word_order"))) == 1


def test_another_task_is_measured_without_the_probe(finished, tiny_runs, tmp_path, monkeypatch):
    second = replace(finished.grid[0], task="sentiment_products")
    of_second = replace(tiny_runs[0], config=replace(tiny_runs[0].config, task=second.task))
    runs = [tiny_runs[0], of_second]
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    monkeypatch.setattr("shrink_utils.study.finetuned.geometry.run_grid", lambda _: runs)
    table = measure_after_finetuning(replace(finished, grid=(*finished.grid, second)))
    other = table[table.task == second.task]
    assert "accuracy" not in set(other.measure) and "accuracy" in set(table.measure)
    assert set(other.arm) == {PRETRAINED, "none", "isotropic"}
    assert set(other.n) == {_n_rows(finished)}
