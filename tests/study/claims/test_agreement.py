"""Which claims the models of a study agree on."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.claims.agreement import agreement, models_in_brief, verdicts_by_model

VERDICTS = {  # adjusted
    "stl:rises-raw:big:movies:none": "agrees",
    "stl:rises-raw:small:movies:none": "inconclusive",
    "stl:metric-kept:big:movies:all": "inconclusive",
    "stl:metric-kept:small:movies:all": "inconclusive",
    "stl:raises-centred-2:big:movies:all": "replicated",  # big is the paper's model
    "stl:raises-centred-2:small:movies:all": "agrees",
    "rp:elongated-own:big:movies:none": "described",
    "rp:elongated-own:small:movies:none": "described",
    "v:avgsim-rises": "agrees",  # of the first model
    "v:avgsim-rises:small": "agrees",
    "v:avgsim-rises:decoder": "disagrees",
    "v:intrasim-above-null-0": "agrees",
    "v:intrasim-above-null-0:small": "agrees",
    "v:intrasim-above-null-12": "agrees",
    "v:intrasim-above-null-6:small": "agrees",
    "b:stitch-asymmetry": "agrees",  # of models trained here: one row
}


@pytest.fixture
def claims():
    """Without the adjustment every row but the described ones agrees."""
    table = pd.DataFrame({"claim": VERDICTS.keys(), "adjusted": VERDICTS.values()})
    described = table.adjusted == "described"
    return table.assign(verdict=table.adjusted.where(described, "agrees"))


@pytest.fixture
def profile():
    return replace(load_profile("smoke"), models=("big", "small"), diagnosed=("decoder",))


def test_a_claim_has_one_verdict_per_model_and_the_last_layer_is_each_models_own(claims, profile):
    table = verdicts_by_model(claims, profile)
    assert list(table.columns) == ["big", "small", "decoder"]
    assert set(table.index) == {
        "stl:rises-raw:movies:none",
        "stl:metric-kept:movies:all",
        "stl:raises-centred-2:movies:all",
        "v:avgsim-rises",
        "v:intrasim-above-null-0",
        "v:intrasim-above-null-last",
    }
    assert list(table.loc["v:avgsim-rises"]) == ["agrees", "agrees", "disagrees"]


def test_a_line_per_model_counts_what_both_decide_and_takes_no_indecision_for_agreement(
    claims, profile
):
    assert agreement(claims, profile).splitlines() == [
        "small beside big: 4 rows decided alike, 0 decided differently, 2 left undecided by at "
        "least one of the two (adjusted verdicts)",
        "decoder beside big: 0 rows decided alike, 1 decided differently, 0 left undecided by at "
        "least one of the two (adjusted verdicts)",
    ]


def test_a_page_begins_with_what_models_decide_differently_and_says_whole_statements(
    claims, profile
):
    text = "the statement of " + claims.claim.replace(
        r"-above-null-(\d+)", r" at layer \1", regex=True
    )
    said = {"statement": text, "task": None, "arm": "none"}
    page = models_in_brief(claims.assign(**said), profile)
    assert list(page.columns) == ["claim", "big", "small", "decoder"] and not page.columns.name
    assert page.claim.iloc[0] == "the statement of v:avgsim-rises; none"
    assert list(page.iloc[0, 1:]) == ["agrees", "agrees", "disagrees"]
    assert "the statement of v:intrasim at the last layer; none" in set(page.claim)
    undecided = page.claim.iloc[-1]
    assert undecided == "the statement of stl:metric-kept:big:movies:all; none"
    assert list(page.iloc[-1, 1:]) == ["inconclusive", "inconclusive", ""]


def test_one_model_says_nothing(claims):
    alone = claims[~claims.claim.str.contains("small|decoder")]
    assert agreement(alone, load_profile("smoke")) == ""
