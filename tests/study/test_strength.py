"""The second fixed analysis, on planted runs whose effects are known."""

import runpy
import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from shrink_utils.study import load_profile
from shrink_utils.study.records import KEYS
from shrink_utils.study.statistics import mean_of

FOLDER = Path(__file__).resolve().parents[2] / "data" / "reference" / "strength"
DECIDE = runpy.run_path(str(FOLDER / "decide.py"))
beside, decide, runs_of = DECIDE["beside"], DECIDE["decide"], DECIDE["runs_of"]
ONCE_MORE = FOLDER / "one_device"  # every run again, on one GPU
ROWS = 80
SCORES = {0: 0.5, 0.01: 0.4, 0.02: 0.3, 0.5: 0.3, 1: 0.22, 1.5: 0.17, 2: 0.13, 3: 0.08, 4: 0.06}
SCORES |= {0.03: 0.19, 0.05: 0.1, 0.3: 0.3, 0.6: 0.16}


def planted(*, less=0.0, within=0.0, silhouette=0.0, level=0.1, shallow=False, noise=0.003):
    """Tables of a whole study: what prominent has more or less than all, at every equal score.

    Accuracy falls by a twentieth of what the centred score falls; over ten epochs, `level` is that
    of all at weight 4 above that of prominent at 1.
    """
    rng, tables = np.random.default_rng(0), {"runs": [], "evaluations": [], "correct": []}
    easy = np.linspace(-0.1, 0.1, ROWS)  # rows are as easy for every run
    for config in load_profile("strength").all_runs(precision="float32"):
        keys = {name: getattr(config, name) for name in KEYS}
        own, weight = config.arm == "prominent", 0 if config.arm == "none" else config.weight
        if config.epochs == 10:
            long = {"none": 0.8, "all": 0.9 - 0.15 * weight, "random": 0.6, "isoscore": 0.6}
            score = 0.3 - level if own else long[config.arm]
        else:
            score = SCORES[weight] * (1 + weight * (shallow and config.arm == "all"))
        score += noise * rng.standard_normal()
        accuracy = 0.8 - 0.05 * (0.5 - score) - less * own
        right = accuracy + easy + noise * rng.standard_normal(ROWS)
        tables["runs"].append(keys | {"centred_1": score, "time": "2026-12-01T00:00:00+00:00"})
        tables["correct"].append(pd.DataFrame({**keys, "row": range(ROWS), "correct": right}))
        for epoch in range(config.epochs + 1):
            tables["evaluations"].append(
                keys
                | {"epoch": float(epoch), "loss": abs(epoch - 2.0), "accuracy": accuracy}
                | {"centred_1": score / 2 if epoch == 2 else 9.0}
                | {"within_1": 0.3 + within * own + noise * rng.standard_normal()}
                | {"silhouette": 0.2 + silhouette * own + noise * rng.standard_normal()}
            )
    frames = {name: pd.DataFrame(tables[name]) for name in ("runs", "evaluations")}
    return frames | {"correct": pd.concat(tables["correct"], ignore_index=True)}


def verdicts(**effects):
    return decide(planted(**effects)).set_index("id").verdict.to_dict()


def test_effects_that_are_there_are_found_with_their_sign():
    table = decide(planted(less=0.1, within=0.2, silhouette=-0.1, level=-0.3)).set_index("id")
    said = dict.fromkeys(["S1", "S2", "S5", "S7"], "less") | {"S4": "more"}
    said |= dict.fromkeys(["S3", "S6", "S8"], "supported")
    assert table.verdict.to_dict() == said
    assert table.estimate["S2"] == pytest.approx(-0.1, abs=0.002)
    # Prominent has lost .02 a sixth of the way from none, of its own .1 and what its score costs.
    assert table.estimate["S5"] == pytest.approx(-0.1 * 0.02 / (0.1 + 0.05 * 0.28), abs=0.002)
    assert table.estimate["S6"] == pytest.approx(0.3 - 0.6, abs=0.005)
    assert table.estimate["S8"] == pytest.approx((0.3 - 0.6) / 2, abs=0.005)
    assert ((table.low < table.estimate) & (table.estimate < table.high)).all()
    assert (table.holm >= table.p).all() and table.n.to_dict()["S1"] == 20 and table.n["S7"] == 8


def test_effects_of_the_other_sign_are_found_too():
    found = verdicts(less=-0.001, within=-0.2, silhouette=0.1, level=-0.05)
    said = dict.fromkeys(["S1", "S2", "S5", "S7"], "more") | {"S4": "less"}
    assert found == said | {"S3": "contradicted", "S6": "supported", "S8": "supported"}


def test_equal_frontiers_are_equivalent_and_a_weaker_reward_contradicts():
    found = verdicts(level=0.1)  # all at weight 4 ends at .3, prominent at .2
    assert [found[h] for h in ("S4", "S5")] == ["equivalent", "equivalent"]
    assert {found[h] for h in ("S1", "S2", "S3")} <= {"equivalent", "open"}
    assert [found[h] for h in ("S6", "S7", "S8")] == ["contradicted", "not tested", "contradicted"]
    found = verdicts(level=0.0, noise=0.01)
    assert {found["S6"], found["S8"]} <= {"equivalent", "open"}


def test_a_sweep_that_does_not_pass_its_target_is_not_tested():
    found = verdicts(shallow=True, level=-0.1)  # all stays above .22
    assert [found[h] for h in ("S1", "S2", "S3")] == ["not tested"] * 3
    assert found["S7"] != "not tested"


def test_the_place_is_that_of_mean_sweeps_by_hand():
    """All seeds alike: linear between the weights 1 (.22) and 1.5 (.17), at .20, .40 of the way."""
    tables = planted(noise=0.0)
    correct = tables["correct"]
    correct["correct"] = np.where(correct.arm == "prominent", correct.weight / 10, 0.0)
    table = decide(tables).set_index("id")
    assert table.estimate["S1"] == pytest.approx(0.1 + 0.4 * 0.05)
    assert table.estimate["S2"] == pytest.approx(0.15 + 0.5 * 0.05)


def test_the_jackknife_of_a_plain_difference_is_the_paired_t_test():
    tables = planted(level=-0.1, noise=0.02)
    runs = runs_of(tables, 10)
    differences = runs["all", 4.0].score - runs["prominent", 1.0].score
    expected = stats.ttest_1samp(differences, 0, alternative="less").pvalue
    row = decide(tables).set_index("id").loc["S6"]
    assert row.p == pytest.approx(expected) and row.estimate == pytest.approx(differences.mean())


def test_a_seed_that_an_arm_lacks_counts_in_none():
    tables = planted()
    gone = (tables["runs"].seed == 203) & (tables["runs"].arm == "longest")
    tables["runs"] = tables["runs"][~gone]
    assert decide(tables).n.tolist() == [19] * 5 + [8] * 3


def test_the_planned_comparisons_beside_cover_every_arm():
    table = beside(planted(less=0.05))
    text = " ".join(table.comparison)
    profile = load_profile("strength")
    assert all(arm in text for arm in profile.arms if arm != "none")
    row = table.set_index("comparison").loc["accuracy: prominent 1 − none"]
    assert row.estimate < -0.05 and row.high < 0
    assert table[["estimate", "low", "high"]].notna().all(axis=None)
    long = {f"{run.arm} {run.weight:g}" for run in profile.long_runs() if run.arm != "none"}
    assert {f"score: {arm} − none" for arm in long} <= {*table[table.epochs == 10].comparison}


def test_beside_accuracy_has_an_error_by_seed_and_row_and_says_which_rows_have_not():
    """The page asks for it: an error by seeds alone is as narrow as if these rows were all."""
    tables = planted()
    own = tables["correct"].arm == "prominent"
    tables["correct"].loc[own, "correct"] += 0.2 * (-1.0) ** tables["correct"].row[own]
    runs, table = runs_of(tables, 3), beside(tables).set_index("comparison")
    differences = runs["prominent", 1.0].correct - runs["none", 0.0].correct
    assert DECIDE["mean_of"](differences) == pytest.approx(mean_of(differences)[:3])
    expected = mean_of(differences).interval()
    row = table.loc["accuracy: prominent 1 − none"]
    assert (row.estimate, row.low, row.high) == pytest.approx(expected[:3]) and row.low < -0.04
    by_row = table.index.str.contains("^accuracy|^correct")
    assert (by_row == (table.clusters == "seeds and rows")).all()
    assert set(table.clusters[~by_row]) == {"seeds"}


def test_the_tables_of_the_replicate_follow_from_its_runs_which_one_device_made(tmp_path):
    shutil.copytree(ONCE_MORE, tmp_path / "again", ignore=shutil.ignore_patterns("*.csv"))
    DECIDE["write"](tmp_path / "again")
    again = runpy.run_path(str(FOLDER / "again.py"))
    again["compare"](tmp_path / "again").to_csv(tmp_path / "again" / "devices.csv", index=False)
    for name in ("decided", "hypotheses", "beside"):
        expected = (ONCE_MORE / f"{name}.csv").read_text("utf-8")
        assert (tmp_path / "again" / f"{name}.csv").read_text("utf-8") == expected
    devices = [pd.read_csv(folder / "devices.csv") for folder in (tmp_path / "again", ONCE_MORE)]
    pd.testing.assert_frame_equal(*devices)
    runs, recorded = (pd.read_parquet(folder / "runs.parquet") for folder in (ONCE_MORE, FOLDER))
    assert runs.device.nunique() == 1 and recorded.device.nunique() == 2
    assert {*map(tuple, runs[KEYS].to_numpy())} == {*map(tuple, recorded[KEYS].to_numpy())}


def test_the_tables_of_runs_made_once_more_hold_every_run_with_its_length(tmp_path):
    again = runpy.run_path(str(FOLDER / "again.py"))
    configs = [
        replace(config, epochs=epochs, train_rows=64, eval_rows=32)
        for config, epochs in product(load_profile("smoke").runs()[:2], (1, 2))
    ]
    runs = again["make_all"](configs, tmp_path, 1)
    assert len(runs) == len({*configs}) == 4
    for name in again["DECIDED_ON"]:
        table = pd.read_parquet(tmp_path / f"{name}.parquet")
        assert set(table.epochs) == {1, 2} and len(table.groupby([*KEYS])) == 4
