"""Runs on workers: the same numbers, nothing lost, nothing twice, errors that say what to do."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from distributed import Client, LocalCluster

from shrink_utils.study import run_grid, run_id, scheduling
from shrink_utils.study.scheduling import compute_runs

pytestmark = pytest.mark.nightly
QUIET = {"dashboard_address": ":0", "memory_limit": 0, "silence_logs": 60}


@pytest.fixture
def thread():
    """A worker in this process, for what needs no other one."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **QUIET) as made:
        with Client(made) as client:
            yield client


@pytest.fixture
def pretended(monkeypatch, tmp_path):
    """Runs that leave an empty folder instead of training; (configs by id, folder)."""

    def run(config, folder, *, keep_model):
        (folder / run_id(config)).mkdir()

    monkeypatch.setattr(scheduling, "run_or_load", run)
    return run


def _folders(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_dir()}


def test_a_worker_killed_in_the_middle_loses_nothing_that_was_finished(
    tiny_profile, tmp_path, monkeypatch, capfd
):
    """Two processes of this machine; the numbers are those of one, and nobody prints anything.

    Three runs of 15 steps are long enough for a worker to die in the middle of one.
    """
    entry = replace(tiny_profile.grid[0], arms=("none", "all", "prominent"))
    grid = replace(tiny_profile, name="long", grid=(entry,), seeds=(0,), epochs=5)
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path / "serial"))
    serial = run_grid(grid)
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    before, folder, finished = dict(os.environ), tmp_path / grid.name / "runs", {}

    def compute(client, *arguments, **options):
        pids = client.run(os.getpid)
        assert len(pids) == 2 and os.getpid() not in pids.values()
        for name in compute_runs(client, *arguments, **options):
            if not finished:
                busy = next(worker for worker, keys in client.processing().items() if keys)
                os.kill(pids[busy], signal.SIGKILL)
                files = (folder / name).rglob("*")
                finished.update({file: file.stat().st_mtime_ns for file in files})
            yield name

    monkeypatch.setattr(scheduling, "compute_runs", compute)
    capfd.readouterr()
    runs = run_grid(replace(grid, workers=2))
    names = [run.folder.name for run in runs]
    assert finished and {file: file.stat().st_mtime_ns for file in finished} == finished
    assert _folders(folder) == {*names, *(f"{name}.model" for name in names)}
    for run, other in zip(runs, serial, strict=True):
        assert run.config == other.config and run.evaluations == other.evaluations
        pd.testing.assert_frame_equal(run.history, other.history, check_exact=True)
        assert all(torch.equal(run.embeddings[k], x) for k, x in other.embeddings.items())
    assert dict(os.environ) == before
    assert capfd.readouterr() == ("", "")


def test_a_run_that_fails_is_named_and_those_before_it_are_kept(
    finished, thread, pretended, tmp_path, monkeypatch
):
    first, second, *_ = finished.runs()

    def fail(config, folder, *, keep_model):
        if config == second:
            raise RuntimeError("out of memory")
        pretended(config, folder, keep_model=keep_model)

    monkeypatch.setattr(scheduling, "run_or_load", fail)
    configs = {run_id(config): config for config in (first, second)}
    with pytest.raises(RuntimeError, match=f"run {second.label}: out of memory"):
        list(compute_runs(thread, configs, tmp_path))
    assert _folders(tmp_path) == {run_id(first)}


def test_a_worker_of_other_code_or_precision_or_without_the_folder_is_refused(
    finished, thread, pretended, tmp_path, monkeypatch
):
    config = finished.runs()[0]
    with pytest.raises(RuntimeError, match=r"would compute another run.*up to date"):
        list(compute_runs(thread, {"0123456789abcdef": config}, tmp_path))
    other = {"float32": "bfloat16", "bfloat16": "float32"}[config.precision]
    with monkeypatch.context() as patch:
        patch.setattr(scheduling, "used_precision", lambda precision: other)
        with pytest.raises(RuntimeError, match="SHRINK_PRECISION=float32"):
            list(compute_runs(thread, {run_id(config): config}, tmp_path / "other"))
    monkeypatch.setattr(scheduling, "run_or_load", lambda *given, **options: None)
    tmp_path.joinpath("empty").mkdir()
    with pytest.raises(RuntimeError, match=r"of a worker is not seen here"):
        list(compute_runs(thread, {run_id(config): config}, tmp_path / "empty"))
