"""Stitches of small models: random weights do, no training is needed."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
import torch

from shrink_utils.models import read_layers, stitched
from shrink_utils.models.stitching import least_squares_maps
from shrink_utils.study import load_profile
from shrink_utils.study.scratch import ScratchRun
from shrink_utils.study.stitching import experiment
from shrink_utils.study.stitching.experiment import (
    measure_stitched,
    penalty_floors,
    stitching_config,
)
from shrink_utils.training import examples, held_out_batches, new_model, scratch_tokenizer
from shrink_utils.training.scratch import collator

N = 32


def random_run(config, folder):
    """In place of training: weights far from their initialization, so that stitches cost."""
    tokenizer = scratch_tokenizer(config)
    model = new_model(config, tokenizer)
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        for parameter in model.parameters():
            parameter.data += 0.2 * torch.randn_like(parameter)
    return ScratchRun(config, model, tokenizer, None, [], {}, folder)


@pytest.fixture(scope="module")
def profile():
    smoke = load_profile("smoke")
    return replace(smoke, pretraining=replace(smoke.pretraining, seeds=(0, 1)))


@pytest.fixture(scope="module", autouse=True)
def untrained():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "train_or_load", random_run)
        yield


@pytest.fixture(scope="module")
def table(profile):
    return measure_stitched.__wrapped__(profile)


def test_every_relation_has_its_pairs_and_every_map_its_layers(table):
    pairs = table.groupby("relation")[["front", "front_number", "back", "back_number"]]
    counts = {relation: len(rows.drop_duplicates()) for relation, rows in pairs}
    assert counts == {"same": 2, "untrained": 4, "activation": 4, "seed": 4}
    kinds = table.groupby("kind").size().to_dict()
    assert kinds == {"affine": 14 * 9, "identity": 14 * 3, "trained": 14 * 1}
    rows = table[table.relation == "activation"]
    assert (rows.front != rows.back).all() and (rows.front_number == rows.back_number).all()
    rows = table[table.relation == "seed"]
    assert (rows.front == rows.back).all() and (rows.front_number != rows.back_number).all()


def test_a_model_stitched_to_itself_by_identity_costs_exactly_nothing(table):
    same = table[(table.relation == "same") & (table.kind == "identity")]
    assert (same.penalty == 0.0).all()
    others = table[(table.relation != "same") & (table.kind == "identity")]
    assert (others.penalty.abs() > 1e-4).all()


def test_penalties_are_of_held_out_sentences_and_maps_of_training_ones(table, profile, tmp_path):
    config = stitching_config(profile, "solu", 0)
    front = random_run(config, tmp_path)
    back = random_run(stitching_config(profile, "solu", 1), tmp_path)
    judged = held_out_batches(config, front.tokenizer, n=profile.stitching.sentences)
    rows = examples(config, front.tokenizer)[0].to_list()[: profile.stitching.fitted]
    fitted = [collator(config, front.tokenizer)(rows[i : i + 16]) for i in range(0, len(rows), 16)]
    (phi,) = least_squares_maps(
        *(read_layers(run.model, fitted) for run in (front, back)), front_layer=1, back_layers=[2]
    )
    readings = [read_layers(run.model, judged) for run in (front, back)]
    expected = stitched(*readings, phi, front_layer=1, back_layer=2)
    found = table.query(
        "relation == 'seed' and front == 'solu' and front_number == 0 and kind == 'affine'"
        " and front_layer == 1 and back_layer == 2"
    )
    assert found.penalty.item() == pytest.approx(expected.penalty, abs=1e-6)
    assert found.loss.item() - found.penalty.item() == pytest.approx(readings[1].loss)


def test_a_floor_is_the_spread_within_each_activation():
    """Variances 2 and 18 of two pairs each: √10, though the activations are far apart."""
    table = pd.DataFrame({"back": ["gelu", "gelu", "solu", "solu"], "penalty": [1, 3, 11, 17]})
    table = table.assign(relation="seed", kind="affine", front_layer=1, back_layer=1)
    assert penalty_floors(table).floor.tolist() == [pytest.approx(10**0.5)]
