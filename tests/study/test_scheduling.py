"""Many results: each once, by whoever makes them; what fails stops nothing and is named."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from distributed import Client, LocalCluster

from shrink_utils.__main__ import main
from shrink_utils.sources import home
from shrink_utils.study import results, run_grid, run_id, runs
from shrink_utils.study.profiles import _SweepEntry
from shrink_utils.study.results import ADDRESS, Work, make_all
from tests.study.makes import (
    die,
    fail,
    write,
    write_gpu_beside_another,
    write_while_another_begins,
)


def _work(folder, makes):
    paths = [folder / f"run{i}" for i in range(len(makes))]
    return [
        Work(p, partial(make, p), f"label {p.name}") for p, make in zip(paths, makes, strict=True)
    ]


@pytest.fixture(autouse=True)
def _found_by_other_processes(monkeypatch):
    """The functions of `tests.study.makes`, however pytest was called."""
    monkeypatch.syspath_prepend(str(home()))


@pytest.mark.parametrize(("workers", "worst"), [(1, fail), (2, die)])
def test_what_fails_or_dies_is_named_with_its_log_and_tried_again_alone(tmp_path, workers, worst):
    work = _work(tmp_path, [write, fail, write, worst, write])
    with pytest.raises(RuntimeError, match="2 of 5 runs failed") as told:
        make_all(work, workers=workers)
    for one in (work[1], work[3]):
        assert one.label in str(told.value) and str(one.log) in str(told.value)
    assert "out of memory" in str(told.value) and "Traceback" in work[1].log.read_text()
    made = {one.path: one.path.stat().st_mtime_ns for one in work if one.path.exists()}
    assert len(made) == 3
    make_all(_work(tmp_path, 5 * [write]), workers=1)
    assert all(one.path.exists() and not one.log.exists() for one in work)
    assert {path: path.stat().st_mtime_ns for path in made} == made


def test_workers_whose_parent_was_killed_end_with_what_they_are_making(tmp_path):
    lines = ["from functools import partial", "from pathlib import Path"]
    lines += ["from shrink_utils.study.results import Work, make_all"]
    lines += ["from tests.study.makes import write_slowly", "if __name__ == '__main__':"]
    lines += [f"    paths = [Path({str(tmp_path)!r}) / f'run{{i}}' for i in range(40)]"]
    lines += ["    make_all([Work(p, partial(write_slowly, p), p.name) for p in paths], workers=2)"]
    script = tmp_path / "many.py"
    script.write_text("\n".join(lines), encoding="utf-8")
    env = os.environ | {"PYTHONPATH": str(home())}
    parent = subprocess.Popen([sys.executable, str(script)], env=env, stderr=subprocess.DEVNULL)
    _wait_for(lambda: len([*tmp_path.glob("run*[0-9]")]) >= 2)
    parent.kill()
    parent.wait()
    time.sleep(1)  # what was being made takes a fifth of that
    made = len([*tmp_path.glob("run*[0-9]")])
    time.sleep(2)
    assert made < 30 and len([*tmp_path.glob("run*[0-9]")]) == made


def _wait_for(condition, seconds=60):
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds
        time.sleep(0.05)


def test_a_second_call_that_begins_meanwhile_does_no_harm(tmp_path):
    work = _work(tmp_path, [write_while_another_begins])
    make_all(work)
    assert work[0].path.exists() and not work[0].log.exists()


def test_the_time_left_is_told_once_every_worker_has_made_one(tmp_path, monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    work = _work(tmp_path, 4 * [write])
    with results.progress_bar(total=4, unit="run") as bar:
        bar.bar_format = results.NO_TIME_LEFT
        told = []
        for one in work:
            one.make()
            results._show(bar, work, 2)
            told.append("left" in str(bar))
    assert told == [False, True, True, True]


def test_each_process_has_a_gpu_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "_gpus", lambda: ["4", "7"])
    monkeypatch.setenv("SHRINK_WORKERS", "1")
    work = _work(tmp_path, 3 * [write_gpu_beside_another])
    make_all(work)  # though one process was asked for
    found = {(one.path / "value").read_text() for one in work}
    assert found == {"4", "7"}


@pytest.mark.parametrize(
    ("took", "cores", "at_once"),
    [(1.0, 64, 16), (20.0, 64, 2), (100.0, 64, 1), (1.0, 8, 4), (None, 64, 1)],
)
def test_the_first_runs_memory_says_how_many_share_a_gpu(
    tmp_path, monkeypatch, took, cores, at_once
):
    """Two GPUs of 80 GB: at most sixteen each, as memory and cores allow; nobody said how many."""
    monkeypatch.delenv("SHRINK_WORKERS", raising=False)
    monkeypatch.setattr(results, "_gpus", lambda: ["4", "7"])
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    card = SimpleNamespace(total_memory=80e9)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)
    started = []

    def side_by_side(work, workers, gpus, bar):
        started.append((len(work), workers))
        for one in work:
            one.path.mkdir(exist_ok=True)
            stamp = {} if took is None else {"memory_gb": took}
            results._write_json(one.path / results.STAMP, stamp)

    monkeypatch.setattr(results, "_side_by_side", side_by_side)
    make_all(_work(tmp_path, 100 * [write]))
    assert started == [(1, 1), (100, 2 * at_once)]


@pytest.mark.parametrize("given", ["0", "many"])
def test_a_number_of_processes_that_is_none_is_refused(tmp_path, monkeypatch, given):
    monkeypatch.setenv("SHRINK_WORKERS", given)
    with pytest.raises(ValueError, match="SHRINK_WORKERS") as told:
        make_all(_work(tmp_path, [write]))
    assert given in str(told.value) and not list(tmp_path.iterdir())


@pytest.mark.timeout(900)  # four imports of everything, on busy cores
@pytest.mark.parametrize("workers", ["2", pytest.param("4", marks=pytest.mark.nightly)])
def test_several_processes_compute_the_numbers_of_one(
    tiny_profile, tiny_runs, tmp_path, monkeypatch, workers
):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    monkeypatch.setenv("SHRINK_WORKERS", workers)
    one_seed = replace(tiny_profile, seeds=(0,))
    theirs = [run for run in tiny_runs if run.config.seed == 0]
    for run, other in zip(run_grid(one_seed), theirs, strict=True):
        assert run.config == other.config and run.folder.parent != other.folder.parent
        for name in ("steps", "evaluations", "correct", "clouds"):
            pd.testing.assert_frame_equal(run.tables[name], other.tables[name], check_exact=True)
        assert all(torch.equal(run.embeddings[k], x) for k, x in other.embeddings.items())


def test_three_parts_are_one_study(tiny_profile, capsys):
    every = tiny_profile.all_runs()
    parse = main.__globals__["_slice_of_part"]
    parts = [every[parse(f"{i}/3")] for i in (1, 2, 3)]
    assert sorted((one for part in parts for one in part), key=every.index) == every
    for text in ("0/3", "4/3", "3", "a/b"):
        with pytest.raises(SystemExit):
            main(["ablate", "--part", text])
        assert text in capsys.readouterr().err


def _watched(monkeypatch, trained):
    run_or_load = runs.run_or_load

    def watched(config, folder, *, keep_model):
        trained.append((config, keep_model))
        return run_or_load(config, folder, keep_model=keep_model)

    monkeypatch.setattr(runs, "run_or_load", watched)


def test_only_missing_runs_are_computed_and_the_profiles_order_kept(finished, monkeypatch):
    lost, trained = finished.runs()[2], []
    shutil.rmtree(finished.folder / "runs" / run_id(lost))
    _watched(monkeypatch, trained)
    assert [run.config for run in run_grid(finished)] == finished.runs()
    assert trained == [(lost, True)]


def test_a_damaged_run_counts_as_missing(finished, monkeypatch):
    config, trained = finished.runs()[0], []
    (finished.folder / "runs" / run_id(config) / "evaluations.parquet").unlink()
    _watched(monkeypatch, trained)
    with pytest.warns(UserWarning, match="is damaged"):
        run_grid(finished)
    assert trained == [(config, True)]


def test_the_sweep_varies_the_weight_and_shares_runs_with_the_grid(finished, monkeypatch):
    """The weight that the grid has is loaded; one that stands twice is run once."""
    sweep, trained = _SweepEntry(task=finished.tasks[0], arm="all", weights=(0.5, 1.0, 0.5)), []
    _watched(monkeypatch, trained)
    swept = replace(finished, sweep=(sweep,))
    found = runs.run_configs(swept.sweep_runs(), swept)
    assert len(found) == 3 * len(finished.seeds)
    assert [(c.seed, c.weight, kept) for c, kept in trained] == [(s, 0.5, False) for s in (0, 1)]
    assert found[0].folder == found[2].folder and found[1].config in finished.runs()


@pytest.mark.nightly
def test_a_cluster_makes_what_is_missing_and_names_what_fails(tmp_path, monkeypatch):
    quiet = {"dashboard_address": ":0", "memory_limit": 0, "silence_logs": 60, "processes": False}
    for threads in (2, 1):
        with LocalCluster(n_workers=1, threads_per_worker=threads, **quiet) as cluster:
            monkeypatch.setenv(ADDRESS, cluster.scheduler_address)
            with Client(cluster):
                with pytest.raises(RuntimeError, match="label run1") as told:
                    make_all(_work(tmp_path / "runs", [write, fail]))
        assert ("--nthreads 1" if threads == 2 else "out of memory") in str(told.value)
    assert (tmp_path / "runs" / "run0").is_dir()
    monkeypatch.setenv(ADDRESS, "tcp://127.0.0.1:1")
    monkeypatch.setenv("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "1s")
    with pytest.raises(ConnectionError, match=ADDRESS):
        make_all(_work(tmp_path, [write, write]))
