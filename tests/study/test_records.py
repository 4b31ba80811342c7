"""Records: tables of finished runs that are committed, added to as runs come."""

from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.study.claims import reference
from shrink_utils.study.claims.reference import _record_finished
from shrink_utils.study.claims.verdicts import _finetuning_claims
from shrink_utils.study.run_tables import STAMPED
from shrink_utils.study.runs import _tables_of
from shrink_utils.study.tables import _missing_runs, _read_tables


@pytest.fixture
def finished(finished):
    """Without a sweep, of which nothing was run."""
    return replace(finished, sweep=())


@pytest.fixture
def records(monkeypatch, tmp_path):
    monkeypatch.setattr("shrink_utils.study.tables.data_dir", lambda: tmp_path)
    monkeypatch.setattr(reference, "data_dir", lambda: tmp_path)
    return tmp_path / "reference" / "tiny"


def test_finished_runs_are_recorded_once(finished, tiny_runs, records):
    n = len(finished.all_runs())
    assert len(_missing_runs(finished)) == _record_finished(finished) == n
    assert _record_finished(finished) == 0 and _missing_runs(finished) == []
    assert _read_tables(records)["runs"].commit.notna().all()


def test_a_study_and_its_records_are_the_same_tables_and_make_the_same_claims(
    finished, tiny_runs, records
):
    _record_finished(finished)
    found, expected = _read_tables(records), _tables_of(tiny_runs)
    for name in ("runs", "evaluations", "correct", "clouds"):
        keys = list({"arm", "seed", "epoch", "row"} & set(expected[name]))
        both = (table[name].sort_values(keys, ignore_index=True) for table in (found, expected))
        # Of one of a session's runs a test may have made another copy: at another time.
        pd.testing.assert_frame_equal(*(t.drop(columns=[*STAMPED], errors="ignore") for t in both))
    of_records, of_runs = (_finetuning_claims(finished, tables) for tables in (found, expected))
    assert sum(map(len, of_runs)) > 10
    for claims, ours in zip(of_records, of_runs, strict=True):
        pd.testing.assert_frame_equal(claims, ours)


def test_runs_of_another_precision_are_not_paired_with_those_on_record(
    finished, records, monkeypatch
):
    _record_finished(finished)
    runs = pd.read_parquet(records / "runs.parquet").assign(precision="other")
    runs[runs.seed == 0].to_parquet(records / "runs.parquet")
    with pytest.raises(ValueError, match=r"are in the precisions .* a record has one"):
        _record_finished(finished)
    assert len(pd.read_parquet(records / "runs.parquet")) == (runs.seed == 0).sum()
