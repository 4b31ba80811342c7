"""RP's claims on made-up tables in which the truth is known."""

from __future__ import annotations

import pandas as pd
import pytest

from shrink_utils.study.claims.rajaee import N_REMOVED, accuracy_drops, rajaee_claims

NOISE = {0: -0.004, 1: 0.001, 2: 0.003}
TRAINED = {"model": "minilm", "task": "movies"}
CLOUDS = [(arm, seed) for arm in ("pretrained", "none", "all") for seed in NOISE]
SPLIT = {0: 0.05, 1: -0.02, 2: 0.01}  # of a probe's halves, before and after alike


def _shape_rows():
    """log I(W) rises, IsoScore falls, elongated directions grow by 3 or, in the arm all, fall."""
    rows = []
    for arm, seed in CLOUDS:
        after = arm != "pretrained"
        noise = NOISE[seed] * after
        values = {
            "log I(W)": -12 + after + noise,
            "log I(W), unit norm": -2 + noise,
            "IsoScore": 0.3 - 0.2 * after + noise,
            "elongated directions": 20 + after * (3 if arm == "none" else -10) + 100 * noise,
        }
        for layer in (1, 2):
            for measure, value in values.items():
                value = value if layer == 2 else 7.0  # only the last layer is claimed about
                rows.append(_row(arm, seed, "cls", layer, measure, value))
    rows.append(_row("isotropic", 0, "cls", 2, "IsoScore", 1.0))
    return rows


def _row(arm, seed, vectors, layer, measure, value, treatment=None, removed=None, skipped=None):
    columns = {"arm": arm, "seed": seed, "vectors": vectors, "layer": layer, "measure": measure}
    removal = {"treatment": treatment, "removed": removed, "skipped": skipped}
    return {**TRAINED, **columns, **removal, "value": value}


def _accuracy_rows():
    """Pretrained loses .01 by the longest directions, fine-tuned .2; the next ones cost nothing."""
    rows = []
    for arm, seed in CLOUDS:
        fine_tuned = arm != "pretrained"
        noise = NOISE[seed] * fine_tuned
        base = 0.8 if fine_tuned else 0.6
        for vectors in ("cls", "mean"):
            rows.append(_row(arm, seed, vectors, 2, "accuracy", 0.99, "untreated", 0, 0))
            for treatment in ("global", "clusters"):
                far = 0.1 * (treatment == "clusters")  # claims are about the whole cloud
                loss = {0: SPLIT[seed] + (0.2 + noise if fine_tuned else 0.01 + far)}
                loss[N_REMOVED] = noise
                cell = (arm, seed, vectors, 2, "accuracy")
                rows.append(_row(*cell, base, treatment, 0, 0))
                for skipped, lost in loss.items():
                    rows.append(_row(*cell, base - lost, treatment, N_REMOVED, skipped))
                rows.append(_row(*cell, base - 0.5, treatment, N_REMOVED + 7, 0))
    return rows


def _decoded(arm, seed):
    return SPLIT[seed] + (0.5 if arm == "pretrained" else 0.3 + NOISE[seed])


TABLE = pd.DataFrame([*_shape_rows(), *_accuracy_rows()])
WORDS = pd.DataFrame(
    [
        {**TRAINED, "arm": arm, "seed": seed, "layer": layer, "probe": probe, "labels": labels}
        | {"value": _decoded(arm, seed) if labels == "true" else 0.0}
        for arm, seed in CLOUDS
        for layer in (1, 2)
        for probe in ("frequency", "type")
        for labels in ("true", "shuffled")
    ]
)


@pytest.fixture(scope="module")
def claims():
    return rajaee_claims(TABLE, WORDS).set_index("claim")


def _claim(claims, name, arm="none"):
    return claims.loc[f"rp:{name}:minilm:movies:{arm}"]


def test_isotropy_that_rises_contradicts_that_it_does_not(claims):
    row = _claim(claims, "partition")
    assert row.verdict == "not replicated" and row.estimate == pytest.approx(1)
    assert (row.n, row.unit) == (3, "seeds")


def test_isotropy_that_stays_decides_nothing(claims):
    row = _claim(claims, "partition-unit")
    assert row.verdict == "inconclusive" and row.estimate == pytest.approx(0, abs=1e-12)


def test_isotropy_that_falls_agrees(claims):
    row = _claim(claims, "isoscore")
    assert row.verdict == "replicated" and row.estimate == pytest.approx(-0.2)


def test_elongated_directions_are_compared_arm_by_arm(claims):
    assert _claim(claims, "elongated").verdict == "replicated"
    assert _claim(claims, "elongated", "all").verdict == "not replicated"
    assert _claim(claims, "elongated", "all").estimate == pytest.approx(-10)


@pytest.mark.parametrize("vectors", ["cls", "mean"])
def test_a_removal_is_judged_by_how_much_more_it_costs_than_before_fine_tuning(claims, vectors):
    row = _claim(claims, f"removal-{vectors}")
    assert row.verdict == "replicated" and row.estimate == pytest.approx(0.19)
    assert f"the {N_REMOVED} longest" in row.statement


def test_the_control_has_rows_of_its_own(claims):
    row = _claim(claims, "removal-cls-control")
    assert row.verdict == "inconclusive" and row.estimate == pytest.approx(0, abs=1e-12)
    assert f"the next {N_REMOVED} (control)" in row.statement


def test_words_are_compared_in_the_last_layer_with_their_true_labels(claims):
    for probe in ("frequency", "type"):
        row = _claim(claims, f"words-{probe}")
        assert row.verdict == "replicated" and row.estimate == pytest.approx(-0.2)


def test_every_arm_has_its_rows_and_the_references_have_none(claims):
    assert set(claims.arm) == {"none", "all"}
    assert claims.arm.value_counts().nunique() == 1
    assert claims.index.is_unique


def test_nothing_published_is_invented(claims):
    assert claims.published.isna().all()


def test_a_drop_is_against_the_same_cloud_with_its_mean_subtracted():
    drops = accuracy_drops(TABLE).set_index(["arm", "seed", "vectors", "treatment", "skipped"])
    drops = drops[drops.removed == N_REMOVED]["drop"]
    assert drops.loc["pretrained", 0, "cls", "global", 0] == pytest.approx(0.06)
    assert drops.loc["none", 2, "mean", "clusters", 0] == pytest.approx(0.213)
    assert drops.loc["none", 0, "cls", "global", N_REMOVED] == pytest.approx(-0.004)


def test_what_a_seeds_halves_do_to_before_and_after_alike_cancels(claims):
    for name in ("removal-cls", "words-type"):
        row = _claim(claims, name)
        assert row.high - row.low < 0.05 < max(SPLIT.values()) - min(SPLIT.values())


def test_the_order_of_the_rows_does_not_matter(claims):
    shuffled = rajaee_claims(TABLE.sample(frac=1, random_state=1), WORDS).set_index("claim")
    again = shuffled.loc[claims.index]
    assert again.estimate.to_numpy() == pytest.approx(claims.estimate.to_numpy())
    assert (again.verdict == claims.verdict).all()


def test_one_seed_decides_nothing():
    one = rajaee_claims(TABLE[TABLE.seed == 0], WORDS[WORDS.seed == 0])
    assert set(one.verdict) == {"inconclusive"}
