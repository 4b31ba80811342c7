"""STL's claims on made-up summaries in which the truth is known."""

from __future__ import annotations

import pandas as pd
import pytest

from shrink_utils.study import stl_claims
from shrink_utils.study.claims.stl import MARGIN

NOISE = {0: -0.004, 1: 0.001, 2: 0.003}


def _summary(
    model="minilm", task="sentiment_movies", arms=("none", "prominent", "published", "all")
):
    level = {"none": 0.6, "prominent": 0.4, "published": 0.45, "all": 0.3}
    return pd.DataFrame(
        [
            {
                "model": model,
                "task": task,
                "arm": arm,
                "seed": seed,
                "centred_1": level[arm] + (1 + level[arm]) * noise,
                "raw_1": 0.5 + level[arm] * noise,
                "centred_before": 0.05,
                "raw_before": 0.6,
                "raw_after": 0.5 + noise,
                "centred_after": level[arm] + noise,
                "metric": "accuracy",
                "value": 0.8 + (level[arm] - 0.6) * noise,
            }
            for arm in arms
            for seed, noise in NOISE.items()
        ]
    )


@pytest.fixture
def table():
    return stl_claims(_summary()).set_index("claim")


def _row(table, name, arm, model="minilm", task="sentiment_movies"):
    return table.loc[f"stl:{name}:{model}:{task}:{arm}"]


def test_a_lowered_score_is_replicated_with_its_paired_mean(table):
    row = _row(table, "lowers-centred-of-none", "prominent")
    assert row.verdict == "replicated"
    assert row.estimate == pytest.approx(-0.2)
    assert (row.n, row.unit) == (3, "seeds")


def test_selected_bars_that_lower_it_less_than_all_are_not_replicated(table):
    assert _row(table, "lowers-centred-of-all", "prominent").verdict == "not replicated"
    assert _row(table, "lowers-centred-of-all", "prominent").estimate == pytest.approx(0.1)


def test_no_difference_is_inconclusive_for_growth_and_enough_for_no_harm(table):
    assert _row(table, "lowers-raw-of-none", "all").verdict == "inconclusive"
    assert _row(table, "metric-grows", "prominent").verdict == "inconclusive"
    assert _row(table, "metric-kept", "prominent").verdict == "replicated"


def test_a_loss_larger_than_the_margin_is_not_replicated():
    summary = _summary()
    summary.loc[summary.arm == "all", "value"] -= 2 * MARGIN
    table = stl_claims(summary).set_index("claim")
    assert _row(table, "metric-kept", "all").verdict == "not replicated"


def test_the_rise_is_that_of_the_validation_rows_without_regularizer(table):
    row = _row(table, "rises-centred", "none")
    assert row.estimate == pytest.approx(0.55) and row.verdict == "replicated"


def test_pairs_are_matched_by_seed_and_not_by_order():
    shuffled = _summary().sample(frac=1, random_state=1)
    ordered = stl_claims(_summary()).set_index("claim")
    again = stl_claims(shuffled).set_index("claim").loc[ordered.index]
    assert again.estimate.to_numpy() == pytest.approx(ordered.estimate.to_numpy())
    assert again.low.to_numpy() == pytest.approx(ordered.low.to_numpy())


def test_the_papers_number_is_its_own_cell_where_it_has_one():
    model = "google-bert/bert-base-uncased"
    table = stl_claims(_summary(model, "mrpc")).set_index("claim")
    row = _row(table, "lowers-centred-of-none", "published", model, "mrpc")
    assert row.source == "STL Table 3"
    assert row.published == pytest.approx(0.483 - 0.733)


def test_the_papers_number_is_its_mean_where_it_has_no_such_model_or_task(table):
    expected = ((0.483 + 0.611 + 0.468 + 0.512) - (0.733 + 0.832 + 0.660 + 0.700)) / 4
    row = _row(table, "lowers-centred-of-none", "prominent")
    assert row.published == pytest.approx(expected)
    assert row.source == "STL Table 3, mean of 4"


def test_arms_that_a_task_lacks_make_no_claims():
    table = stl_claims(_summary(arms=("none", "all")))
    assert set(table.arm) == {"none", "all"}
    assert not table.claim.str.contains("-of-all").any()


def test_one_seed_decides_nothing():
    table = stl_claims(_summary().query("seed == 0"))
    assert set(table.verdict) == {"inconclusive"}


def test_a_rise_is_tested_in_both_spaces(table):
    assert _row(table, "rises-raw", "none").verdict == "not replicated"  # it falls in this summary
