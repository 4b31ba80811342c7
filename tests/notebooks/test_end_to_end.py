"""`make reproduce` as a newcomer runs it: in a clone, killed halfway, run again, run twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from shrink_utils.study import (
    all_claims,
    load_profile,
    run_grid,
    score_table,
    summarize,
    task_table,
    write_table,
)
from shrink_utils.study.runs import run_id

ROOT = Path(__file__).resolve().parents[2]
TABLES = ["task_metric.csv", "anisotropy.csv", "claims.csv"]
pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """The working tree in a folder of its own, with this environment and the fetched data."""
    root = tmp_path_factory.mktemp("clone") / "shrink"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    (root / ".venv").symlink_to(ROOT / ".venv")
    (root / "data" / "raw").symlink_to(ROOT / "data" / "raw")
    return root


def _environment(clone) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SHRINK_", "PYTEST", "MAKE"))}
    return {**kept, "PYTHONPATH": str(clone)}  # the clone's package, not the installed one


def _make(clone, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        ["make", "--no-print-directory", "PROFILE=smoke", *arguments],
        cwd=clone,
        env=_environment(clone),
        capture_output=True,
        text=True,
    )


def _runs(clone) -> dict[str, int]:
    """Finished runs of the grid, with the time that each was written."""
    folder = clone / "results" / "smoke" / "runs"
    paths = [folder / run_id(config) for config in load_profile("smoke").runs()]
    return {path.name: path.stat().st_mtime_ns for path in paths if path.is_dir()}


@pytest.fixture(scope="module")
def killed(clone):
    """`make reproduce`, killed with everything it started when a few runs are finished."""
    process = subprocess.Popen(
        ["make", "PROFILE=smoke", "reproduce"],
        cwd=clone,
        env=_environment(clone),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 300
    while len(_runs(clone)) < 5 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _runs(clone)


@pytest.fixture(scope="module")
def finished(clone, killed):
    return _make(clone, "reproduce")


def test_it_was_killed_in_the_middle_of_the_grid(killed):
    assert 5 <= len(killed) < len(load_profile("smoke").runs())


def test_it_finishes_and_prints_the_claims(finished):
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "Claims, profile smoke" in finished.stdout
    assert "replicated" in finished.stdout and "inconclusive" in finished.stdout


def test_finished_runs_were_loaded_and_not_repeated(clone, killed, finished):
    now = _runs(clone)
    assert len(now) == len(load_profile("smoke").runs())
    assert killed.items() <= now.items()


def test_tables_are_those_of_an_undisturbed_execution(clone, finished, tmp_path, monkeypatch):
    monkeypatch.setenv("SHRINK_RESULTS_DIR", str(tmp_path))
    profile = load_profile("smoke")
    summary = summarize(run_grid(profile))
    write_table(task_table(summary), "task_metric", profile=profile)
    write_table(score_table(summary), "anisotropy", profile=profile)
    write_table(all_claims(profile), "claims", profile=profile)
    for name in TABLES:
        undisturbed = (profile.folder / "tables" / name).read_bytes()
        assert (clone / "results" / "smoke" / "tables" / name).read_bytes() == undisturbed


def test_nothing_half_written_is_left(clone, finished):
    assert not list((clone / "results").rglob("*.part*"))
    assert not list((clone / "results").rglob("*.failed.ipynb"))


def test_run_again_it_does_nothing_says_so_and_is_quick(clone, finished):
    before = {path: path.stat().st_mtime_ns for path in (clone / "results").rglob("*.ipynb")}
    started = time.monotonic()
    again = _make(clone, "reproduce")
    seconds = time.monotonic() - started
    assert again.returncode == 0
    assert "Nothing to run: results/smoke is up to date." in again.stdout
    assert "Claims, profile smoke" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert seconds <= 5


def test_a_changed_module_makes_only_its_notebooks_stale(clone, finished):
    module = clone / "shrink_utils" / "topology" / "selection.py"
    kept = module.stat().st_mtime
    try:
        os.utime(module)
        planned = _make(clone, "-n", "notebooks").stdout
    finally:
        os.utime(module, (kept, kept))
    assert "execute notebooks/05_regularizer.ipynb" in planned
    assert "execute notebooks/01_isotropy.ipynb" not in planned
    assert "execute notebooks/00_setup_and_data.ipynb" not in planned


def test_another_seed_is_another_study(clone, finished):
    planned = _make(clone, "-n", "SEED=7", "notebooks").stdout
    assert "results/smoke-seed7/notebooks/07_ablation.ipynb" in planned
    assert "results/smoke/notebooks" not in planned


def test_a_failing_notebook_stops_make_and_is_kept(clone, finished):
    notebook = clone / "notebooks" / "00_setup_and_data.ipynb"
    text = notebook.read_text(encoding="utf-8")
    try:
        notebook.write_text(text.replace("profile = begin(", "1 / 0; begin("), encoding="utf-8")
        failed = _make(clone, "00_setup_and_data")
    finally:
        notebook.write_text(text, encoding="utf-8")
    assert failed.returncode != 0
    assert "00_setup_and_data.ipynb" in failed.stderr and "ZeroDivisionError" in failed.stderr
    executed = clone / "results" / "smoke" / "notebooks"
    assert (executed / "00_setup_and_data.failed.ipynb").is_file()


def test_an_unknown_profile_is_named_before_anything_runs(clone, finished):
    wrong = subprocess.run(
        ["make", "PROFILE=smok", "reproduce"],
        cwd=clone,
        env=_environment(clone),
        capture_output=True,
        text=True,
    )
    assert wrong.returncode != 0
    assert "did you mean 'smoke'?" in wrong.stderr
