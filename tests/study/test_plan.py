"""What would be run, and whether its inputs are there, before anything is trained."""

import pytest

from shrink_utils.__main__ import main
from shrink_utils.study import load_profile
from shrink_utils.study.runs import _check_inputs, _planned_runs


def test_a_plan_counts_what_is_missing_and_what_like_runs_took(finished, tiny_runs):
    entire = _planned_runs(finished.runs(), finished)
    assert entire[["runs", "missing"]].to_numpy().tolist() == [[4, 0]]
    expected = sum(run.provenance["seconds"] for run in tiny_runs) / 4
    assert entire.seconds[0] == pytest.approx(expected) and entire.memory_gb[0] > 0.1
    quick = load_profile("quick")
    of_record = _planned_runs(quick.all_runs(), quick)  # nothing of it is here: from the records
    assert of_record.missing.sum() == of_record.runs.sum() == len(quick.all_runs())
    assert (of_record.seconds > 1).all() and (of_record.device != "").all()


def test_whatever_cannot_be_read_is_listed_at_once(finished):
    one = finished.runs()[0]
    object.__setattr__(strange := type(one)(**one.as_dict()), "model", "no-such-model")
    _check_inputs([one])
    with pytest.raises(FileNotFoundError, match="no-such-model"):
        _check_inputs([one, strange])


def test_a_dry_run_trains_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    main(["--profile", "smoke", "ablate", "--dry-run", "--part", "1/2"])
    printed = capsys.readouterr().out
    runs = len(load_profile("smoke").all_runs()[::2])
    assert "tiny-random" in printed and f"{runs}" in printed and not list(tmp_path.rglob("runs"))
