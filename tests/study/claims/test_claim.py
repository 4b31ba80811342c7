"""Verdicts: every side of zero, and what must be refused; how the rows of the table are read."""

import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.study.claims.claim import (
    COLUMNS,
    QUANTITIES,
    ROWS,
    Claim,
    evaluate,
    judge,
    paired,
    verdict,
)
from shrink_utils.study.claims.verdicts import all_claims
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
    mirrored = paired_interval([-v for v in values])
    assert verdict(paired_interval(values), "less") == verdict(mirrored, "greater")


@given(numbers, st.sampled_from(["less", "greater", "no_worse"]))
def test_one_seed_never_decides(value, direction):
    assert verdict(paired_interval([value]), direction) == "inconclusive"


FINITE = "margin must be a finite number, not negative"


@pytest.mark.parametrize(
    ("direction", "margin", "message"),
    [
        ("lower", 0, r"direction must be one of .* got 'lower'"),
        ("less", 0.1, r'margin 0\.1 has no meaning for direction "less"'),
        *[("no_worse", margin, FINITE) for margin in (-0.1, math.nan, math.inf)],
    ],
)
def test_a_direction_or_margin_that_makes_no_sense_is_refused(direction, margin, message):
    with pytest.raises(ValueError, match=message):
        verdict(Interval(0, -1, 1, 3), direction, margin)
    with pytest.raises(ValueError, match=message):
        replace(CLAIM, direction=direction, margin=margin)


def test_an_unknown_unit_is_refused():
    with pytest.raises(ValueError, match=r"unit must be one of .*'layers'"):
        replace(CLAIM, unit="layers")


def test_evaluate_gives_one_row_per_claim_in_order():
    changes = {"direction": "no_worse", "margin": 0.02, "unit": "words", "floor": 0.3}
    second = replace(CLAIM, id="metric", task="", arm="", published=None, **changes)
    data = {"first-score": [-0.3, -0.2, -0.25], "metric": [0.01]}
    table = evaluate([CLAIM, second], lambda claim: data[claim.id])
    first = paired_interval(data["first-score"])
    assert table.columns.tolist() == COLUMNS.split()
    assert table.iloc[0].drop("floor").tolist() == [
        *["first-score", "STL §4, Table 3", CLAIM.statement, "mrpc", "prominent", -0.25],
        *[*first, "seeds", "replicated"],
    ]
    assert table.iloc[1].drop(["statement", "published"]).tolist() == [
        *[
            "metric",
            CLAIM.source,
            "",
            "",
            0.01,
            -math.inf,
            math.inf,
            1,
            "words",
            0.3,
            "inconclusive",
        ]
    ]
    assert math.isnan(table.floor[0]) and math.isnan(table.published[1])


def test_evaluate_of_no_claims_is_an_empty_table():
    table = evaluate([], {}.__getitem__)
    assert table.empty and "verdict" in table


def test_evaluate_names_the_claim_whose_differences_are_wrong():
    with pytest.raises(ValueError, match=r"claim 'first-score': differences has NaN"):
        evaluate([CLAIM], lambda claim: [math.nan, 1.0])


RUNS = pd.DataFrame(
    {
        "arm": ["all", "all", "none", "none"],
        "seed": [1, 0, 0, 1],
        "score": [4.0, 2.0, 0.5, 1.0],
        "other": [1.0, 1.0, 0.0, 0.0],
    }
)
QUERY = {"table": "runs", "column": "score - other", "index": "seed", "of": "arm == 'all'"}


def test_a_query_pairs_by_unit_and_takes_its_threshold_off():
    found = paired(RUNS, QUERY | {"minus": "arm == 'none'", "beyond": 0.25, "floor": "arm"})
    assert found.differences.to_dict() == {0: 1.0 - 0.5 - 0.25, 1: 3.0 - 1.0 - 0.25}
    assert found.floor == pytest.approx(math.sqrt((2.0 + 0.125) / 2))  # of 3, 1 and of .5, 1
    assert paired(RUNS, QUERY).differences.tolist() == [1.0, 3.0]


def test_a_query_with_two_rows_for_one_unit_is_refused():
    with pytest.raises(ValueError, match="runs: arm == 'all' holds more than one row per seed"):
        paired(pd.concat([RUNS, RUNS]), QUERY)


def test_rows_are_repeated_in_the_order_of_the_table(monkeypatch):
    """What stands in one claim is repeated together, every other claim by itself."""
    row = {"source": "S", "statement": "{what} by {margin}", "direction": "no_worse"}
    rows = [row | {"name": "a-{what}", "margin": "m"}, row | {"name": "b", "only": "arm != 'none'"}]
    chapter = {"id": "x:{name}:{arm}", "difference": QUERY | {"of": "arm == @arm"}}
    made = {
        "margins": {"m": 0.5},
        "over": {"what": [{"what": "score"}, {"what": "other"}]},
        "together": chapter | {"for": ["arm"], "over": ["what"], "claim": rows},
        "apart": chapter | {"claim": [rows[0] | {"over": ["what"], "for": ["arm"]}]},
    }
    for name, value in made.items():
        monkeypatch.setitem(ROWS, name, value)
    together = judge("together", {"runs": RUNS})
    assert together.claim.tolist() == [
        *["x:a-score:all", "x:b:all", "x:a-score:none", "x:a-other:all", "x:b:all"],
        "x:a-other:none",
    ]
    assert together.statement[0] == "score by 0.5" and together.arm[2] == "none"
    apart = judge("apart", {"runs": RUNS}).claim
    assert apart.tolist() == [
        *["x:a-score:all", "x:a-score:none", "x:a-other:all", "x:a-other:none"]
    ]


def test_a_value_of_a_table_is_never_read_as_a_query(monkeypatch):
    """Tables are also judged that somebody else sends."""
    node = {"id": "x", "name": "x", "source": "", "statement": "{arm}", "direction": "less"}
    difference = QUERY | {"where": "arm == @arm", "of": "seed >= 0"}
    monkeypatch.setitem(ROWS, "sent", node | {"for": ["arm"], "difference": difference})
    odd = "' or @pd.read_csv('anything') or '{arm}"
    table = judge("sent", {"runs": RUNS.replace({"arm": {"all": odd}})})
    assert table.statement.tolist() == [odd, "none"] and table.n.tolist() == [2, 2]


def _claims(node, inherited=None):
    """The rows of a chapter as they stand in the table, with what they inherit."""
    keys = (inherited or {}) | {name: value for name, value in node.items() if name != "claim"}
    difference = (inherited or {}).get("difference", {}) | node.get("difference", {})
    keys["difference"] = difference
    if "claim" not in node:
        yield keys
    for child in node.get("claim", []):
        yield from _claims(child, keys)


CHAPTERS = sorted(set(ROWS) - {"margins", "over"})
KEYS = {"id", "name", "source", "statement", "direction", "margin", "unit", "difference"}
KEYS |= {"published", "over", "for", "only"}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_row_of_the_table_is_well_formed(chapter):
    assert all_claims  # which knows of every quantity
    rows = list(_claims(ROWS[chapter]))
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        assert not set(row) - KEYS, row["name"]
        assert {"id", "name", "source", "statement", "direction", "unit"} <= set(row), row["name"]
        assert ("margin" in row) == (row["direction"] == "no_worse"), row["name"]
        assert row.get("margin", "metric") in ROWS["margins"]
        assert ("margin" in row) == ("{margin}" in row["statement"]), row["name"]
        assert set(row.get("over", [])) <= set(ROWS["over"])
        assert row["difference"].get("quantity", "paired") in QUANTITIES, row["name"]
        queries = [row["difference"].get(key, "") for key in ("rows", "where", "of", "minus")]
        assert "{" not in "".join(queries), row["name"]
        if "quantity" not in row["difference"]:
            assert {"table", "column", "index", "of"} <= set(row["difference"]), row["name"]
        if "beyond" in row["difference"]:  # a threshold stands in the statement
            assert re.search(r"0\.05|half|1 %", row["statement"]), row["name"]
