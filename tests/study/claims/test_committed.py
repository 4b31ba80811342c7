"""The committed tables of claims and hypotheses are those of the committed records."""

from pathlib import Path

import pandas as pd
import pytest

from shrink_utils.study import load_profile
from shrink_utils.study.claims.hypotheses import both_rules
from shrink_utils.study.full_length import FullLength
from shrink_utils.study.records import recorded

REFERENCE = Path(__file__).resolve().parents[3] / "data" / "reference"


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
    asked = _of_records("glue").claims
    asked = asked[~asked.kind.str.endswith("exploratory")]
    found = both_rules(_of_records("cohort").hypotheses, asked)
    text = found.to_csv(index=False, float_format="%.6f")
    assert text == (REFERENCE / "cohort" / "rules.csv").read_text(encoding="utf-8")


def test_the_committed_verdicts_are_those_of_the_committed_records():
    found = _of_records("cohort").answer.to_csv(index=False)
    assert found == (REFERENCE / "cohort" / "hypotheses.csv").read_text(encoding="utf-8")
