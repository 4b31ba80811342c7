"""Figures of the chapters hold the numbers of the tables that they are given."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

from shrink_utils.paths import data_dir
from shrink_utils.study import isotropy, load_profile
from shrink_utils.study.contextuality.figures import (
    describe_models,
    intrasim_by_layer,
    like_gpt2,
    mev_by_layer,
)
from shrink_utils.study.diagnose import recorded_layers
from shrink_utils.study.drawing import figure_data
from shrink_utils.study.similarity.figures import NAMES

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("measures", "draw"),
    [
        (["intrinsic dimension"], isotropy.intrinsic_dimension_by_layer),
        (
            ["IsoScore", "IsoScore, corrected", "effective rank"],
            isotropy.isoscore_and_rank_by_layer,
        ),
        (
            ["a, raw", "a, unit"],
            lambda table: isotropy.two_measures_by_layer(table, ["a, raw", "a, unit"], label="a"),
        ),
    ],
)
def test_measures_by_layer_are_the_columns_of_the_table(measures, draw):
    keys = list(product(("[CLS]", "words"), range(3), isotropy.CLOUD_STYLE))
    table = pd.DataFrame(keys, columns=["space", "layer", "cloud"])
    table[measures] = RNG.uniform(1, 2, size=(len(keys), len(measures)))
    drawn = figure_data(draw(table))
    assert sorted(drawn.y.dropna()) == sorted(table[measures].to_numpy().ravel())
    of_encoder = drawn[(drawn.panel == 1) & (drawn.series == "encoder")]
    expected = table[(table.space == "[CLS]") & (table.cloud == "encoder")][measures[0]]
    assert set(expected) <= set(of_encoder.y)


@pytest.mark.parametrize(
    ("draw", "quantity"), [(intrasim_by_layer, "intra_sim"), (mev_by_layer, "mev")]
)
def test_units_are_drawn_as_means_with_two_standard_errors(draw, quantity):
    quantities = ("avg_sim", "intra_sim", "mev", "mev_released")
    units = list(product(quantities, range(3), range(5)))
    keys = pd.DataFrame(units, columns=["quantity", "layer", "item"])
    columns = ["value", "null", "baseline"]
    sample = keys.assign(**dict(zip(columns, RNG.uniform(size=(3, len(keys))), strict=True)))
    first = figure_data(draw(sample, model="ours")).query("panel == 1 and mark == 1")
    values = sample[sample.quantity == quantity].groupby("layer").value.agg(["mean", "sem"])
    assert first.x.tolist() == [0, 0.5, 1]
    np.testing.assert_allclose(first.y, values["mean"])
    np.testing.assert_allclose(first.y_high, values["mean"] + 2 * values["sem"])


@pytest.fixture
def table():
    """Two seeds of arm none, three layers, all pairs, every measure."""
    rows = list(product(("finetuned", "null", "low", "high"), (0, 1), NAMES, range(3), range(3)))
    table = pd.DataFrame(rows, columns=["pair", "seed", "measure", "layer", "other"])
    return table.assign(arm="none", value=RNG.uniform(size=len(rows)))


CURVES = {"cone": [0.6, 0.6, 0.7, 0.98], "flat": [0.1, 0.3, 0.4, 0.2], "high": [0.6, 0.9, 0.8, 0.9]}


@pytest.fixture
def layers_of_models():
    rows = [(model, i, x) for model, curve in CURVES.items() for i, x in enumerate(curve)]
    return pd.DataFrame(rows, columns=["model", "layer", "AvgSim"])


def test_a_model_is_like_gpt2_if_it_is_always_high_and_jumps_at_the_last_layer(layers_of_models):
    table = like_gpt2(layers_of_models)
    assert list(table.always_high) == [True, False, True]
    assert list(table.jumps_last) == [True, False, False]
    assert table.loc["flat", "step"] == pytest.approx(0.2) and table.loc["flat", "into"] == 1
    said = describe_models(layers_of_models)
    assert said.startswith("cone does what GPT-2 did on both counts.")
    assert "between 0.10 and 0.40 (median 0.25), not above 0.5 in every layer" in said
    assert "(+0.30) leads into layer 1 of 3" in said
    assert describe_models(layers_of_models[layers_of_models.model == "flat"]).startswith(
        "No model"
    )


def test_gpt2_meets_its_own_criteria_and_bert_does_not():
    published = pd.read_csv(data_dir() / "published" / "avgsim_layers.csv")
    table = like_gpt2(published.rename(columns={"avg_sim": "AvgSim"}))
    assert table.loc["gpt2", ["always_high", "jumps_last"]].all()
    assert not table.loc["bert-base-cased", ["always_high", "jumps_last"]].any()


def test_what_chapter_02_says_of_the_record_holds():
    layers = pd.read_csv(recorded_layers(load_profile("models")))
    assert set(layers.model) == {"minilm", "mpnet", "gemma"}
    curves = {model: rows.sort_values("layer").AvgSim for model, rows in layers.groupby("model")}
    gemma = curves.pop("gemma").to_numpy()
    assert (gemma[1:-1] > 0.5).all() and max(gemma[0], gemma[-1]) < 0.5
    for curve in curves.values():  # a low cone that grows, and opens at the last layer
        assert curve.max() < 0.3 and curve.iloc[-1] < curve.iloc[-2] / 2
        assert curve.idxmax() == curve.index[-2]
