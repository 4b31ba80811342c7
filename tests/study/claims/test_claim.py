"""Verdicts: every side of zero, and what must be refused; how the rows of the table are read."""

import math
import re
from dataclasses import replace
from typing import get_args

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shrink_utils.study.claims.claim import (
    COLUMNS,
    QUANTITIES,
    ROWS,
    Claim,
    Kind,
    adjust,
    best_of,
    evaluate,
    judge,
    paired,
    verdict,
    whole_table,
)
from shrink_utils.study.claims.verdicts import all_claims
from shrink_utils.study.profiles import load_profile, profile_names
from shrink_utils.study.statistics import Interval, paired_interval

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
        (-0.9, -0.5, "agrees", "disagrees", "disagrees"),
        (-0.09, -0.05, "agrees", "disagrees", "agrees"),  # within the margin of .1
        (-0.5, -0.05, "agrees", "disagrees", "inconclusive"),
        (-0.5, 0.5, "inconclusive", "inconclusive", "inconclusive"),
        (-0.05, 0.5, "inconclusive", "inconclusive", "agrees"),
        (0.1, 0.5, "disagrees", "agrees", "agrees"),
        (-0.5, 0.0, "inconclusive", "inconclusive", "inconclusive"),  # touching is not beyond
        (0.0, 0.5, "inconclusive", "inconclusive", "agrees"),
        (0.0, 0.0, "inconclusive", "inconclusive", "agrees"),
        (-0.5, -0.1, "agrees", "disagrees", "inconclusive"),
        (-0.1, 0.5, "inconclusive", "inconclusive", "inconclusive"),
        (-math.inf, math.inf, "inconclusive", "inconclusive", "inconclusive"),
    ],
)
def test_verdict_is_read_off_the_interval(low, high, less, greater, no_worse):
    interval = Interval((low + high) / 2 if math.isfinite(low) else 0.0, low, high, 3)
    assert verdict(interval, "less") == less
    assert verdict(interval, "greater") == greater
    assert verdict(interval, "no_worse", 0.1) == no_worse
    assert verdict(interval, "described") == "described"


def test_only_the_papers_own_test_replicates():
    below, above = Interval(-0.5, -0.6, -0.4, 3), Interval(0.5, 0.4, 0.6, 3)
    for kind in get_args(Kind):
        own = kind == "paper's test"
        assert verdict(below, "less", kind=kind) == ("replicated" if own else "agrees")
        assert verdict(above, "less", kind=kind) == ("not replicated" if own else "disagrees")
        assert verdict(Interval(0, -1, 1, 3), "less", kind=kind) == "inconclusive"


def test_a_loss_beyond_two_hundredths_does_not_count_as_none():
    """Accuracy of −.026 [−.038, −.013] is significantly worse, and was within a margin of .05."""
    assert verdict(Interval(-0.026, -0.038, -0.013, 4), "no_worse", ROWS["margin"]) != "agrees"


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
    with pytest.raises(ValueError, match=r"kind must be one of .*'guess'"):
        replace(CLAIM, kind="guess")


def test_evaluate_gives_one_row_per_claim_in_order():
    changes = {"direction": "no_worse", "margin": 0.02, "unit": "words", "floor": 0.3}
    second = replace(CLAIM, id="metric", task="", arm="", published=None, **changes)
    data = {"first-score": [-0.3, -0.2, -0.25], "metric": [0.01]}
    table = evaluate([CLAIM, second], lambda claim: data[claim.id])
    first = paired_interval(data["first-score"])
    assert table.columns.tolist() == COLUMNS.split()
    expected = {"claim": "first-score", "source": "STL §4, Table 3", "kind": "scaled test"}
    expected |= {"statement": CLAIM.statement, "task": "mrpc", "arm": "prominent"}
    expected |= {"published": -0.25, **first._asdict(), "unit": "seeds", "verdict": "agrees"}
    assert table.loc[0, list(expected)].to_dict() == expected
    assert table.p[0] == stats.ttest_1samp(data["first-score"], 0).pvalue
    expected = {"claim": "metric", "task": "", "low": -math.inf, "n": 1, "unit": "words"}
    expected |= {"floor": 0.3, "verdict": "inconclusive", "adjusted": "", "departures": ""}
    assert table.loc[1, list(expected)].to_dict() == expected
    assert table[["floor", "published", "p"]].isna().to_numpy().tolist() == [
        *[[True, False, False], [False, True, True]]
    ]


def test_p_is_of_the_bound_that_decides():
    data = [-0.01, 0.0, 0.01, 0.005]
    kept = replace(CLAIM, direction="no_worse", margin=0.02)
    found = evaluate([kept, replace(CLAIM, direction="described")], lambda claim: data)
    assert found.p[0] == pytest.approx(stats.ttest_1samp(data, -0.02).pvalue)
    assert math.isnan(found.p[1]) and found.verdict[1] == "described"


def test_several_tries_widen_the_interval_and_raise_p():
    data = [-0.3, -0.2, -0.25, -0.1]
    once, four = (evaluate([replace(CLAIM, tries=n)], lambda claim: data) for n in (1, 4))
    assert four.p[0] == pytest.approx(4 * once.p[0])
    assert (four.low[0], four.high[0]) == paired_interval(data, confidence=1 - 0.05 / 4)[1:3]
    assert (four.p[0] < 0.05) == (four.verdict[0] == "agrees")


def test_adjusted_verdicts_hold_the_share_of_false_ones():
    """Of p = .01, .02, .2 the first two stay (.01 · 3/1, .02 · 3/2); beside ten of .9 none does."""
    made = pd.DataFrame({"p": [0.02, 0.01, 0.2, math.nan]})
    made["verdict"] = ["agrees", "replicated", "inconclusive", "described"]
    assert adjust(made).adjusted.tolist() == made.verdict.tolist()
    long = pd.concat([made, pd.DataFrame({"p": [0.9] * 10})], ignore_index=True)
    long["verdict"] = [*made.verdict, *["inconclusive"] * 10]
    assert adjust(long).adjusted[:4].tolist() == ["inconclusive"] * 3 + ["described"]
    assert adjust(made.iloc[3:]).adjusted.tolist() == ["described"]


def test_equal_differences_decide_nothing_in_a_long_table():
    table = adjust(evaluate([CLAIM], lambda claim: [-0.2, -0.2]))
    assert (table.verdict[0], table.adjusted[0]) == ("agrees", "inconclusive")


def test_a_chapter_without_rows_leaves_numbers_numbers():
    made = evaluate([CLAIM], lambda claim: [-0.1, -0.2, -0.3])
    table = whole_table([evaluate([], {}.__getitem__), made])
    assert table.estimate.dtype == table.p.dtype == float and len(table) == 1


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


LAYERS = pd.DataFrame(
    [
        {"arm": arm, "layer": layer, "seed": seed, "score": change * (arm == "all") + luck}
        for arm in ("all", "none")
        for layer, change in {1: -0.1, 2: -0.5, 3: 0.9}.items()
        for seed, luck in enumerate((0.01 * (arm == "all"), 0.0, 0.0))
    ]
)


@pytest.mark.parametrize(("direction", "expected"), [("less", -0.5), ("greater", 0.9)])
def test_the_clearest_of_several_counts_as_one_of_them(direction, expected):
    cell = {"of": "arm == 'all' and layer == @cell", "minus": "arm == 'none' and layer == @cell"}
    query = QUERY | cell | {"column": "score", "among": "layer", "cells": "layer > 0"}
    found = best_of(LAYERS, query | {"direction": direction})
    assert found.tries == 3 and found.differences.mean() == pytest.approx(expected, abs=0.01)


def test_rows_are_repeated_in_the_order_of_the_table(monkeypatch):
    """What stands in one claim is repeated together, every other claim by itself."""
    row = {"source": "S", "statement": "{what} by {margin}", "direction": "no_worse"}
    rows = [row | {"name": "a-{what}"}, row | {"name": "b", "only": "arm != 'none'"}]
    chapter = {"id": "x:{name}:{arm}", "difference": QUERY | {"of": "arm == @arm"}}
    chapter["kind"] = {"arm == 'none'": "paper's test", "arm != 'none'": "analogue"}
    made = {
        "margin": 0.5,
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
    assert together.kind[:3].tolist() == ["analogue", "analogue", "paper's test"]
    apart = judge("apart", {"runs": RUNS}).claim
    assert apart.tolist() == [
        *["x:a-score:all", "x:a-score:none", "x:a-other:all", "x:a-other:none"]
    ]


def test_a_value_of_a_table_is_never_read_as_a_query(monkeypatch):
    """Tables are also judged that somebody else sends."""
    node = {"id": "x", "name": "x", "source": "", "statement": "{arm}", "direction": "less"}
    node["kind"] = "analogue"
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


CHAPTERS = sorted(set(ROWS) - {"margin", "over"})
NEEDED = {"id", "name", "source", "kind", "statement", "direction", "unit"}
KEYS = NEEDED | {"difference", "published", "over", "for", "only", "departures", "correlation"}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_no_two_rows_rest_on_one_set_of_differences(chapter):
    tested = [
        (row["id"], str(row["difference"]), row.get("over")) for row in _claims(ROWS[chapter])
    ]
    twice = [row for row in tested if tested.count(row) > 1]
    assert not twice


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_row_of_the_table_is_well_formed(chapter):
    assert all_claims  # which knows of every quantity
    rows = list(_claims(ROWS[chapter]))
    assert len({row["name"] for row in rows}) == len(rows)
    for row in rows:
        assert not set(row) - KEYS, row["name"]
        assert set(row) >= NEEDED, row["name"]
        kinds = row["kind"].values() if isinstance(row["kind"], dict) else [row["kind"]]
        assert set(kinds) <= set(get_args(Kind)), row["name"]
        assert ("{margin}" in row["statement"]) == (row["direction"] == "no_worse"), row["name"]
        assert set(row.get("over", [])) <= set(ROWS["over"])
        assert row["difference"].get("quantity", "paired") in QUANTITIES, row["name"]
        queries = [row["difference"].get(key, "") for key in ("rows", "where", "of", "minus")]
        assert "{" not in "".join(queries), row["name"]
        if row["difference"].get("quantity", "best_of") == "best_of":
            assert {"table", "column", "index", "of"} <= set(row["difference"]), row["name"]
        if "beyond" in row["difference"]:  # a threshold stands in the statement
            assert re.search(r"0\.05|0\.9|half|1 %", row["statement"]), row["name"]


def _departures(*chapters, of):
    """What stands beside the rows whose source names a paper, by its short name."""
    rows = [row for chapter in chapters for row in _claims(ROWS[chapter])]
    return {r["name"]: (r, r.get("departures", "")) for r in rows if re.search(of, r["source"])}


def test_rows_of_loss_change_allocation_say_how_few_updates_the_longest_profile_makes():
    paper, all_sizes = load_profile("paper"), [load_profile(n).dynamics for n in profile_names()]
    steps = max(max(sizes.steps, sizes.stability_steps) for sizes in all_sizes)
    assert steps < paper.pretraining.steps
    updates = f"at most {steps:,} of V's {paper.pretraining.steps:,} updates"
    found = _departures("dynamics", of=r"\bV\b")
    assert len(found) > 5 and all(updates in text for _, text in found.values())


def test_rows_of_browns_cka_say_that_no_profile_draws_as_many_tokens():
    found = _departures("brown", "stitching", "generalization", of=r"\bB\b")
    by_cka = {
        name: text
        for name, (row, text) in found.items()
        if "cka" in (str(row["difference"]) + row["statement"]).lower()
    }
    assert {"part-late", "stitch-activations", "family-alike", "distance-{data}"} <= set(by_cka)
    assert all(
        "one sample: B's is of tokens, in 1,000 batches of 1,024" in t for t in by_cka.values()
    )
    families = [load_profile(name).family for name in profile_names()]
    assert all(sizes.sentences < 1_000 * 1_024 for sizes in families)


def test_rows_of_shrink_the_longest_say_that_the_rate_stays_constant_in_every_profile():
    assert {load_profile(name).schedule for name in profile_names()} == {"constant"}
    found = _departures("stl", "clouds", of="STL|{table3}")
    assert {"metric-kept", "shorter-tree"} <= set(found)
    for _, text in found.values():
        assert "constant rate after the warm-up" in text and "cosine" in text
