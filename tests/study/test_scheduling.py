"""The grid and the sweep: complete, resumed, tidy."""

import shutil
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from shrink_utils.study import run_grid, run_id, run_sweep, scheduling
from shrink_utils.study.profiles import SweepEntry


def _on_a_cluster(monkeypatch, compute, workers):
    cluster = nullcontext(SimpleNamespace(nthreads=lambda: workers))
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://nowhere:1")
    monkeypatch.setattr(scheduling, "cluster_client", lambda workers: cluster)
    monkeypatch.setattr(scheduling, "compute_runs", compute)


def test_only_missing_runs_are_computed_and_the_profiles_order_kept(finished, monkeypatch):
    lost = finished.runs()[2]
    shutil.rmtree(finished.folder / "runs" / run_id(lost))
    trained = []

    def watched(config, folder, *, keep_model):
        trained.append(config)
        return run_or_load(config, folder, keep_model=keep_model)

    run_or_load = scheduling.run_or_load
    monkeypatch.setattr(scheduling, "run_or_load", watched)
    assert [run.config for run in run_grid(finished)] == finished.runs()
    assert trained == [lost]


def test_a_damaged_run_counts_as_missing(copied, finished, monkeypatch):
    """It is moved aside before the work is counted and shared out."""
    config, folder = copied
    (folder / run_id(config) / "evaluations.json").unlink()
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(folder))
    (finished.folder / "runs").mkdir(parents=True)
    (folder / run_id(config)).rename(finished.folder / "runs" / run_id(config))
    sent = []

    def compute(client, configs, folder, *, keep):
        sent.extend(configs)
        assert set(keep) == set(configs)
        for name, one in configs.items():
            scheduling.run_or_load(one, folder)
            yield name

    _on_a_cluster(monkeypatch, compute, {"tcp://nowhere:2": 1})
    with pytest.warns(UserWarning, match="is damaged"):
        run_grid(finished)
    assert sent == [run_id(c) for c in finished.runs()]


def test_the_sweep_varies_the_weight_and_shares_runs_with_the_grid(finished, monkeypatch):
    """The weight that the grid has is loaded; one that stands twice is run once."""
    sweep = SweepEntry(task=finished.tasks[0], arm="all", weights=(0.5, 1.0, 0.5))
    trained = []

    def watched(config, folder, *, keep_model):
        trained.append((config.arm, config.seed, config.weight))
        assert not keep_model  # no chapter reads it
        return scheduling.load_run(folder / run_id(finished.runs()[0]))

    monkeypatch.setattr(scheduling, "run_or_load", watched)
    runs = run_sweep(replace(finished, sweep=(sweep,)))
    assert len(runs) == 3 * len(finished.seeds)
    assert trained == [("all", seed, 0.5) for seed in finished.seeds]
    assert runs[0] is runs[2] and runs[1].config in finished.runs()


def test_the_time_left_is_that_of_runs_side_by_side(tiny_profile, tmp_path, monkeypatch):
    """Four runs of two minutes on two workers, which join the cluster after the work is sent."""
    bar, joined = MagicMock(), {}

    def compute(client, configs, folder, *, keep):
        for name in configs:
            joined.update({"tcp://one:1": 1, "tcp://two:1": 1})
            yield name

    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    _on_a_cluster(monkeypatch, compute, joined)
    monkeypatch.setattr(scheduling, "progress_bar", lambda **options: nullcontext(bar))
    run = SimpleNamespace(provenance={"seconds": 120.0})
    monkeypatch.setattr(scheduling, "load_run", lambda folder: run)
    assert run_grid(tiny_profile) == 4 * [run]
    said = [call.args[0] for call in bar.set_postfix_str.call_args_list]
    assert said == [f"about {minutes} min left" for minutes in (3, 2, 1, 0)]
