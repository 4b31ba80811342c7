"""An analysis is older than its runs, and its text is that of then."""

import subprocess

import pandas as pd
import pytest

from shrink_utils.paths import home
from shrink_utils.study.claims.hypotheses import REGISTERED
from shrink_utils.study.verification import registration
from shrink_utils.study.verification.registration import record_faults, registration_faults

HISTORY = ["git", "-C", str(home()), "cat-file", "-e", REGISTERED]
needs_history = pytest.mark.skipif(
    subprocess.run(HISTORY, capture_output=True).returncode != 0, reason="a shallow clone"
)


@needs_history
def test_the_analysis_is_older_than_runs_of_after_its_commit():
    assert list(registration_faults(["2026-12-31T00:00:00+00:00"])) == []
    (fault,) = registration_faults(["2026-12-31T00:00:00+00:00", "2026-11-01T00:00:00+00:00"])
    assert "docs/preregistration.md is of 2026-11-23" in fault and "2026-11-01" in fault


@needs_history
def test_the_analysis_is_older_than_the_runs_on_record(monkeypatch, tmp_path):
    assert list(record_faults("cohort")) == []
    records = tmp_path / "reference" / "cohort" / "runs.parquet"
    records.parent.mkdir(parents=True)
    pd.DataFrame({"time": ["2026-11-01T00:00:00+00:00"]}).to_parquet(records)
    monkeypatch.setattr(registration, "data_dir", lambda: tmp_path)
    (fault,) = record_faults("cohort")
    assert "2026-11-01" in fault


@needs_history
def test_another_text_than_the_registered_one_is_noticed(monkeypatch, tmp_path):
    run = ["2026-12-31T00:00:00+00:00"]
    page = tmp_path / "docs" / "preregistration.md"
    page.parent.mkdir()
    text = (home() / "docs" / "preregistration.md").read_text(encoding="utf-8")
    subprocess.run(["git", "clone", "-q", "--bare", home(), tmp_path / ".git"], check=True)
    monkeypatch.setattr("shrink_utils.study.verification.registration.home", lambda: tmp_path)
    page.write_text(text + "\nA deviation.\n", encoding="utf-8")
    assert list(registration_faults(run)) == []
    page.write_text(text.replace("twelve", "eleven"), encoding="utf-8")
    (fault,) = registration_faults(run)
    assert "is not the text of commit" in fault


def test_a_checkout_without_history_cannot_show_it(monkeypatch, tmp_path):
    monkeypatch.setattr("shrink_utils.study.verification.registration.home", lambda: tmp_path)
    (fault,) = registration_faults(["2026-12-31T00:00:00+00:00"])
    assert "is not in this checkout's history" in fault
