"""Records: tables of finished runs that are committed, added to as runs come."""

from dataclasses import replace

import pandas as pd
import pytest

from shrink_utils.study.records import (
    check_complete,
    missing_runs,
    record_all,
    record_finished,
    recorded,
)
from shrink_utils.study.tables import correct_rows, evaluations, summarize


@pytest.fixture
def finished(finished):
    """Without a sweep, of which nothing was run."""
    return replace(finished, sweep=())


@pytest.fixture
def records(monkeypatch, tmp_path):
    monkeypatch.setattr("shrink_utils.study.records.data_dir", lambda: tmp_path)
    return tmp_path / "reference" / "tiny"


def test_finished_runs_are_recorded_once(finished, tiny_runs, records):
    n = len(finished.all_runs())
    assert len(missing_runs(finished)) == n
    assert record_finished(finished) == n
    assert record_finished(finished) == 0 and missing_runs(finished) == []
    tables = recorded(finished)
    assert {path.stem for path in records.iterdir()} == set(tables)
    of_grid = tables["runs"].sort_values(["arm", "seed"], ignore_index=True)
    assert len(of_grid) == n and of_grid.commit.notna().all() and (of_grid.epochs == 1).all()


def test_the_recorded_tables_are_those_of_the_runs(finished, tiny_runs, records):
    record_finished(finished)
    tables = recorded(finished)
    for name, of_runs in (("evaluations", evaluations), ("correct", correct_rows)):
        table = tables[name].drop(columns="epochs")
        keys = ["arm", "weight", "seed", *({"step", "row"} & set(table))]
        expected = of_runs(tiny_runs).sort_values(keys, ignore_index=True)
        found = table.merge(expected[keys], on=keys).sort_values(keys, ignore_index=True)
        pd.testing.assert_frame_equal(found[list(expected)], expected)
    keys = ["arm", "weight", "seed"]
    found = tables["runs"].set_index(keys).centred_1
    expected = summarize(tiny_runs).set_index(keys).centred_1
    assert found[expected.index].tolist() == expected.tolist()


def test_runs_that_are_lost_after_they_were_recorded_are_not_computed_again(
    finished, records, monkeypatch, tmp_path
):
    record_finished(finished)
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "empty"))
    computed = []
    monkeypatch.setattr(
        "shrink_utils.study.records.run_configs", lambda runs, p: computed.append(runs)
    )
    assert missing_runs(finished) == [] and record_all(finished) == 0
    assert computed == []


def test_what_is_not_on_record_is_computed_a_seed_at_a_time(finished, records, monkeypatch):
    computed = []

    def compute(runs, profile):
        computed.append({run.seed for run in runs})
        record_finished(finished)

    monkeypatch.setattr("shrink_utils.study.records.record_finished", lambda profile: 0)
    monkeypatch.setattr("shrink_utils.study.records.run_configs", compute)
    record_all(finished)
    assert computed == [{0}]  # all runs are in the folder, so the first seed's recording had all


def test_no_record_says_what_writes_it(finished, records):
    with pytest.raises(FileNotFoundError, match=r"--profile tiny record"):
        recorded(finished)


def test_another_weight_is_another_run(finished, records):
    record_finished(finished)
    heavier = replace(finished, weight=2.0)
    assert all(run.weight == 2.0 for run in missing_runs(heavier))
    assert len(missing_runs(heavier)) == len(heavier.runs())


def test_nobody_looks_at_a_part_of_the_runs(finished, records):
    more = replace(finished, seeds=(0, 1, 2))
    record_finished(finished)
    check_complete(more, (0, 1))
    with pytest.raises(ValueError, match="2 runs of the seeds 0 to 2 are not on record"):
        check_complete(more, more.seeds)
