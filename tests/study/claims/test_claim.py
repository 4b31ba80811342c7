"""Verdicts: every side of zero, and what must be refused; how the rows of the table are read."""

import fnmatch
import math
import re
from pathlib import Path

import pandas as pd
import pytest
from scipy import stats

from shrink_utils.sources import data_dir
from shrink_utils.study.claims.claim import (
    MARGIN,
    _as_table,
    _combined_table,
    _families,
    _judged,
    _least_favourable,
    _per_seed,
    _sentences,
    adjust,
    claim,
    verdict,
)
from shrink_utils.study.statistics import Interval, paired_interval
from tests.study.claims.golden import GOLDEN


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


RUNS = pd.DataFrame({"seed": [2, 0, 2], "score": [4.0, 2.0, 0.5]})
TOUCHING = Interval(0, -1, 1, 3)


@pytest.mark.parametrize(
    ("named", "call"),
    [
        ("direction .* 'lower'", lambda: verdict(TOUCHING, "lower")),
        ("'lang:rtd-smaller'", lambda: claim("lang:rtd-smaller", [math.nan, 1.0])),
        ("score: more than one row per seed", lambda: _per_seed(RUNS, "score")),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(named, call):
    with pytest.raises(ValueError, match=named):
        call()


def test_p_is_of_the_bound_that_decides():
    data = [-0.01, 0.0, 0.01, 0.005]
    kept, described = (_judged(data, direction) for direction in ("no_worse", "described"))
    assert kept["p"] == pytest.approx(stats.ttest_1samp(data, -MARGIN).pvalue)
    assert math.isnan(described["p"]) and described["verdict"] == "described"


def test_several_tries_widen_the_interval_and_raise_p():
    data = [-0.3, -0.2, -0.25, -0.1]
    once, four = (_judged(data, "less", tries=n) for n in (1, 4))
    assert four["p"] == pytest.approx(4 * once["p"])
    assert (four["low"], four["high"]) == paired_interval(data, confidence=1 - 0.05 / 4)[1:3]
    assert (four["p"] < 0.05) == (four["verdict"] == "agrees")


def test_a_claim_about_all_is_judged_by_the_one_that_speaks_least_for_it():
    sure, near, wide = [0.3, 0.31], [0.021, 0.019], [0.1, -0.2]
    found = _least_favourable([sure, near, wide], "greater")
    assert found["differences"].tolist() == wide and found["tries"] == 3
    assert _least_favourable([sure, near], "less")["differences"].tolist() == sure
    # Within the margin .02, and far from its edge beside its spread: the other one is nearer.
    steady, unsteady = [-0.0101, -0.0099], [0.03, -0.04]
    assert _least_favourable([steady, unsteady], "no_worse")["differences"].tolist() == unsteady


def test_adjusted_verdicts_hold_the_share_of_false_ones():
    """Of p = .01, .02, .2 the first two stay (.01 · 3/1, .02 · 3/2); beside ten of .9 none does."""
    made = pd.DataFrame({"claim": "stl:rises-raw", "p": [0.02, 0.01, 0.2, math.nan]})
    made["verdict"] = ["agrees", "replicated", "inconclusive", "described"]
    assert adjust(made).adjusted.tolist() == made.verdict.tolist()
    long = pd.DataFrame({"claim": "stl:rises-raw", "p": [*made.p, *[0.9] * 10]})
    long["verdict"] = [*made.verdict, *["inconclusive"] * 10]
    assert adjust(long).adjusted[:4].tolist() == ["inconclusive"] * 3 + ["described"]
    assert adjust(made.iloc[3:]).adjusted.tolist() == ["described"]


def test_near_certain_rows_about_something_else_do_not_rescue_a_verdict():
    """Over the whole table p = .04 would stay: .04 · 13/12. Of two about the metric: .04 · 2."""
    made = pd.DataFrame({"p": [0.04, 0.5, math.nan, *[1e-9] * 11]})
    names = [f"stl:metric-rises:m:t:{arm}" for arm in ("all", "random", "none")]
    made["claim"] = [*names, *(f"stl:rises-raw:m:t{i}:none" for i in range(11))]
    made["verdict"] = ["agrees", "inconclusive", "inconclusive", *["agrees"] * 11]
    assert adjust(made).adjusted.tolist() == [*["inconclusive"] * 3, *["agrees"] * 11]


@pytest.mark.parametrize("rows", ["v:lca-", "b:stitch-", "b:generalization-"])
def test_a_chapter_that_adjusts_its_own_rows_gets_the_verdicts_of_the_whole_table(rows):
    """10, 09 and 09b print these: all rows that answer one sentence are in one chapter."""
    table = pd.read_csv(data_dir() / "reference" / "quick" / "claims.csv")
    here, answers = table.claim.str.startswith(rows), _families(table)
    assert here.sum() > 5 and not {*answers[here]} & {*answers[~here]}
    assert adjust(table[here]).adjusted.equals(table.adjusted[here])


def test_every_sentence_has_rows_or_a_reason_and_every_row_has_a_sentence():
    reference = Path(__file__).resolve().parents[3] / "data" / "reference"
    paths = sorted(reference.glob("*/claims.csv"))
    committed = pd.concat([pd.read_csv(path) for path in paths]).drop_duplicates("claim")
    said = _sentences()
    assert len(paths) == 4 and ((said["rows"] != "") | (said.why != "")).all()
    assert _families(committed).map(type).eq(int).all()
    patterns = [pattern for rows in said["rows"] for pattern in rows.split()]
    fixed = pd.read_csv(reference / "papers" / "hypotheses.csv").id
    named = [row.removeprefix("papers:") for row in patterns if row.startswith("papers:")]
    assert sorted(named) == sorted(fixed)  # each answers one sentence
    rest = [row for row in patterns if not row.startswith("papers:")]
    assert not [row for row in rest if not fnmatch.filter(committed.claim, row)]


def test_every_claim_of_the_list_is_made_and_no_other():
    """On planted tables or in a committed study; a row that nothing yields would claim in vain."""
    folder = data_dir() / "reference"
    made = [pd.read_csv(path).claim for path in (GOLDEN, *folder.glob("*/claims.csv"))]
    listed = pd.read_csv(data_dir() / "published" / "claims.csv").claim
    names, heads = (
        column.str.split(":").str[:2].str.join(":").unique() for column in (pd.concat(made), listed)
    )
    patterns = [re.sub(r"{.*?}", "*", head) for head in heads]
    assert len(heads) == len(listed) and len(made) == 5
    assert not [row for row in patterns if not fnmatch.filter(names, row)]
    assert not [name for name in names if not any(fnmatch.fnmatch(name, row) for row in patterns)]


@_as_table
def _rows(*differences):
    """As many rows of one claim as there are lists of differences."""
    for values in differences:
        yield claim("lang:rtd-smaller", values)


def test_equal_differences_decide_nothing_and_a_chapter_without_rows_leaves_numbers_numbers():
    table = adjust(_rows([-0.2, -0.2]))
    assert (table.verdict[0], table.adjusted[0]) == ("agrees", "inconclusive")
    table = _combined_table([_rows(), _rows([-0.3, -0.2, -0.25])])
    assert table.estimate.dtype == table.p.dtype == float and len(table) == 1
