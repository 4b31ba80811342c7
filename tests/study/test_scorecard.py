"""The scorecard of known answers: what each measure is known to miss, and that luck passes none."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from shrink_utils.study.scorecard import (
    ISOTROPY_TESTS,
    SIMILARITY_TESTS,
    isotropy_scorecard,
    similarity_scorecard,
)

BIASED = {"is 0 for independent clouds"}
SATURATES = BIASED | {"falls with replaced columns", "falls with rows in another cluster"}
MISSED_SIMILARITY = {
    "RSA": set(),
    "CCA, mean": BIASED,
    "SVCCA": BIASED,
    "PWCCA": BIASED,
    "CKA": BIASED,
    "CKA, debiased": set(),
    "− RTD-Lite": SATURATES,
    "− RTD-Lite, matched": SATURATES | {"falls with the layers between"},
}
NO_DIMENSION = {"counts a rolled-up sheet as 2"}
MISSED_ISOTROPY = {
    "− AvgSim": NO_DIMENSION
    | {"falls as one direction is stretched", "falls as directions are lost", "ignores a shift"},
    "− first score, raw": NO_DIMENSION | {"ignores a shift", "needs few rows"},
    "− first score, centred": NO_DIMENSION | {"needs few rows"},
    "log I(W), unit norm": NO_DIMENSION | {"ignores a shift", "needs few rows"},
    "IsoScore": NO_DIMENSION | {"needs few rows"},
    "IsoScore, corrected": NO_DIMENSION,
    "effective rank": NO_DIMENSION,
    "TwoNN dimension": {"falls as one direction is stretched", "needs few rows"},
    "PH dimension": {"ignores a turn and the scale", "needs few rows"},  # a turn redraws subsamples
}


def _missed(scorecard: pd.DataFrame) -> dict[str, set[str]]:
    return {name: set(row.index[~row.astype(bool)]) for name, row in scorecard.iterrows()}


@pytest.mark.parametrize(
    ("scorecard", "missed"),
    [(similarity_scorecard, MISSED_SIMILARITY), (isotropy_scorecard, MISSED_ISOTROPY)],
)
def test_each_measure_misses_what_it_is_known_to_miss(
    scorecard: Callable[[], pd.DataFrame], missed: dict[str, set[str]]
):
    assert _missed(scorecard()) == missed


@pytest.mark.parametrize("tests", [SIMILARITY_TESTS, ISOTROPY_TESTS])
def test_neither_a_constant_nor_noise_finds_an_order(tests: dict[str, Callable]):
    noise = np.random.default_rng(0)
    for name, passes in tests.items():
        if name.startswith("falls"):
            assert not passes(lambda *clouds: 1.0), name
            assert not passes(lambda *clouds: noise.normal()), name
