"""`make reproduce` as a newcomer runs it: in a clone, killed halfway, resumed, run again.

The only time that `make test` executes the study; all checks below look at this one folder.
"""

import os
import signal
import subprocess
import time

import nbformat
import pandas as pd
import pytest

from shrink_utils.sources import home
from shrink_utils.study import load_profile
from shrink_utils.study.runs import load_run, run_id, run_or_load

CHAPTERS = sorted((home() / "notebooks").glob("[0-9]*.ipynb"))
SECONDS = ("01", "03", "04", "04b", "05")  # chapters that take them under smoke
pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory, clone_into):
    return clone_into(tmp_path_factory.mktemp("clone") / "shrink")


@pytest.fixture(scope="module")
def results(clone):
    return clone / "results" / "smoke"


@pytest.fixture(scope="module")
def make(clone, study_environment):
    command = ["make", "--no-print-directory", "PROFILE=smoke"]
    options = {"cwd": clone, "env": study_environment(clone), "capture_output": True, "text": True}
    return lambda *arguments: subprocess.run([*command, *arguments], **options)


def _runs(results) -> dict[str, int]:
    """Finished runs of the grid, with the time that each was written."""
    paths = [results / "runs" / run_id(config) for config in load_profile("smoke").runs()]
    return {path.name: path.stat().st_mtime_ns for path in paths if path.is_dir()}


@pytest.fixture(scope="module")
def killed(clone, results, start_study):
    """`make reproduce`, killed with everything it started when a few runs are finished."""
    process = start_study(clone, output=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while len(_runs(results)) < 5 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _runs(results)


@pytest.fixture(scope="module")
def finished(make, killed):
    return make("reproduce")


def test_a_killed_study_resumes_and_prints_the_claims(results, killed, finished):
    assert 5 <= len(killed) < len(load_profile("smoke").runs())
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "Study smoke is complete" in finished.stdout
    assert "agrees" in finished.stdout and "inconclusive" in finished.stdout
    assert len(_runs(results)) == len(load_profile("smoke").runs())
    assert killed.items() <= _runs(results).items()  # these were loaded and not repeated
    assert not [*results.rglob("*.part*"), *results.rglob("*.failed.ipynb")]


def test_the_run_that_was_interrupted_is_that_of_an_undisturbed_process(
    results, killed, finished, tmp_path
):
    config = next(c for c in load_profile("smoke").runs() if run_id(c) not in killed)
    resumed = load_run(results / "runs" / run_id(config))
    undisturbed = run_or_load(config, tmp_path)
    pd.testing.assert_frame_equal(resumed.history, undisturbed.history, check_exact=True)
    assert resumed.evaluations == undisturbed.evaluations


def _checked_by_nbval(nbval, clone, results, chapters):
    told = nbval(
        *(clone / "notebooks" / path.name for path in chapters),
        root=clone,
        PYTHONPATH=str(clone),  # nbval starts the kernels: this checkout's package, in each of them
        SHRINK_PROFILE="smoke",
        SHRINK_RESULTS_DIR=str(results.parent),
    )
    assert told.returncode == 0, told.stdout[-5000:] + told.stderr[-2000:]
    cells = [c for path in chapters for c in nbformat.read(path, as_version=4).cells]
    assert f"{sum(cell.cell_type == 'code' for cell in cells)} passed" in told.stdout


def test_checked_cells_of_quick_chapters_print_what_is_stored_by_nbval(
    nbval, clone, results, finished
):
    chapters = [path for path in CHAPTERS if path.stem.split("_")[0] in SECONDS]
    assert len(chapters) == len(SECONDS)
    _checked_by_nbval(nbval, clone, results, chapters)


@pytest.mark.nightly
def test_checked_cells_of_all_chapters_print_what_is_stored_by_nbval(
    nbval, clone, results, finished
):
    _checked_by_nbval(nbval, clone, results, CHAPTERS)


def test_run_again_it_does_nothing_says_so_and_is_quick(results, make, finished):
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*.ipynb")}
    started = time.monotonic()
    again = make("reproduce")
    assert time.monotonic() - started <= 5 and again.returncode == 0
    assert "Nothing to run: results/smoke is up to date." in again.stdout
    assert "Study smoke is complete" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in before} == before


RESTS_ON = {
    "cohort/runs.parquet": ("07_ablation", "08_geometry_after_finetuning", "11_claims"),
    "cohort/decided.csv": ("07_ablation", "11_claims"),
    "strength/runs.parquet": ("07b_equal_strength", "11_claims"),
    "strength/decided.csv": ("07b_equal_strength", "11_claims"),
    "strength/one_device/hypotheses.csv": ("07b_equal_strength", "11_claims"),
    "models/claims.csv": ("11_claims",),
    "models/layers.csv": ("02_contextuality",),
    "models/machine_text.csv": ("12_topology_on_language",),
    "heldout/hypotheses.csv": ("07b_equal_strength", "11_claims", "13_what_for"),
    "heldout/uses.parquet": ("13_what_for",),
}


@pytest.mark.parametrize("touched", RESTS_ON)
def test_what_a_notebook_rests_on_makes_it_stale_and_no_other(clone, make, finished, touched):
    path = clone / "data" / "reference" / touched
    kept = path.stat().st_mtime
    try:
        os.utime(path)
        planned = make("-n", "notebooks").stdout
    finally:
        os.utime(path, (kept, kept))
    assert all(f"execute notebooks/{name}.ipynb" in planned for name in RESTS_ON[touched])
    assert "execute notebooks/01_isotropy.ipynb" not in planned


def test_the_course_is_written_and_the_targets_are_listed(clone, make, finished):
    course, listed = make("course"), make("help")
    assert course.returncode == 0 and listed.returncode == 0, course.stderr + listed.stderr
    written = {path.name for path in (clone / "notebooks" / "exercises").glob("*.ipynb")}
    assert written == {path.name for path in CHAPTERS} and "make reproduce " in listed.stdout


def test_another_seed_is_another_study(make, finished):
    planned = make("-n", "SEED=7", "notebooks").stdout
    assert "results/smoke-seed7/notebooks/07_ablation.ipynb" in planned
    assert "results/smoke/notebooks" not in planned


def test_a_failing_notebook_stops_make_and_is_kept(clone, results, make, finished):
    notebook = clone / "notebooks" / "00_setup_and_data.ipynb"
    text = notebook.read_text(encoding="utf-8")
    try:
        notebook.write_text(
            text.replace("profile = setup_notebook(", "1 / 0; setup_notebook("), encoding="utf-8"
        )
        failed = make("00_setup_and_data")
    finally:
        notebook.write_text(text, encoding="utf-8")
    assert failed.returncode != 0
    assert "00_setup_and_data.ipynb" in failed.stderr and "ZeroDivisionError" in failed.stderr
    assert (results / "notebooks" / "00_setup_and_data.failed.ipynb").is_file()
    assert not (results / "provenance.json").exists()  # the study is unfinished again
