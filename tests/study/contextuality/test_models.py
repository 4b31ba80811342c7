"""Further models have a table and claims of their own."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.claims.vazquez import models_claims, vazquez_claims
from shrink_utils.study.contextuality.corpus import measure_corpus
from shrink_utils.study.contextuality.experiment import measure_contextuality
from shrink_utils.study.contextuality.models import measure_models


@pytest.fixture
def smoke(tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    return load_profile("smoke")


def test_the_same_model_again_has_the_same_claims_under_its_name(smoke):
    profile = replace(smoke, diagnosed=("tiny-random",))
    table = measure_models(profile)
    first = vazquez_claims(measure_contextuality(smoke), measure_corpus(smoke))
    again = models_claims(table)
    assert list(again.claim) == [f"{claim}:tiny-random" for claim in first.claim]
    assert again.statement.str.endswith(" (tiny-random)").all()
    same = ["estimate", "low", "high", "n", "p", "verdict", "published"]
    pd.testing.assert_frame_equal(first[same], again[same])
