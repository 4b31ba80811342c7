"""SIGKILL at random moments: what was finished stays, nothing half-written counts as a result."""

import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pandas as pd
import psutil
import pytest

from shrink_utils.study.results import Result
from shrink_utils.study.runs import kept_folders, load_run
from shrink_utils.study.verify import verify_folder

pytestmark = pytest.mark.nightly
TABLES = ["task_metric.csv", "anisotropy.csv", "claims.csv"]


def _kill(process: subprocess.Popen) -> None:
    """SIGKILL to a process and to everything that it started, kernels of notebooks included."""
    family = [psutil.Process(process.pid)]
    family += family[0].children(recursive=True)
    for member in family:
        try:
            member.send_signal(signal.SIGSTOP)  # nobody is to be born meanwhile
        except psutil.NoSuchProcess:
            pass
    for member in {*family, *family[0].children(recursive=True)}:
        try:
            member.kill()
        except psutil.NoSuchProcess:
            pass
    process.communicate()


def _finish(process: subprocess.Popen) -> str:
    printed, errors = process.communicate()
    assert process.returncode == 0, errors
    return printed


def test_an_ablation_killed_three_times_has_the_runs_of_an_undisturbed_one(shrink, tmp_path):
    moments = random.Random(0)
    hurt, undisturbed = tmp_path / "hurt", tmp_path / "undisturbed"
    for _ in range(3):
        process = shrink(hurt, "ablate")
        process.stdout.readline()  # "Ablation, …": what was loaded is not what is to be hurt
        time.sleep(moments.uniform(0.2, 4.0))
        _kill(process)
    for results in (hurt, undisturbed):
        assert "4 runs in" in _finish(shrink(results, "ablate"))
    assert not list(hurt.rglob("*.part*"))
    found = {path.name for path in (hurt / "small" / "runs").iterdir()}
    runs = {name for name in found if "." not in name}
    assert len(runs) == 4 and found == runs | {f"{name}.model" for name in runs}
    for name in runs:
        one, other = (
            load_run(results / "small" / "runs" / name) for results in (hurt, undisturbed)
        )
        pd.testing.assert_frame_equal(one.history, other.history)
        assert one.evaluations == other.evaluations


@pytest.mark.timeout(3600)
def test_a_study_killed_twenty_times_ends_with_the_tables_of_an_undisturbed_one(
    tmp_path, clone_into, start_study
):
    clone = clone_into(tmp_path / "shrink")
    results = clone / "results" / "smoke"
    _finish(start_study(clone))
    undisturbed = {name: (results / "tables" / name).read_bytes() for name in TABLES}
    shutil.rmtree(clone / "results")
    moments = random.Random(0)
    for _ in range(20):
        process = start_study(clone)
        try:
            process.communicate(timeout=moments.uniform(1, 25))
            shutil.rmtree(clone / "results")  # it came to its end: from the beginning again
        except subprocess.TimeoutExpired:
            _kill(process)
        _nothing_half_written_has_a_results_name(results)
    assert "Study smoke is complete" in _finish(start_study(clone))
    for name, table in undisturbed.items():
        assert (results / "tables" / name).read_bytes() == table
    assert not list(clone.joinpath("results").rglob("*.part*"))
    assert not any(verify_folder(results).values())


def _nothing_half_written_has_a_results_name(results: Path) -> None:
    for kind in ("runs", "measured"):
        for kept in kept_folders(results, kind):
            Result(kept).verify()
    for table in [*(results / "tables").glob("*.csv"), *(results / "figures").glob("*.csv")]:
        assert table.read_text(encoding="utf-8").endswith("\n")
