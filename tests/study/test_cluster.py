"""Runs on workers: the same numbers, nothing lost, nothing twice, errors that say what to do."""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch
from distributed import Client, LocalCluster

from shrink_utils.study import cluster, run_grid, run_id
from shrink_utils.study import grid as grid_module
from shrink_utils.study.cluster import STEPS, cluster_client, compute_runs

pytestmark = pytest.mark.nightly
QUIET = {"dashboard_address": ":0", "memory_limit": 0, "silence_logs": 60}


@pytest.fixture(scope="module")
def grid(tiny_profile):
    """Three runs of 15 steps: long enough for a worker to die in the middle of one."""
    entry = replace(tiny_profile.grid[0], arms=("none", "all", "prominent"))
    return replace(tiny_profile, name="long", grid=(entry,), seeds=(0,), epochs=5)


@pytest.fixture(scope="module")
def serial(grid, tmp_path_factory):
    """The grid, computed in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHRINK_RESULTS_DIR", str(tmp_path_factory.mktemp("serial")))
        return run_grid(grid)


@pytest.fixture
def thread():
    """A worker in this process, for what needs no other one."""
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, **QUIET) as made:
        with Client(made) as client:
            yield client


@pytest.fixture
def pretended(monkeypatch, tmp_path):
    """Runs that leave an empty folder instead of training; (configs by id, folder)."""

    def run(config, folder, *, on_row, keep_model):
        on_row({"step": 1})
        (folder / run_id(config)).mkdir()

    monkeypatch.setattr(cluster, "run_or_load", run)
    return run


def _assert_equal(runs, others) -> None:
    for run, other in zip(runs, others, strict=True):
        assert run.config == other.config
        pd.testing.assert_frame_equal(run.history, other.history, check_exact=True)
        assert run.evaluations == other.evaluations
        assert all(torch.equal(run.embeddings[k], x) for k, x in other.embeddings.items())


def _folders(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_dir()}


class Killer:
    """Kills one of two workers at the second step of a run, once another run is on disk."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.killed: list[str] = []
        self.finished: dict[Path, int] = {}  # files of the runs on disk then, and their times
        self.started: Counter[str] = Counter()

    @contextmanager
    def cluster(self, **options):
        with cluster_client(**options) as client, Client(client.scheduler.address) as own:
            self._pids = own.run(os.getpid)
            assert len(self._pids) == 2 and os.getpid() not in self._pids.values()
            own.subscribe_topic(STEPS, lambda event: self._look(**event[1]))
            yield client
            events = [event for _, event in own.get_events(STEPS)]
            self.started.update(event["run"] for event in events if event["step"] == 0)

    def _look(self, run: str, step: int, worker: str) -> None:
        whole = [path.parent for path in self.folder.glob("*/manifest.json")]
        whole = [path for path in whole if path.suffix != ".part"]
        if step == 2 and whole and not self.killed:
            os.kill(self._pids[worker], signal.SIGKILL)
            self.killed.append(run)
            files = [file for path in whole for file in path.rglob("*")]
            self.finished.update({file: file.stat().st_mtime_ns for file in files})


def test_a_worker_killed_in_the_middle_loses_nothing_and_repeats_only_its_run(
    grid, serial, tmp_path, monkeypatch, capfd
):
    """Two processes of this machine; the numbers are those of one, and nobody prints anything."""
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    before, killer = dict(os.environ), Killer(tmp_path / grid.name / "runs")
    monkeypatch.setattr(grid_module, "cluster_client", killer.cluster)
    runs = run_grid(replace(grid, workers=2))
    names = [run.folder.name for run in runs]
    assert len(killer.killed) == 1 and killer.finished
    assert killer.started == {name: 1 + (name in killer.killed) for name in names}
    assert {file: file.stat().st_mtime_ns for file in killer.finished} == killer.finished
    assert _folders(killer.folder) == {*names, *(f"{name}.model" for name in names)}
    _assert_equal(runs, serial)
    assert dict(os.environ) == before
    assert capfd.readouterr() == ("", "")


def test_a_run_that_fails_is_named_and_those_before_it_are_kept(
    finished, thread, pretended, tmp_path, monkeypatch
):
    first, second, *_ = finished.runs()

    def fail(config, folder, *, on_row, keep_model):
        if config == second:
            raise RuntimeError("out of memory")
        pretended(config, folder, on_row=on_row, keep_model=keep_model)

    monkeypatch.setattr(cluster, "run_or_load", fail)
    configs = {run_id(config): config for config in (first, second)}
    with pytest.raises(RuntimeError, match=f"run {second.label}: out of memory"):
        compute_runs(thread, configs, tmp_path, on_step=lambda run, step: None)
    assert _folders(tmp_path) == {run_id(first)}


def test_a_worker_of_other_code_or_without_the_folder_is_refused(
    finished, thread, pretended, tmp_path, monkeypatch
):
    config = finished.runs()[0]
    with pytest.raises(RuntimeError, match=r"would compute another run.*up to date"):
        compute_runs(thread, {"0123456789abcdef": config}, tmp_path, on_step=print)
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "used_precision", lambda precision: "another")
        with pytest.raises(RuntimeError, match="trains in another, the study in"):
            compute_runs(thread, {run_id(config): config}, tmp_path / "other", on_step=print)
    monkeypatch.setattr(cluster.os, "listdir", lambda path: [])
    with pytest.raises(RuntimeError, match=r"does not see .*SHRINK_RESULTS_DIR"):
        compute_runs(thread, {run_id(config): config}, tmp_path, on_step=print)
