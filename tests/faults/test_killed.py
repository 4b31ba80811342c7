"""SIGKILL at random moments: what was finished stays, nothing half-written counts as a result."""

import random
import shutil
import signal
import subprocess

import psutil
import pytest

from shrink_utils.study.results import Result

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
        for kept in (results / "runs").glob("*"):
            if not kept.name.endswith((".part", ".failed.log")):
                Result(kept).verify()  # nothing half-written has a result's name
        for table in [*(results / "tables").glob("*.csv"), *(results / "figures").glob("*.csv")]:
            assert table.read_text(encoding="utf-8").endswith("\n")
    assert "Study smoke is complete" in _finish(start_study(clone))
    for name, table in undisturbed.items():
        assert (results / "tables" / name).read_bytes() == table
    assert not list(clone.joinpath("results").rglob("*.part*"))
    assert (results / "provenance.json").is_file()
