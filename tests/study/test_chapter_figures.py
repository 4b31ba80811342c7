"""Figures of the chapters hold the numbers of the tables that they are given."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch

from shrink_utils.paths import data_dir
from shrink_utils.study import corpora, finetuning, isotropy, load_profile, regularizer
from shrink_utils.study.contextuality.figures import (
    describe_models,
    intrasim_by_layer,
    like_gpt2,
    mev_by_layer,
    models_by_layer,
)
from shrink_utils.study.diagnose import recorded_layers
from shrink_utils.study.drawing import figure_data
from shrink_utils.study.similarity.figures import NAMES, layer_grid, layer_grids, moved_by_layer

RNG = np.random.default_rng(0)


def test_ratings_near_zero_are_left_out():
    ratings = {name: np.array([-3.9, -0.5, -0.49, 0.0, 0.5, 3.0]) for name in "abcd"}
    bars = figure_data(corpora.ratings_by_corpus(ratings)).query("panel == 1 and kind == 'bar'")
    assert bars.title.unique().tolist() == ["a: 33% left out"]
    assert bars.groupby("mark").y.sum().tolist() == [2, 2, 2]  # negative, left out, positive


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


def test_the_first_score_of_isotropic_clouds_is_drawn_in_each_space():
    keys = list(product(("[CLS]", "words"), (0, 1), isotropy.CLOUD_STYLE))
    table = pd.DataFrame(keys, columns=["space", "layer", "cloud"]).assign(**{"a, raw": 0.5})
    table["a, centred"] = 0.2
    edges = {"[CLS]": 0.01, "words": 0.02}
    fig = isotropy.two_measures_by_layer(table, ["a, raw", "a, centred"], label="a", edges=edges)
    drawn = [[line for line in ax.lines if "edge" in str(line.get_label())] for ax in fig.axes]
    assert [line.get_ydata()[0] for (line,) in drawn] == [0.01, 0.02, 0.01, 0.02]
    assert all(ax.get_ylim()[0] == 0 < 0.2 < ax.get_ylim()[1] for ax in fig.axes)


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


def test_grids_are_those_of_the_run_that_is_named(table):
    drawn = figure_data(layer_grids(table, "finetuned", other="tuned", arm="none", seed=1))
    for panel, measure in enumerate(NAMES, start=1):
        expected = layer_grid(table, "finetuned", measure, seed=1)
        cells = drawn[(drawn.panel == panel) & (drawn.kind == "cell")].value
        assert cells.tolist() == expected.to_numpy().ravel().tolist()
    assert drawn.panel.nunique() == len(NAMES)


def test_the_similarity_of_shuffled_rows_is_a_panel_of_its_own(table):
    fig = layer_grids(table, "null", other="x", measures=("rsa",), null=True, seed=0)
    null = table[table.pair == "null"].groupby("measure").value.mean()
    said = [text.get_text() for text in fig.axes[1].texts]
    assert said == [f"{name}: {null[measure]:.2f}" for measure, name in NAMES.items()]


def test_equal_layers_are_means_over_seeds_in_a_band_from_least_to_greatest(table):
    drawn = figure_data(moved_by_layer(table, ["none"])).query("panel == 1")
    rows = table[(table.pair == "finetuned") & (table.measure == "cka_debiased")]
    seeds = rows[rows.layer == rows.other].groupby("layer").value.agg(["mean", "min", "max"])
    np.testing.assert_allclose(drawn[drawn.kind == "line"].y, seeds["mean"])
    band = drawn[drawn.kind == "band"]
    np.testing.assert_array_equal(band[["y_low", "y_high"]], seeds[["min", "max"]])


def test_the_neutral_line_parts_kept_bars_from_noise():
    bars, neutral = [10.0, 9.0, 3.0, 2.0], [4.0, 5.0, 10.0]
    drawn = figure_data(regularizer.neutral_line(bars, neutral))
    heights = drawn[drawn.kind == "bar"].groupby("series").y.apply(list).to_dict()
    assert heights == {"kept": [10.0, 9.0], "noise": [3.0, 2.0]}


def test_the_first_score_of_a_layer_is_drawn_as_its_difference_to_none():
    keys = pd.DataFrame(list(product(("none", "all"), (0, 1), (0, 10))))
    history = keys.set_axis(["arm", "seed", "step"], axis=1).assign(missing=0.1)
    history["score"] = [0.2, 0.8, 0.2, 0.6, 0.2, 0.5, 0.2, 0.4]
    spectra = {arm: torch.linspace(1, 0.1, 16) for arm in ("none", "all")}
    drawn = figure_data(regularizer.layer_curves(history, spectra)).query("panel == 2")
    lines = drawn[drawn.kind == "line"].groupby("series", sort=False).y.apply(list)
    np.testing.assert_allclose(lines["none"], 0)
    np.testing.assert_allclose(lines["all"], [0, -0.25])  # of −.3 and −.2
    band = drawn[drawn.kind == "band"].tail(2)  # of `all`
    np.testing.assert_allclose(band[["y_low", "y_high"]], [[0, 0], [-0.3, -0.2]])


def test_edges_are_drawn_by_task_and_cloud_with_the_means_of_fifths():
    keys = pd.DataFrame(list(product(("b", "a"), ("before", "after"), (0, 1), range(20))))
    edges = keys.set_axis(["task", "cloud", "class", "bar"], axis=1)
    edges = edges.assign(length=RNG.uniform(0.5, 2, len(edges)), cos2=RNG.uniform(size=len(edges)))
    drawn = figure_data(regularizer.edges_along_direction(edges))
    assert drawn.title.unique().tolist() == ["b\nbefore", "b\nafter", "a\nbefore", "a\nafter"]
    first = edges[(edges.task == "b") & (edges.cloud == "before")].sort_values("length")
    means = drawn[(drawn.panel == 1) & (drawn.kind == "line")]
    np.testing.assert_allclose(means.y, first.cos2.to_numpy().reshape(5, 8).mean(axis=1))


def test_clouds_before_and_after_share_one_scale():
    labels = torch.arange(30) % 2
    clouds = {name: size * torch.randn(30, 5) for name, size in (("small", 1.0), ("large", 9.0))}
    small, large = finetuning.principal_planes(clouds, labels).axes
    assert small.get_xlim() == large.get_xlim() and small.get_ylim() == large.get_ylim()


CURVES = {"cone": [0.6, 0.6, 0.7, 0.98], "flat": [0.1, 0.3, 0.4, 0.2], "high": [0.6, 0.9, 0.8, 0.9]}


@pytest.fixture
def layers_of_models():
    rows = [(model, i, x) for model, curve in CURVES.items() for i, x in enumerate(curve)]
    return pd.DataFrame(rows, columns=["model", "layer", "AvgSim"])


def test_every_models_curve_is_drawn_beside_two_published_ones(layers_of_models):
    drawn = figure_data(models_by_layer(layers_of_models, title="any"))
    for model, curve in CURVES.items():
        assert list(drawn[drawn.series == model].y) == curve
    assert drawn[drawn.series == "gpt2 (published)"].y.max() == 0.978


def test_the_studys_encoder_is_black_whatever_its_place(layers_of_models):
    renamed = layers_of_models.replace({"model": {"high": "minilm"}})
    (ax,) = models_by_layer(renamed, title="any").axes
    colours = {line.get_label(): line.get_color() for line in ax.lines}
    assert colours.pop("minilm") == "#000000" and "#000000" not in colours.values()


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
