"""Claims on kept clouds, on clouds whose shape is known."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats

from shrink_utils.study.claims.clouds import clouds_claims, measure_clouds

LABELS = torch.arange(60) % 2
D = 12


def _run(arm, seed, *, apart=8.0, scale=1.0, task="sentiment_movies", labels=LABELS):
    """Two classes, `apart` along the third axis; before, a round cloud."""
    rng = np.random.default_rng([seed, len(arm)])
    before = torch.from_numpy(rng.normal(size=(len(labels), D)))
    after = torch.from_numpy(rng.normal(size=(len(labels), D)))
    after[:, 2] += apart * labels
    embeddings = {"before": before, "after": scale * after, "labels": labels}
    config = SimpleNamespace(model="minilm", task=task, arm=arm, weight=1.0, seed=seed)
    return SimpleNamespace(config=config, embeddings=embeddings)


APART = {"none": 12.0, "prominent": 6.0, "all": 3.0}
SCALE = {"none": 1.0, "prominent": 1.0, "all": 0.5}


@pytest.fixture(scope="module")
def claims():
    runs = [_run(a, s, apart=APART[a], scale=SCALE[a]) for a in APART for s in range(3)]
    found = clouds_claims(measure_clouds(runs))
    assert found.claim.is_unique
    return found.set_index(found.claim.str.split(":", n=1).str[1])


CELL = "minilm:sentiment_movies"


def test_all_bars_have_shorter_trees_by_what_the_cloud_is_smaller(claims):
    row = claims.loc[f"shorter-tree:{CELL}:all"]
    assert row.estimate == pytest.approx(np.log(0.5), abs=0.05) and row.verdict == "agrees"
    assert claims.index.str.startswith("shorter-tree").sum() == 1


def test_the_top_direction_is_the_class_normal_where_classes_lie_far_apart(claims):
    row = claims.loc[f"class-normal:{CELL}:none"]
    assert row.estimate == pytest.approx(1 - 0.9, abs=0.02) and row.verdict == "agrees"
    near = clouds_claims(measure_clouds([_run("none", seed, apart=0.0) for seed in range(3)]))
    row = near[near.claim.str.startswith("stl:class-normal")].iloc[0]
    assert row.verdict == "disagrees"


def test_the_sign_of_elongation_depends_on_the_yardstick_and_decides_nothing(claims):
    """A cloud ten times as large has every direction elongated by the mean of before."""
    large = clouds_claims(
        measure_clouds([_run("none", seed, apart=0.0, scale=10.0) for seed in range(3)])
    )
    found = large.set_index("claim").filter(like="elongated", axis=0)
    assert found.estimate.tolist() == [0, D] and set(found.verdict) == {"described"}
    assert set(claims.verdict.filter(like="elongated")) == {"described"}
    kinds = claims.kind.filter(like="elongated-own")
    assert kinds.str.replace("scaled test", "none").tolist() == ["none", "analogue", "analogue"]


def test_isotropy_conflicts_with_clusters_where_the_classes_make_the_cloud_long(claims):
    row = claims.loc[f"conflict:{CELL}"]
    assert row.estimate < -0.8 and row.verdict == "agrees" and row.arm == ""
    two = clouds_claims(measure_clouds([_run(a, s) for a in ("none", "all") for s in range(3)]))
    assert not two.claim.str.startswith("mga").any()  # two points always correlate


def test_the_interval_of_a_correlation_stays_between_minus_one_and_one():
    """Correlations of −1.00, −.99 and −.57: a t interval of them ends below −1."""
    isoscore = [0.1, 0.5, 0.9, 0.1, 0.5, 0.9, 0.1, 0.5, 0.9]
    silhouette = [0.9, 0.51, 0.1, 0.9, 0.57, 0.1, 0.9, 0.2, 0.5]
    runs = [_run(a, s, apart=APART[a]) for s in range(3) for a in APART]
    clouds = measure_clouds(runs).assign(isoscore=isoscore, silhouette=silhouette)
    found = clouds_claims(clouds).set_index("claim").loc[f"mga:conflict:{CELL}"]
    r = [np.corrcoef(isoscore[i : i + 3], silhouette[i : i + 3])[0, 1] for i in (0, 3, 6)]
    assert stats.t.interval(0.95, 2, np.mean(r), stats.sem(r))[0] < -1 < found.low
    assert found.estimate == pytest.approx(np.tanh(np.arctanh(r).mean()))
    assert found.p == pytest.approx(stats.ttest_1samp(np.arctanh(r), 0).pvalue)
    assert -1 < found.low < found.estimate < found.high < 1


def test_numbers_of_one_run_and_of_a_regression():
    table = measure_clouds([_run("none", 0), _run("none", 1, task="stsb", labels=torch.rand(60))])
    assert table.classes.tolist() == [2, 0]
    assert table.silhouette.isna().tolist() == table.class_cosine.isna().tolist() == [False, True]
    assert np.isfinite(table[["log_edge", "isoscore"]]).all(axis=None)


def test_arms_and_tasks_that_a_study_lacks_make_no_rows():
    found = clouds_claims(
        measure_clouds([_run("all", s, task="stsb", labels=torch.rand(60)) for s in range(3)])
    )
    assert set(found.claim.str.split(":").str[1]) == {"elongated-own", "elongated-pretrained"}
