"""The committed tables of claims and hypotheses are those of the committed records."""

import runpy
from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.__main__ import main
from shrink_utils.paths import data_dir
from shrink_utils.study import load_profile
from shrink_utils.study.claims.claim import whole_table
from shrink_utils.study.claims.clouds import measure_clouds
from shrink_utils.study.claims.stl import at_least_loss
from shrink_utils.study.claims.verdicts import finetuning_claims
from shrink_utils.study.full_length import FullLength
from shrink_utils.study.records import record_finished, recorded
from shrink_utils.study.tables import correct_rows, evaluations, graded, summarize

REFERENCE = data_dir() / "reference"
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


def test_the_three_questions_of_other_tasks_were_fixed_before_and_all_else_is_exploratory():
    claims = pd.read_csv(REFERENCE / "glue" / "claims.csv")
    fixed = claims.claim[~claims.kind.str.endswith("exploratory")]
    names = ("lowers-centred-of-none", "metric-kept", "lowers-centred-of-all")
    expected = {f"stl:{n}:minilm:{task}:prominent" for n in names for task in ("mrpc", "cola")}
    assert set(fixed) == expected


def test_claims_from_records_are_those_from_run_folders(finished, tiny_runs, monkeypatch, tmp_path):
    monkeypatch.setattr("shrink_utils.study.records.data_dir", lambda: tmp_path)
    profile = replace(finished, sweep=())
    record_finished(profile)
    runs = graded(summarize(tiny_runs), correct_rows(tiny_runs))
    runs = at_least_loss(runs, evaluations(tiny_runs))
    found = finetuning_claims(runs, runs, measure_clouds(tiny_runs), weight=profile.weight)
    expected = whole_table(found)
    claims = FullLength(profile, recorded(profile)).claims
    claims = claims.assign(kind=claims.kind.str.removesuffix(", exploratory"))
    assert len(claims) > 10
    pd.testing.assert_frame_equal(claims, expected)


@pytest.mark.parametrize("name", ["cohort", "strength"])
def test_the_command_decides_the_hypotheses_and_keeps_them(monkeypatch, tmp_path, capsys, name):
    records, committed = tmp_path / "reference" / name, REFERENCE / name
    records.mkdir(parents=True)
    for path in committed.glob("*.parquet"):
        (records / path.name).symlink_to(path)
    (tmp_path / "published").symlink_to(data_dir() / "published")
    monkeypatch.setenv("SHRINK_DATA_DIR", str(tmp_path))
    main(["--profile", name, "hypotheses"])
    assert "supported" in capsys.readouterr().out
    for path in records.glob("*.csv"):
        assert path.read_text("utf-8") == (committed / path.name).read_text("utf-8")
    assert len([*records.glob("*.csv")]) == (2 if name == "strength" else 1)
