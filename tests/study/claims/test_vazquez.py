"""V's claims on made-up layers in which the truth is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study.claims.vazquez import vazquez_claims

LEVELS = {  # layer 0, 1, 2, 3
    "avg_sim": (0.1, 0.25, 0.4, 0.3),
    "intra_sim": (0.5, 0.55, 0.6, 0.4),
    "mev": (0.9, 0.8, 0.6, 0.3),
    "mev_released": (np.nan, 0.01, 0.02, 0.3),
}
NULLS = {"intra_sim": (0.5, 0.5, 0.5, 0.5), "mev": (0.27, 0.27, 0.27, 0.27)}
BASELINES = {"intra_sim": LEVELS["avg_sim"], "mev_released": (0.02,) * 4}


def _contextuality(n=40):
    rng, rows = np.random.default_rng(0), []
    for quantity, levels in LEVELS.items():
        for item in range(n):
            noise = 0.01 * rng.standard_normal()  # of the item: it leaves paired differences alone
            for layer, level in enumerate(levels):
                if not np.isnan(level):
                    rows.append(
                        {
                            "quantity": quantity,
                            "layer": layer,
                            "item": str(item),
                            "value": level + noise + 0.001 * rng.standard_normal(),
                            "null": NULLS.get(quantity, (np.nan,) * 4)[layer] + noise,
                            "baseline": BASELINES.get(quantity, (np.nan,) * 4)[layer],
                        }
                    )
    return pd.DataFrame(rows)


def _corpus(n=50, fall=0.1):
    rng = np.random.default_rng(1)
    values = {
        ("self_sim", layer, f"w{item}"): 0.9 - fall * layer + 0.01 * rng.standard_normal()
        for layer in range(4)
        for item in range(n)
    }
    values |= {("avg_sim", layer, ""): LEVELS["avg_sim"][layer] for layer in range(4)}
    values |= {("cka", layer, "0"): 1.0 for layer in range(4)}
    return pd.DataFrame([(*key, v) for key, v in values.items()], columns=KEYS)


KEYS = ["quantity", "layer", "item", "value"]


@pytest.fixture
def table():
    return vazquez_claims(_contextuality(), _corpus()).set_index("claim")


def test_ids_are_unique_and_no_task_or_arm_is_named(table):
    assert table.index.is_unique and table.index.str.startswith("v:").all()
    assert set(table.task) == set(table.arm) == {""}


def test_the_rise_is_paired_by_sentence_and_tested_with_and_without_the_last_layer(table):
    for name, expected in (("avgsim-rises-3", 0.2), ("avgsim-rises-2", 0.3)):
        row = table.loc[f"v:{name}"]
        assert row.estimate == pytest.approx(expected, abs=1e-3)
        assert row.verdict == "replicated"
        assert (row.n, row.unit) == (40, "sentences")
        assert row.high - row.low < 0.005  # the sentences' own spread, 0.01, is paired away


def test_the_published_rise_is_berts_own(table):
    assert table.loc["v:avgsim-rises-3"].published == pytest.approx(0.477 - 0.105)
    assert table.loc["v:avgsim-rises-2"].published == pytest.approx(0.675 - 0.105)
    assert table.loc["v:avgsim-gradual"].published == pytest.approx(0.114 - 0.570 / 2)


def test_two_equal_steps_are_the_bound_of_gradual_and_a_jump_is_beyond(table):
    row = table.loc["v:avgsim-gradual"]
    assert row.estimate == pytest.approx(0.15 - 0.3 / 2, abs=2e-3)
    jump = _contextuality()
    at_one = (jump.quantity == "avg_sim") & (jump.layer == 1)
    jump.loc[at_one, "value"] += 0.1
    row = vazquez_claims(jump, _corpus()).set_index("claim").loc["v:avgsim-gradual"]
    assert row.estimate == pytest.approx(0.25 - 0.15, abs=2e-3)
    assert row.verdict == "not replicated"


def test_the_fall_of_self_sim_is_over_words_and_corrected_for_avg_sim(table):
    row = table.loc["v:selfsim-falls"]
    assert row.estimate == pytest.approx(-0.3 - 0.2, abs=5e-3)
    assert (row.n, row.unit, row.verdict) == (50, "words", "replicated")
    assert row.published == pytest.approx(0.278 - 0.849)


def test_a_self_sim_that_rises_is_not_replicated():
    table = vazquez_claims(_contextuality(), _corpus(fall=-0.2)).set_index("claim")
    assert table.loc["v:selfsim-falls"].verdict == "not replicated"


def test_intra_sim_is_tested_against_both_references(table):
    above = table[table.index.str.startswith("v:intrasim-above")].estimate
    expected = {"avgsim-0": 0.4, "avgsim-3": 0.1, "null-0": 0.0, "null-3": -0.1}
    for name, value in expected.items():
        assert above[f"v:intrasim-above-{name}"] == pytest.approx(value, abs=5e-3)
    assert table.loc["v:intrasim-above-avgsim-3"].verdict == "replicated"
    assert table.loc["v:intrasim-above-null-3"].verdict == "not replicated"
    assert table.loc["v:intrasim-above-avgsim-0"].published == pytest.approx(0.435 - 0.105)
    assert pd.isna(table.loc["v:intrasim-above-null-0"].published)


def test_the_fall_of_intra_sim_is_that_of_the_difference(table):
    assert table.loc["v:intrasim-falls-avgsim"].estimate == pytest.approx(-0.3, abs=5e-3)
    assert table.loc["v:intrasim-falls-null"].estimate == pytest.approx(-0.1, abs=5e-3)
    published = (0.776 - 0.477) - (0.435 - 0.105)
    assert table.loc["v:intrasim-falls-avgsim"].published == pytest.approx(published)


def test_a_static_vectors_share_is_measured_from_five_percent(table):
    expected = {"mev-small-1": 0.48, "mev-small-3": -0.02}
    expected |= {"mev-released-small-1": -0.06, "mev-released-small-3": 0.23}
    for name, value in expected.items():
        row = table.loc[f"v:{name}"]
        assert row.estimate == pytest.approx(value, abs=5e-3)
        assert row.verdict == ("replicated" if value < 0 else "not replicated")
        assert row.unit == "words"
