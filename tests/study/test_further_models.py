"""What chapters 03, 08 and 12 measure of the first model is measured of further ones, too."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.claims.agreement import agreement
from shrink_utils.study.further_models import OF_FURTHER_MODELS
from shrink_utils.study.language.experiment import measure_lifetimes


@pytest.fixture
def smoke(tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    return load_profile("smoke")


def test_every_further_model_is_measured_alone_and_kept_beside_the_first(smoke, monkeypatch):
    seen = []

    def of_first(profile):
        seen.append((profile.models, profile.partner))
        return pd.DataFrame({"value": [1.0]})

    monkeypatch.setattr(measure_lifetimes, "__wrapped__", of_first)
    three = replace(smoke, models=("tiny-random", "minilm", "mpnet"), partner="minilm")
    table = OF_FURTHER_MODELS["models_language_lifetimes"](three)
    assert list(table.model) == ["minilm", "mpnet"]
    assert seen == [(("minilm",), ""), (("mpnet",), "")]
    kept = {path.name.rpartition("-")[0] for path in (smoke.folder / "measured").iterdir()}
    assert kept == {"models_language_lifetimes"}


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
