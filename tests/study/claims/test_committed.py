"""The committed tables of claims and hypotheses are those of the committed records."""

import math
import runpy
from pathlib import Path

import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.full_length import FullLength
from shrink_utils.study.records import recorded

REFERENCE = Path(__file__).resolve().parents[3] / "data" / "reference"
RULES = runpy.run_path(str(REFERENCE / "cohort" / "rules.py"))


def _of_records(name):
    profile = load_profile(name)
    return FullLength(profile, recorded(profile))


@pytest.mark.parametrize("name", ["cohort", "glue"])
def test_claims_of_the_records_are_the_committed_table(name):
    found = _of_records(name).claims.to_csv(index=False, float_format="%.6f")
    assert found == (REFERENCE / name / "claims.csv").read_text(encoding="utf-8")


def test_claims_of_three_models_are_rows_of_their_committed_table():
    """That table is of the whole study: its adjusted verdicts account for more rows."""
    found = _of_records("models").claims.drop(columns=["kind", "adjusted"])
    committed = pd.read_csv(REFERENCE / "models" / "claims.csv", dtype=str, keep_default_na=False)
    of_runs = committed.claim.str.match("stl:|mga:|topology:|rp:elongated")
    text = found.to_csv(index=False, float_format="%.6f")
    assert text == committed[of_runs][list(found)].to_csv(index=False) and of_runs.sum() == 80


def test_both_families_of_planned_tests_stand_under_both_rules():
    text = RULES["rules"]().to_csv(index=False, float_format="%.6f")
    assert text == (REFERENCE / "cohort" / "rules.csv").read_text(encoding="utf-8")


def test_the_committed_verdicts_are_those_of_the_committed_records():
    found = _of_records("cohort").answer.to_csv(index=False)
    assert found == (REFERENCE / "cohort" / "hypotheses.csv").read_text(encoding="utf-8")


def test_a_family_is_judged_by_either_rule():
    names = [f"stl:{name}:m:{task}:prominent" for name in ("lowers-centred-of-none", "metric-kept")
             for task in ("mrpc", "cola")]  # fmt: skip
    asked = pd.DataFrame({"claim": names, "statement": "s", "estimate": [-0.1, 0.1, -0.01, -0.03]})
    asked["p"] = [0.001, 0.002, 0.03, 0.06]
    decided = pd.DataFrame({"id": ["H1", "H2"], "statement": "t", "estimate": -0.1})
    decided["p"] = [0.01, math.nan]
    found = RULES["both_rules"](decided, asked)
    assert found["verdict by Holm"].tolist() == [
        *("supported", "not tested", "supported", "not supported", "supported", "not supported")
    ]
    assert found["verdict by BH"].tolist() == [
        *("supported", "not tested", "supported", "contradicted", "supported", "open")
    ]
    assert found.holm[2] == pytest.approx(4 * 0.0005) and found.bh[4] == pytest.approx(0.04)
    assert set(found.planned) == {
        "one-sided, Holm over the twelve",
        "two-sided, Benjamini & Hochberg over the table of rows",
    }
