"""The grid: complete, resumed, tidy."""

from __future__ import annotations

import shutil

from shrink_utils.study import ablation, histories, run_grid, run_id
from shrink_utils.study.progress import progress_bar


def test_the_grid_comes_in_the_profiles_order(finished, tiny_runs):
    assert [run.config for run in tiny_runs] == finished.runs()


def test_only_missing_runs_are_computed(finished, monkeypatch):
    lost = finished.runs()[2]
    shutil.rmtree(finished.folder / "runs" / run_id(lost))
    trained = []

    def watched(config, folder, *, on_row):
        def row(values):
            trained.append(config)
            on_row(values)

        return run_or_load(config, folder, on_row=row)

    run_or_load = ablation.run_or_load
    monkeypatch.setattr(ablation, "run_or_load", watched)
    assert len(run_grid(finished)) == len(finished.runs())
    assert set(trained) == {lost}


def test_progress_counts_the_steps_that_are_left(finished, tmp_path, monkeypatch):
    """Four runs of 48 rows in batches of 16, one epoch; none when all of them exist."""
    totals = []

    def bar(*, total, unit):
        totals.append(total)
        return progress_bar(total=total, unit=unit)

    monkeypatch.setattr(ablation, "progress_bar", bar)
    run_grid(finished)
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    monkeypatch.setattr(ablation, "run_or_load", lambda config, folder, on_row: None)
    run_grid(finished)
    assert totals == [0, 4 * 3]


def test_histories_are_one_tidy_frame(tiny_runs):
    frame = histories(tiny_runs)
    assert list(frame.columns[:4]) == ["model", "task", "arm", "seed"]
    assert len(frame) == sum(len(run.history) for run in tiny_runs)
    assert not frame.duplicated(["model", "task", "arm", "seed", "step"]).any()
