"""The preregistered analysis on made-up runs whose effects are known."""

import math
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS
from statsmodels.stats.sandwich_covariance import cov_cluster_2groups

from shrink_utils.study.ablation import interpolate_frontier
from shrink_utils.study.claims import rewards
from shrink_utils.study.statistics import mean_of as mean_of_the_study
from shrink_utils.study.statistics import two_way_variance

FOLDER = Path(__file__).resolve().parents[2] / "data" / "reference" / "cohort"
DECIDE = runpy.run_path(str(FOLDER / "decide.py"))
BY_ID, Mean = DECIDE["BY_ID"], DECIDE["Mean"]
decide, differences, holm = DECIDE["decide"], DECIDE["differences"], DECIDE["holm"]
mean_of, one_sided_p, onset = DECIDE["mean_of"], DECIDE["one_sided_p"], DECIDE["onset"]
SEEDS, ROWS = range(100, 120), 200


def _runs(scores, accuracies, noise=0.01):
    """Tables of runs: `scores` and `accuracies` by (task, arm, weight)."""
    rng, runs, correct = np.random.default_rng(0), [], []
    for (task, arm, weight), score in scores.items():
        for seed in SEEDS:
            keys = {"task": task, "arm": arm, "weight": weight, "seed": seed, "epochs": 3}
            runs.append(keys | {"centred_1": score + noise * rng.standard_normal()})
            right = rng.random(ROWS) < accuracies[task, arm, weight]
            correct.append(pd.DataFrame({**keys, "row": range(ROWS), "correct": right * 1.0}))
    return pd.DataFrame(runs), pd.concat(correct, ignore_index=True)


def _long(levels, onsets):
    runs, steps = [], []
    for arm in levels:
        for i, seed in enumerate(SEEDS[:8]):
            keys = {"task": "sentiment_products", "arm": arm, "weight": 1.0, "seed": seed}
            keys |= {"epochs": 10}
            runs.append(keys | {"centred_1": levels[arm] + 0.001 * i})
            n = np.arange(1, 61)
            score = np.where(n >= onsets[arm] + i % 3, levels[arm], 0.0)
            step = pd.DataFrame({**keys, "step": n, "rows": 64, "centred_1": score})
            steps.append(pd.concat([step, step.tail(1).assign(step=61, rows=9, centred_1=99.0)]))
    return pd.DataFrame(runs), pd.concat(steps, ignore_index=True)


@pytest.fixture(scope="module")
def tables():
    movies, products = "sentiment_movies", "sentiment_products"
    scores = {(movies, arm, 1.0): s for arm, s in [("none", 0.6), ("prominent", 0.4), ("all", 0.4)]}
    scores |= {(products, "none", 1.0): 0.6, (products, "prominent", 1.0): 0.4}
    scores |= {(products, "all", 1.0): 0.5, (products, "cosine", 0.03): 0.58}
    scores |= {(products, "cosine", 0.1): 0.57}  # never passes .4
    for arm in ("random", "isoscore", "spectral"):
        scores |= {(products, arm, 0.3): 0.5, (products, arm, 1.0): 0.3}
    accuracies = dict.fromkeys(scores, 0.8) | {(products, "prominent", 1.0): 0.6}
    runs, correct = _runs(scores, accuracies)
    long_runs, steps = _long({"none": 0.7, "prominent": 0.5}, {"none": 10, "prominent": 30})
    return {"runs": pd.concat([runs, long_runs]), "correct": correct, "steps": steps}


def test_known_effects_are_decided(tables):
    verdicts = decide(tables).set_index("id").verdict.to_dict()
    assert verdicts["H1"] == verdicts["H2"] == verdicts["H6"] == "supported"
    assert verdicts["H5"] == "equivalent"  # no difference, and a small spread
    assert verdicts["H4"] == verdicts["H7"] == verdicts["H8"] == "contradicted"
    assert verdicts["H10"] == "not tested"
    assert verdicts["H11"] == verdicts["H12"] == "supported"


def test_the_estimates_are_paired_means(tables):
    table = decide(tables).set_index("id")
    score = tables["runs"].query("task == 'sentiment_movies'")
    score = score.pivot(index="seed", columns="arm", values="centred_1")
    found = stats.ttest_rel(score.prominent, score.none, alternative="less")
    assert table.loc["H1", "estimate"] == pytest.approx((score.prominent - score.none).mean())
    assert table.loc["H1", "p"] == pytest.approx(found.pvalue)
    level = 1 - 0.05 / 12
    expected = stats.ttest_rel(score.prominent, score.none).confidence_interval(level)
    assert [table.loc["H1", "low"], table.loc["H1", "high"]] == pytest.approx(list(expected))


def test_accuracy_at_matched_score_is_read_off_between_weights(tables):
    """All of IsoScore's weights have accuracy .8, wherever its sweep passes the score."""
    found = differences(BY_ID["H8"], tables)
    assert found.values.shape == (len(SEEDS), ROWS) and found.nearest == 0
    assert found.values.mean() == pytest.approx(0.6 - 0.8, abs=0.03)
    assert differences(BY_ID["H10"], tables).nearest == 1


@pytest.mark.parametrize("missed", [5, 6])
def test_a_sweep_that_misses_the_score_in_more_than_a_quarter_of_the_seeds_is_not_tested(
    tables, missed
):
    runs = tables["runs"].copy()
    farthest = (runs.arm == "isoscore") & (runs.weight == 1) & runs.seed.isin(SEEDS[:missed])
    runs.loc[farthest, "centred_1"] = 0.45  # the prominent bars have .4
    row = decide(tables | {"runs": runs}).set_index("id").loc["H8"]
    assert row.nearest == pytest.approx(missed / 20)
    assert (row.verdict == "not tested") == (missed > 5)


def test_an_onset_is_the_first_step_whose_last_five_reach_the_bound(tables):
    score = pd.Series([0.0] * 9 + [1.0] * 11, index=range(1, 21))
    assert onset(score, 1.0) == 14  # steps 10 to 14
    assert onset(score, 0.2) == 10
    assert onset(score, 2.0) == 20
    found = differences(BY_ID["H12"], tables).values
    # Three of five steps at its level for none; four, at the lower level, for prominent.
    assert set(found) == {21}


def test_rows_and_seeds_both_widen_an_interval():
    """Two-way clustering against statsmodels."""
    rng = np.random.default_rng(1)
    shape = (20, 300)
    values = rng.normal(size=(20, 1)) + rng.normal(size=(1, 300)) + rng.normal(size=shape)
    seeds, rows = (index.ravel() for index in np.indices(shape))
    fit = OLS(values.ravel(), np.ones(values.size)).fit()
    expected = [cov.item() for cov in cov_cluster_2groups(fit, seeds, rows)]
    assert two_way_variance(values) == pytest.approx(expected, rel=1e-9)
    mean = mean_of(values)
    assert mean.estimate == pytest.approx(values.mean())
    assert mean.of_rows == pytest.approx(expected[0] - expected[1])
    assert mean.error == pytest.approx(math.sqrt(expected[0]), rel=1e-9)
    assert mean.n == 20
    assert mean.error > values.mean(axis=1).std(ddof=1) / math.sqrt(20)  # of seeds alone


def test_a_variance_below_zero_gives_way_to_that_of_seeds_or_rows_alone():
    """A deviation of the page: rows and seeds that cancel out leave less than nothing."""
    values = np.array([[1.01, -0.99, 1.01, -0.99], [-1.0, 1.0, -1.0, 1.0]])
    found = two_way_variance(values)
    assert found.both < 0 < found.seeds
    for of in (mean_of(values), mean_of_the_study(values)):
        assert of.error == math.sqrt(max(found.seeds, found.rows))


def test_holm_by_hand():
    adjusted = holm(pd.Series([0.01, 0.04, math.nan, 0.02]))
    assert adjusted.tolist()[:2] == pytest.approx([0.04, 0.08])
    assert math.isnan(adjusted[2]) and adjusted[3] == pytest.approx(0.06)


def test_an_open_row_says_how_many_seeds_would_decide_it(tables):
    runs = tables["runs"].copy()
    noisy = (runs.arm == "prominent") & (runs.task == "sentiment_movies")
    shift = np.tile([-0.5, 0.3], 10) * 1.0
    runs.loc[noisy, "centred_1"] = 0.6 + shift
    row = decide(tables | {"runs": runs}).set_index("id").loc["H1"]
    assert row.verdict == "open" and row.n < row.seeds_needed < 500
    sd = np.std(shift, ddof=1)
    n = row.seeds_needed
    half = stats.t.isf(0.05 / 12 / 2, n - 1) * sd / math.sqrt(n)
    assert half == pytest.approx(abs(row.estimate), rel=0.05)


def test_an_undecided_onset_is_open_because_it_has_no_margin(tables):
    steps = tables["steps"].copy()
    swapped = steps.seed.isin(SEEDS[:4])  # of eight
    other = {"none": "prominent", "prominent": "none"}
    steps.loc[swapped, "arm"] = steps.arm[swapped].map(other)
    assert decide(tables | {"steps": steps}).set_index("id").verdict["H12"] == "open"


def test_equal_differences_decide_by_their_side_of_the_bound():
    for p, cases in {
        1: [("H12", 0), ("H12", -1), ("H1", 0), ("H1", 1)],  # support nothing
        0: [("H12", 1), ("H1", -1), ("H3", 0)],
    }.items():
        for h, shift in ((BY_ID[name], shift) for name, shift in cases):
            assert one_sided_p(Mean(float(shift), 0.0, 8), h.direction, h.bound) == p


def test_places_on_sweeps_and_the_least_share_are_those_of_the_study():
    assert DECIDE["NEAREST_AT_MOST"] == rewards.NEAREST_AT_MOST
    rng = np.random.default_rng(0)
    for scores in (*rng.uniform(size=(20, 4)), np.array([0.5, 0.5, 0.5, 0.2])):
        for score in (*rng.uniform(size=5), 0.5):
            assert DECIDE["place_on_sweep"](scores, score) == interpolate_frontier(scores, score)


def test_nobody_looks_before_all_runs_are_on_record(tmp_path):
    for path in FOLDER.glob("*.parquet"):
        (tmp_path / path.name).symlink_to(path)
    (tmp_path / "runs.parquet").unlink()
    pd.read_parquet(FOLDER / "runs.parquet").iloc[1:].to_parquet(tmp_path / "runs.parquet")
    with pytest.raises(ValueError, match="371 runs are on record"):
        DECIDE["write"](tmp_path)
    assert not [*tmp_path.glob("*.csv")]
