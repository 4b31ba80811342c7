"""What chapters 03, 08 and 12 measure of the first model is measured of further ones, too."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from shrink_utils.study import load_profile
from shrink_utils.study.claims.report import agreement


def test_rows_of_fine_tuned_layers_and_of_language_are_compared_between_models():
    rows = {
        "b:neighbours:movies:none": "agrees",
        "b:neighbours:movies:none:small": "agrees",
        "rp:words-type:big:movies:none": "agrees",
        "rp:words-type:small:movies:none": "disagrees",
        "lang:rtd-smaller": "inconclusive",
        "lang:rtd-smaller:small": "agrees",
    }
    claims = pd.DataFrame({"claim": rows.keys(), "adjusted": rows.values()})
    profile = replace(load_profile("smoke"), models=("big", "small"))
    assert agreement(claims, profile).startswith(
        "small beside big: 1 rows decided alike, 1 decided differently, 1 left undecided"
    )
