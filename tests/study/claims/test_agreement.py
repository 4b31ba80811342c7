"""Which claims the models of a study agree on."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.claims.agreement import agreement, verdicts_by_model

VERDICTS = {
    "stl:rises-raw:big:movies:none": "agrees",
    "stl:rises-raw:small:movies:none": "inconclusive",
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
    return pd.DataFrame({"claim": VERDICTS.keys(), "verdict": VERDICTS.values()})


@pytest.fixture
def profile():
    return replace(load_profile("smoke"), models=("big", "small"), diagnosed=("decoder",))


def test_a_claim_has_one_verdict_per_model_and_the_last_layer_is_each_models_own(claims, profile):
    table = verdicts_by_model(claims, profile)
    assert list(table.columns) == ["big", "small", "decoder"]
    assert set(table.index) == {
        "stl:rises-raw:movies:none",
        "v:avgsim-rises",
        "v:intrasim-above-null-0",
        "v:intrasim-above-null-last",
    }
    assert list(table.loc["v:avgsim-rises"]) == ["agrees", "agrees", "disagrees"]


def test_the_line_counts_the_claims_and_names_those_with_several_verdicts(claims, profile):
    first, *others = agreement(claims, profile).splitlines()
    assert first.startswith("Of 4 claims tested on several models, 2 have the same verdict")
    assert others == [
        "  stl:rises-raw:movies:none: big: agrees, small: inconclusive",
        "  v:avgsim-rises: big: agrees, small: agrees, decoder: disagrees",
    ]


def test_one_model_says_nothing(claims):
    alone = claims[~claims.claim.str.contains("small|decoder")]
    assert agreement(alone, load_profile("smoke")) == ""
