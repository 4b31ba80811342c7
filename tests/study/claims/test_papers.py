"""Every paper's claims on planted tables: all rows against a golden table, and known answers."""

import math
from itertools import product
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study import ARMS
from shrink_utils.study.claims.brown import _brown_claims, generalization_claims, stitching_claims
from shrink_utils.study.claims.claim import MARGIN, Kind, Unit
from shrink_utils.study.claims.stl import (
    OTHERS,
    _accuracy_drops,
    _clouds_claims,
    _stl_claims,
    _topology_claims,
)
from shrink_utils.study.claims.vazquez import (
    COUNTED,
    _models_claims,
    _vazquez_claims,
    dynamics_claims,
)
from shrink_utils.study.claims.verdicts import _further_models_claims
from shrink_utils.study.tables import _add_best_epoch
from tests.study.claims import planted
from tests.study.claims.golden import GOLDEN, every_claim


@pytest.fixture(scope="module")
def claims():
    found = every_claim()
    assert found.claim.is_unique
    return found.set_index("claim")


def test_every_row_is_that_of_the_golden_table(claims):
    """Written by `every_claim`, once its numbers were those of the known answers below."""
    text = claims.reset_index().to_csv(index=False, float_format="%.6f")
    assert text == GOLDEN.read_text(encoding="utf-8")
    assert set(claims.unit) <= {*get_args(Unit)} and set(claims.kind) <= {*get_args(Kind)}


DISTANCE = math.sqrt(sum(np.arccos(0.9 - gap) ** 2 for gap in planted.GAPS.values()))
DISTANCE -= math.sqrt(5) * np.arccos(0.9)
CELL, BERT = "minilm:movies", "google-bert/bert-base-uncased:mrpc"
KNOWN = {  # estimate, verdict
    f"stl:rises-centred:{CELL}:none": (0.55, "agrees"),
    f"stl:rises-raw:{CELL}:none": (-0.1, "disagrees"),
    f"stl:lowers-centred-of-none:{BERT}:prominent": (-0.2, "replicated"),
    f"stl:lowers-raw-of-none:{CELL}:all": (0.0, "inconclusive"),
    f"stl:raises-centred-2:{CELL}:prominent": (0.05, "agrees"),
    f"stl:lowers-raw-2:{CELL}:prominent": (-0.05, "agrees"),
    f"stl:lowers-three-centred:{CELL}:prominent": (-0.2 + 0.05, "agrees"),
    "stl:shorter-tree:minilm:sentiment_movies:all": (math.log(0.5), "agrees"),
    "stl:class-normal:minilm:sentiment_movies:none": (1 - 0.9, "agrees"),
    "v:avgsim-rises": (0.3, "agrees"),  # of layers 2 and 3, the clearer rise
    "v:avgsim-gradual": (0.0, "inconclusive"),  # two equal steps are the bound of gradual
    "v:selfsim-falls": (-0.3 - 0.2, "agrees"),  # corrected for AvgSim
    "v:embeddings-static": (0.9 - 1, "described"),
    "v:intrasim-above-avgsim-0": (0.4, "agrees"),
    "v:intrasim-falls-avgsim": (-0.3, "agrees"),
    "v:intrasim-above-null-3": (-0.1, "disagrees"),
    "v:mev-small-1": (0.48, "disagrees"),  # shares are measured from five percent
    "v:mev-released-small-3:mpnet": (0.23, "disagrees"),
    "v:lca-stable-language": (0, "agrees"),
    # Two of six components hurt at the last 12 of 20 steps, except the very last `seed`.
    "v:lca-hurting-half-mlm": (2 * 11 / 120 - 0.5, "described"),
    "v:lca-closure-euler-mt": (-0.25, "disagrees"),
    "v:lca-closure-trapezoid-clm": (-0.001, "agrees"),
    "v:lca-incremental-clm": (0, "described"),
    "b:late-change-rsa:movies:none": (0.3, "agrees"),
    "b:part-late:movies:all": (0.3, "agrees"),
    # 1 apart: .8. 3 or 4 apart, of 5 layers: 2 pairs and 1 pair, .4 and .2.
    "b:neighbours:movies:none": (0.8 - (2 * 0.4 + 0.2) / 3, "agrees"),
    "b:stitch-loss": (-0.1, "disagrees"),
    "b:stitch-asymmetry:affine": (0.2 + 0.02 / 3, "agrees"),
    "b:stitch-untrained:affine": (2.0, "agrees"),
    "b:stitch-crossing-gelu:affine": (0.5, "agrees"),
    "b:stitch-itself-gelu": (1.5, "agrees"),
    "b:stitch-every-layer": (0.2 + 0.02 / 3, "agrees"),
    "b:stitch-beyond-loss:affine": (0.2 + 0.02 / 3 - 0.1, "agrees"),
    "b:stitch-trained-affine": (-0.5, "agrees"),
    "b:stitch-affine-identity": (-2.0, "agrees"),
    "b:generalization-accuracy-unseen": (0.5, "agrees"),
    "b:generalization-accuracy-new-words": (0.25, "agrees"),  # half of the pairs are entailed
    "b:generalization-accuracy-dev": (-0.01, "agrees"),
    "b:generalization-cka-late-dev": (0.45, "agrees"),
    "b:generalization-cka-early-overlap": (0.05 - 0.25, "agrees"),
    "b:generalization-distance-dev": (DISTANCE, "agrees"),
    "b:generalization-early-free": (-(0.1 + 0.1 + 0.15) / 3, "disagrees"),
    "b:generalization-within-free": (-0.1, "disagrees"),
    "b:generalization-stitch-above": (-0.5, "agrees"),
    "b:generalization-stitch-below": (0.4, "agrees"),
    f"rp:not-necessarily-partition:{CELL}:none": (1, "disagrees"),  # it rises everywhere
    f"rp:not-necessarily-isoscore:{CELL}:none": (-0.2, "agrees"),  # it falls in one layer
    f"rp:treatment-global:{CELL}:all": (0.21 + 0.04 / 3, "agrees"),
    f"rp:removal-mean:{CELL}:all": (0.19, "agrees"),  # how much more it costs than before
    f"rp:removal-cls-control:{CELL}:none": (0, "inconclusive"),
    f"rp:words-type:{CELL}:all": (-0.2, "agrees"),
    "lang:attention-barcodes:coherence": (0.25, "inconclusive"),
    "lang:dimension-shuffled": (
        np.mean([1 / (10 + i) - 1 / (9 + i) for i in (0, 0.1, 0.2, 0.3)]),
        "disagrees",
    ),
    "lang:rtd-smaller": (-1, "agrees"),
    "lang:neighbours-live-longer-random": (-1, "disagrees"),
    "lang:dimension-machine": (np.mean([1 / (8 + i) - 1 / (10 + i) for i in range(5)]), "agrees"),
    f"stl:lowers-centred-of-none-best:{CELL}:prominent": (-0.2, "agrees"),
    f"stl:lowers-raw-of-all-best:{CELL}:prominent": (-0.1, "agrees"),
    f"stl:converged:{CELL}:none": (0, "agrees"),
    f"stl:converges-sooner:{CELL}:prominent": (0.05, "disagrees"),
    f"topology:lowers-more:{CELL}:cosine": (0.4 - 0.55, "agrees"),
    f"topology:metric-no-worse:{CELL}:cosine": (-0.2 * 0.2, "disagrees"),  # beyond the margin
    f"topology:matched:{CELL}:random": (0.3 * 0.2, "agrees"),
    f"topology:calibration:{CELL}:cosine": (0, "agrees"),  # it costs nothing and gains nothing
    f"topology:matched:{CELL}:cosine": (-0.2 * 0.2, "described"),  # cosine never reaches the score
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_planted_truth_is_found(claims, name):
    estimate, verdict = KNOWN[name]
    assert claims.estimate[name] == pytest.approx(estimate, abs=0.02)
    assert claims.verdict[name] == verdict


PUBLISHED = {
    f"stl:lowers-centred-of-none:{BERT}:published": 0.483 - 0.733,
    f"stl:raises-raw-3:{BERT}:all": 0.028 - 0.023,
    f"stl:lowers-three-centred:{BERT}:prominent": 0.483 + 0.057 + 0.024 - 0.733 - 0.034 - 0.017,
    f"stl:lowers-centred-of-none:{CELL}:prominent": (
        ((0.483 + 0.611 + 0.468 + 0.512) - (0.733 + 0.832 + 0.660 + 0.700)) / 4
    ),
    f"stl:lowers-centred-of-none:{CELL}:random": math.nan,
    "v:avgsim-gradual": 0.114 - 0.570 / 2,
    "v:selfsim-falls": 0.278 - 0.849,
    "v:intrasim-falls-avgsim": (0.776 - 0.477) - (0.435 - 0.105),
}


def test_the_papers_numbers_are_their_own(claims):
    found = claims.published[list(PUBLISHED)].to_dict()
    assert found == pytest.approx(PUBLISHED, abs=1e-6, nan_ok=True)


def test_a_loss_within_the_margin_is_kept_and_no_rise_a_larger_one_is_none():
    """Issue: the paper claims a rise; "no worse by .02" agreed where accuracy fell."""
    runs = planted.summary(noise=0.001)
    for arm, loss in (("prominent", 0.01), ("all", 2 * MARGIN)):
        runs.loc[runs.arm == arm, "graded"] -= loss
    found = _stl_claims(runs)
    verdicts = found.set_index("claim").verdict
    for row, verdict in (
        ("metric-kept:{}:all", "disagrees"),
        ("metric-kept:{}:prominent", "agrees"),
        ("metric-rises:{}:prominent", "disagrees"),
        ("metric-above-all:{}:prominent", "agrees"),
    ):
        assert verdicts["stl:" + row.format(CELL)] == verdict
    shuffled = _stl_claims(runs.groupby("arm", sort=False).sample(frac=1, random_state=1))
    pd.testing.assert_frame_equal(shuffled, found)


def test_an_accuracy_interval_carries_the_choice_of_rows():
    """Issue: verdicts depended on which 256 rows were scored."""
    runs = planted.summary(noise=0.0)
    runs["value"] -= 0.04 * (runs.arm == "prominent")  # equal over seeds
    runs["graded"] = runs.value
    by_seeds, by_rows = (
        _stl_claims(table).set_index("claim").loc[f"stl:metric-kept:{CELL}:prominent"]
        for table in (runs, planted.with_rows(runs))
    )
    assert by_rows.estimate == pytest.approx(by_seeds.estimate)
    assert by_rows.high - by_rows.low > 0.01 > by_seeds.high - by_seeds.low


def test_a_task_without_classes_has_rows_of_its_directions_alone():
    table = pd.DataFrame([planted.cloud("all", 0), planted.cloud("all", 1, task="stsb")])
    assert table.classes.tolist() == [2, 0]
    assert table.silhouette.isna().tolist() == table.class_cosine.isna().tolist() == [False, True]
    names = _clouds_claims(table[table.task == "stsb"]).claim
    assert names.str.startswith("rp:elongated").all() and len(names) == 2


def test_isotropy_against_clusters_is_a_difference_with_the_sign_of_isotropys():
    """Of three seeds and two arms: the rounder run's silhouette minus the other's."""
    runs = [planted.cloud(arm, seed) for seed in planted.SEEDS for arm in ("none", "all", "random")]
    isoscore = [0.1, 0.5, 0.05] * 3  # all is rounder than none, random is not
    silhouette = [0.9, 0.7, 0.95, 0.9, 0.6, 0.92, 0.9, 0.8, 0.7]
    table = pd.DataFrame(runs).assign(isoscore=isoscore, silhouette=silhouette)
    row = _clouds_claims(table).iloc[-1]
    signed = [(-0.2 - 0.05) / 2, (-0.3 - 0.02) / 2, (-0.1 + 0.2) / 2]
    assert row.claim == "mga:conflict:minilm:sentiment_movies" and row.n == 3
    assert row.estimate == pytest.approx(np.mean(signed)) and row.verdict == "inconclusive"


def test_runs_whose_loss_still_moves_in_the_last_epochs_have_not_converged():
    """It moves up in one run and down in the other: that does not cancel."""
    runs = planted.summary()
    found = _stl_claims(_add_best_epoch(runs, planted.evaluations(runs, late=0.1)))
    row = found.set_index("claim").loc[f"stl:converged:{CELL}:none"]
    assert row.verdict == "disagrees" and row.estimate == pytest.approx(-0.1, abs=1e-3)


def test_a_claim_about_all_layers_fails_by_one_of_them():
    stitches = planted.stitches()
    into_gelu = (stitches.relation == "activation") & stitches.front.str.startswith("solu")
    one = (stitches.kind == "affine") & (stitches.layer == 3)
    stitches.loc[into_gelu & one, "penalty"] -= 0.5
    row = stitching_claims(stitches).set_index("claim").loc["b:stitch-every-layer"]
    assert row.verdict == "disagrees" and row.estimate == pytest.approx(-0.3, abs=0.01)


def with_translation(*stacks):
    """Planted tables whose translation model is these tables of places, a stack each."""
    tables = planted.objectives()
    places = tables["places"]
    both = [of.assign(stack=name, objective="mt") for name, of in stacks]
    return tables | {"places": pd.concat([places[places.objective != "mt"], *both])}


def of_objective(name):
    """Planted places of an objective."""
    places = planted.objectives()["places"]
    return places[places.objective == name]


def test_feed_forward_weights_peak_in_the_last_layer_of_the_stack_where_they_do():
    encoder, decoder = of_objective("mlm"), of_objective("mlm")
    top = (decoder.layer == 2) & (decoder.component == "W1")
    decoder = decoder.assign(value=decoder.value.where(~top, decoder.value * (3 + decoder.seed)))
    found = dynamics_claims(with_translation(("encoder", encoder), ("decoder", decoder)))
    verdicts = found.set_index("claim").verdict
    assert verdicts["v:lca-peaks-upper-decoder"] == "agrees"
    assert verdicts["v:lca-peaks-upper-encoder"] == "inconclusive"


def test_a_calibration_that_helps_at_one_of_its_weights_is_seen():
    frontier = planted.frontier({"prominent": 0.2, "cosine": -0.5})
    row = _topology_claims(frontier).set_index("claim").loc[f"topology:calibration:{CELL}:cosine"]
    assert row.verdict == "disagrees" and row.estimate == pytest.approx(-0.5 * 0.3, abs=0.01)
    assert row.arm == "cosine" and row.kind == "analogue"


def test_feed_forward_weights_that_contribute_by_their_number_are_no_main_contributors():
    """Issue: against a half they agreed with V by holding two thirds of the weights."""
    tables = planted.objectives()
    places, stacks = tables["places"], planted.STACKS
    runs = [
        planted.training(o, seed, {}).assign(stack=stack)
        for o, stack in stacks
        for seed in planted.SEEDS
    ]
    table = pd.concat([*runs, places[places.part == "stability"]], ignore_index=True)
    wide = (table.part == "objectives") & table.component.isin(["W1", "W2"])
    table.loc[wide, "value"] *= 4
    found = dynamics_claims(tables | {"places": table}).set_index("claim")
    row = found.loc["v:lca-feed-forward-mlm"]
    assert row.estimate == pytest.approx(0, abs=1e-9) and row.verdict != "agrees"
    assert "(2/3)" in row.statement and "(4/7)" in found.statement["v:lca-feed-forward-mt"]


def test_the_halves_of_a_translation_model_are_held_against_both_language_models():
    halves = of_objective("mlm"), of_objective("clm")
    for names, verdict in (
        (("encoder", "decoder"), "agrees"),
        (("decoder", "encoder"), "disagrees"),
    ):
        found = dynamics_claims(with_translation(*zip(names, halves, strict=True)))
        rows = found.set_index("claim").filter(like="-like-", axis=0)
        assert rows.verdict.to_dict() == {
            "v:lca-encoder-like-mlm": verdict,
            "v:lca-decoder-like-clm": verdict,
        }


@pytest.mark.parametrize(("cost", "verdict"), [(0.2, "agrees"), (0.9, "disagrees")])
def test_selected_bars_are_held_against_all_bars_at_the_larger_weights(cost, verdict):
    frontier = planted.frontier({"prominent": cost, "all": 0.5}, wobble=0.5)
    rows = _topology_claims(frontier).set_index("claim").filter(like="metric-above-all", axis=0)
    assert rows.index.tolist() == [f"topology:metric-above-all:{CELL}:2"]
    assert rows.verdict.tolist() == [verdict] and "at weight 2 each" in rows.statement.iloc[0]
    assert rows.estimate.iloc[0] == pytest.approx(0.3 * (0.5 - cost), abs=0.02)


def test_the_opposite_truth_disagrees():
    jump, early = planted.contextuality(), planted.generalization()
    jump.loc[(jump.quantity == "avg_sim") & (jump.layer == 1), "value"] += 0.1
    pairs = early.layer >= 0
    early.loc[pairs, "layer"] = early.layer[pairs].map({0: 0, 1: 4, 2: 2, 3: 3, 4: 1})
    for table, rows, number in (
        (_vazquez_claims(jump, planted.corpus(fall=-0.2)), "v:(avgsim-gradual|selfsim-falls)", 2),
        (_brown_claims(planted.similarity(top=-0.1, part=-0.1)), "late", 5),
        (generalization_claims(early), "cka-(late-o|early-d|middle-d)|stitch-(late|above)", 5),
    ):
        found = table.set_index("claim").verdict.filter(regex=rows)
        assert set(found) == {"disagrees"} and len(found) == number


def test_profiles_that_follow_the_text_are_not_stable_and_own_profiles_of_seeds_are():
    tables = planted.objectives()
    changed = tables["places"].copy()
    there = (changed.source == "gramps") & (changed["window"] == 0)
    changed.loc[there, "value"] = changed.loc[there, "value"].to_numpy()[::-1]
    found = dynamics_claims(tables | {"places": changed}).set_index("claim").verdict
    assert found["v:lca-stable-domain"] == "disagrees"
    assert found["v:lca-stable-size"] == found["v:lca-stable-language"] == "agrees"
    own, rng = tables["places"].copy(), np.random.default_rng(0)
    luck = {(s, x, c): rng.normal() for s in planted.SEEDS for x in (1, 2) for c in COUNTED}
    texts = own.part == "stability"
    keys = zip(own.seed[texts], own.layer[texts], own.component[texts], strict=True)
    own.loc[texts, "value"] += [luck[key] for key in keys]
    row = dynamics_claims(tables | {"places": own}).set_index("claim").loc["v:lca-stable-domain"]
    assert row.estimate == pytest.approx(0, abs=0.02)  # equal starts do not make them stable


def test_the_noise_of_shorter_runs_does_not_decide_whether_objectives_matter_more():
    """Eight profiles, each as far from every other; runs on texts are noisier."""
    rng, cells = np.random.default_rng(0), [(x, c) for x in (1, 2) for c in COUNTED]
    base = np.repeat(np.arange(1.0, 7), 2)
    known = np.column_stack([np.ones_like(base), base, rng.normal(size=(len(base), 8))])
    profiles = base + np.linalg.qr(known)[0][:, 2:].T
    names, rows = ("mlm", "clm", "mt", "testament", "half", "german", "finnish", "gramps"), []
    for (i, name), seed in product(enumerate(names), range(5)):
        noise = 0.3 if i < 3 else 1.0
        part, objective = ("objectives", name) if i < 3 else ("stability", "nan")
        values = -profiles[i] - noise * rng.normal(size=12)
        about = {"part": part, "objective": objective, "source": name, "seed": seed}
        about |= {"steps": 20, "hurts": 0, "window": 0}
        rows += [
            {**about, "stack": stack, "rule": rule, "layer": x, "component": c, "value": value}
            for stack in (("encoder", "decoder") if name == "mt" else ("",))
            for rule in ("euler", "trapezoid")
            for (x, c), value in zip(cells, values, strict=True)
        ]
    tables = planted.objectives() | {"places": pd.DataFrame(rows)}
    row = dynamics_claims(tables).set_index("claim").loc["v:lca-objective-over-data"]
    assert row.verdict == "inconclusive" and abs(row.estimate) < 0.06  # of .2 by noise


def test_what_the_model_on_top_costs_by_itself_is_no_asymmetry():
    stitches = planted.stitches(asymmetry=0.0)
    stitches.loc[stitches.back.str.startswith("gelu"), "penalty"] += 0.3  # whatever is below them
    found = stitching_claims(stitches).set_index("claim")
    assert found.verdict["b:stitch-asymmetry:affine"] == "agrees"
    assert found.verdict["b:stitch-asymmetry-net:affine"] == "inconclusive"
    assert found.estimate["b:stitch-same-activation:affine"] == pytest.approx(-0.3, abs=0.01)
    assert found.estimate["b:stitch-trained-affine"] == pytest.approx(-0.5, abs=0.01)


def test_hans_has_no_rows_of_our_controls_and_is_the_papers_test():
    table = planted.generalization()
    hans = table[table.data != "new words"].copy()
    hans["template"] = hans.template.where(hans.template == "", "ln_" + hans.template)
    shallow = hans[hans.layer != 3].replace({"layer": {4: 3}})  # its middle layer is its first
    found = generalization_claims(hans).set_index("claim")
    assert not found.index.str.contains("unseen|new-words").any()
    assert found.verdict["b:generalization-cka-late-dev"] == "replicated"
    assert not generalization_claims(shallow).claim.str.contains("middle").any()


def test_an_accuracys_drop_is_against_the_centred_cloud():
    keys = ["arm", "seed", "vectors", "treatment", "removed", "skipped"]
    drops = _accuracy_drops(planted.after_finetuning()).set_index(keys)["drop"]
    assert drops.loc["pretrained", 0, "cls", "clusters", 3, 0] == pytest.approx(0.16, abs=0.01)


@pytest.mark.parametrize(("missed", "tested"), [(1, True), (2, False)])
def test_nothing_is_decided_where_over_a_quarter_of_the_seeds_take_their_nearest_point(
    missed, tested
):
    """The rule of the hypotheses, docs/preregistration.md; the other rows stay as they are."""
    three = planted.frontier(planted.THREE, scores=planted.WEAK)
    frontier = pd.concat([three, three[three.seed == 2].assign(seed=3)], ignore_index=True)
    frontier.loc[(frontier.arm == "random") & (frontier.seed > 3 - missed), "centred_1"] = 0.58
    row = _topology_claims(frontier).set_index("claim").loc[f"topology:matched:{CELL}:random"]
    assert (row.verdict != "described") == tested == math.isfinite(row.p)
    assert f"(none does in {missed} of 4 seeds: the nearest is taken" in row.statement
    assert ("not tested" in row.statement) != tested


def test_a_missing_seed_is_an_error():
    three = planted.frontier({name: planted.THREE[name] for name in ("prominent", "random")})
    for lacks, message in (
        ("random", rf"random lacks the seeds \[1\] of prominent on {CELL}"),
        ("prominent", rf"'topology:lowers-more:{CELL}:random': differences has NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            _topology_claims(three[(three.arm != lacks) | (three.seed != 1)])


def test_without_a_sweep_prominent_bars_or_further_models_there_are_no_rows():
    assert set(OTHERS) < set(ARMS)
    frontier = planted.frontier({"random": 0.5})
    empty = planted.contextuality().assign(model="", measured_on="").iloc[:0]
    for table in (_topology_claims(frontier), _topology_claims(frontier.iloc[:0])):
        assert table.empty and "verdict" in table
    assert not [*_models_claims(empty), *_further_models_claims({"models_contextuality": empty})]
