"""Records: tables of finished runs that are committed, of all runs of a profile."""

from dataclasses import replace
from operator import attrgetter

import pandas as pd
import pytest

from shrink_utils.sources import data_dir
from shrink_utils.study import load_profile
from shrink_utils.study.claims.reference import _record_command
from shrink_utils.study.claims.verdicts import _finetuning_claims
from shrink_utils.study.run_tables import KEYS, STAMPED
from shrink_utils.study.runs import _tables_of
from shrink_utils.study.tables import _read_tables


@pytest.fixture
def finished(finished):
    """Without a sweep, of which nothing was run."""
    return replace(finished, sweep=())


@pytest.fixture
def records(monkeypatch, tmp_path):
    monkeypatch.setattr("shrink_utils.study.tables.data_dir", lambda: tmp_path)
    return tmp_path / "reference" / "tiny"


@pytest.mark.parametrize("name", ["cohort", "glue", "models", "strength"])
def test_every_run_of_a_profile_is_on_record_once_and_all_in_one_precision(name):
    runs = pd.read_parquet(data_dir() / "reference" / name / "runs.parquet")
    wanted = {attrgetter(*KEYS)(config) for config in load_profile(name).all_runs()}
    assert {*runs[KEYS].itertuples(index=False, name=None)} == wanted
    assert len(runs) == len(wanted) and runs.precision.nunique() == 1  # differences are paired


def test_a_record_is_never_made_over_and_never_of_a_part(
    finished, tiny_runs, records, tmp_path, monkeypatch, capsys
):
    assert _record_command(finished, run=False) == 0
    before = {path: path.read_bytes() for path in records.iterdir()}
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "cleaned"))
    assert _record_command(finished, run=True) == 0  # and nothing is trained
    assert "4 runs of profile tiny are on record" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in records.iterdir()} == before
    records.rename(tmp_path / "away")
    assert _record_command(finished, run=False) == 1
    assert "4 of 4 runs of profile tiny are missing" in capsys.readouterr().out
    assert not records.exists()


def test_a_study_and_its_records_are_the_same_tables_and_make_the_same_claims(
    finished, tiny_runs, records
):
    _record_command(finished, run=False)
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
