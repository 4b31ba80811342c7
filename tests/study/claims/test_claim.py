"""Verdicts: every side of zero, and what must be refused."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.study.claims.claim import Claim, evaluate, verdict
from shrink_utils.study.intervals import Interval, paired_interval

CLAIM = Claim(
    id="first-score",
    source="STL §4, Table 3",
    statement="Regularization lowers the first anisotropy score",
    task="mrpc",
    arm="prominent",
    direction="less",
    published=-0.25,
)
numbers = st.floats(-1e6, 1e6, allow_subnormal=False)


@pytest.mark.parametrize(
    ("low", "high", "less", "greater", "no_worse"),
    [
        (-0.9, -0.5, "replicated", "not replicated", "not replicated"),
        (-0.09, -0.05, "replicated", "not replicated", "replicated"),  # within the margin of .1
        (-0.5, -0.05, "replicated", "not replicated", "inconclusive"),
        (-0.5, 0.5, "inconclusive", "inconclusive", "inconclusive"),
        (-0.05, 0.5, "inconclusive", "inconclusive", "replicated"),
        (0.1, 0.5, "not replicated", "replicated", "replicated"),
        (-0.5, 0.0, "inconclusive", "inconclusive", "inconclusive"),  # touching is not beyond
        (0.0, 0.5, "inconclusive", "inconclusive", "replicated"),
        (0.0, 0.0, "inconclusive", "inconclusive", "replicated"),
        (-0.5, -0.1, "replicated", "not replicated", "inconclusive"),
        (-0.1, 0.5, "inconclusive", "inconclusive", "inconclusive"),
        (-math.inf, math.inf, "inconclusive", "inconclusive", "inconclusive"),
    ],
)
def test_verdict_is_read_off_the_interval(low, high, less, greater, no_worse):
    interval = Interval((low + high) / 2 if math.isfinite(low) else 0.0, low, high, 3)
    assert verdict(interval, "less") == less
    assert verdict(interval, "greater") == greater
    assert verdict(interval, "no_worse", 0.1) == no_worse


@given(st.lists(numbers, min_size=1, max_size=6))
def test_less_and_greater_mirror_each_other(values):
    interval = paired_interval(values)
    mirrored = paired_interval([-v for v in values])
    assert verdict(interval, "less") == verdict(mirrored, "greater")


@given(numbers, st.sampled_from(["less", "greater", "no_worse"]))
def test_one_seed_never_decides(value, direction):
    assert verdict(paired_interval([value]), direction) == "inconclusive"


def test_a_misspelt_direction_is_refused():
    with pytest.raises(ValueError, match=r"direction must be one of .* got 'lower'"):
        verdict(Interval(0, -1, 1, 3), "lower")
    with pytest.raises(ValueError, match=r"direction must be one of .* got 'lower'"):
        replace(CLAIM, direction="lower")


@pytest.mark.parametrize("margin", [-0.1, math.nan, math.inf])
def test_an_impossible_margin_is_refused(margin):
    with pytest.raises(ValueError, match="margin must be a finite number, not negative"):
        verdict(Interval(0, -1, 1, 3), "no_worse", margin)


def test_a_margin_belongs_to_no_worse_only():
    with pytest.raises(ValueError, match=r'margin 0\.1 has no meaning for direction "less"'):
        replace(CLAIM, margin=0.1)


def test_evaluate_gives_a_row_a_claim_in_order():
    second = Claim(
        id="metric", source="STL", statement="Slight growth", direction="no_worse", margin=0.02
    )
    data = {"first-score": [-0.3, -0.2, -0.25], "metric": [0.01]}
    table = evaluate([CLAIM, second], lambda claim: data[claim.id])
    assert list(table.columns) == [
        *["claim", "source", "statement", "task", "arm", "published"],
        *["estimate", "low", "high", "n", "unit", "floor", "verdict"],
    ]
    assert table["claim"].tolist() == ["first-score", "metric"]
    assert table["verdict"].tolist() == ["replicated", "inconclusive"]
    assert table["n"].tolist() == [3, 1]
    assert table.loc[0, ["source", "task", "arm", "published"]].tolist() == [
        *["STL §4, Table 3", "mrpc", "prominent", -0.25]
    ]
    assert math.isnan(table.loc[1, "published"])
    assert (
        tuple(table.loc[0, ["estimate", "low", "high"]]) == paired_interval([-0.3, -0.2, -0.25])[:3]
    )


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match=r"unit must be one of .*'layers'"):
        replace(CLAIM, unit="layers")


def test_evaluate_says_what_there_is_one_difference_of():
    table = evaluate([CLAIM, replace(CLAIM, id="w", unit="words")], lambda claim: [1.0, 2.0])
    assert table["unit"].tolist() == ["seeds", "words"]


def test_evaluate_keeps_the_noise_floor_beside_the_estimate():
    table = evaluate([replace(CLAIM, floor=0.3), replace(CLAIM, id="b")], lambda claim: [1.0, 2.0])
    assert table.floor[0] == 0.3 and math.isnan(table.floor[1])


def test_evaluate_of_no_claims_is_an_empty_table():
    table = evaluate([], lambda claim: [])
    assert table.empty
    assert "verdict" in table.columns


def test_evaluate_names_the_claim_whose_differences_are_wrong():
    with pytest.raises(ValueError, match=r"claim 'first-score': differences has NaN"):
        evaluate([CLAIM], lambda claim: [math.nan, 1.0])
