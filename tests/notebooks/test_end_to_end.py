"""`make reproduce` as a newcomer runs it: in a clone, killed halfway, resumed, run again.

The only time that `make test` executes the study; all checks below look at this one folder.
"""

import os
import re
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
MARK = "# NBVAL_CHECK_OUTPUT"
QUICK = ("04_barcodes.ipynb", "04b_diagrams.ipynb")
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


def _text(output) -> str:
    return output["text"] if "text" in output else output.data["text/plain"]


def _printed(path) -> dict[str, str]:
    """What each checked cell of a notebook shows, by its id."""
    marked = [c for c in nbformat.read(path, as_version=4).cells if MARK in c.source]
    assert all(cell.outputs for cell in marked)
    return {c.id: "".join(map(_text, c.outputs)) for c in marked}


def test_checked_cells_of_all_chapters_print_what_is_stored(results, finished):
    for path in CHAPTERS:
        assert _printed(results / "notebooks" / path.name) == _printed(path), path.name


@pytest.mark.parametrize(
    "names", [QUICK, pytest.param([p.name for p in CHAPTERS], marks=pytest.mark.nightly)]
)
def test_nbval_finds_what_is_stored_and_nothing_that_rounding_decides(
    nbval, clone, results, finished, names
):
    chapters = [clone / "notebooks" / name for name in names]
    told = nbval(
        *chapters,
        root=clone,
        PYTHONPATH=str(clone),  # nbval starts the kernels: this checkout's package, in each of them
        SHRINK_PROFILE="smoke",
        SHRINK_RESULTS_DIR=str(results.parent),
    )
    assert told.returncode == 0, told.stdout[-5000:] + told.stderr[-2000:]
    cells = [c for path in chapters for c in nbformat.read(path, as_version=4).cells]
    assert f"{sum(cell.cell_type == 'code' for cell in cells)} passed" in told.stdout


def test_run_again_it_does_nothing_says_so_and_is_quick(results, make, finished):
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*.ipynb")}
    started = time.monotonic()
    again = make("reproduce")
    assert time.monotonic() - started <= 5 and again.returncode == 0
    assert "Nothing to run: results/smoke is up to date." in again.stdout
    assert "Study smoke is complete" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in before} == before


RESTS_ON = {  # what is touched at once, and the chapters
    "models/layers.csv models/machine_text.csv heldout/uses.parquet": "02 11 12 13",
    "cohort/runs.parquet": "07 08 11",
    "strength/runs.parquet": "07b 11",
    "cohort/decided.csv": "07 07b 11",
    "strength/one_device/hypotheses.csv": "07 07b 11",
    "heldout/hypotheses.csv": "07 07b 11 13",
    "models/claims.csv": "11",
}


@pytest.mark.parametrize("touched", RESTS_ON)
def test_what_a_notebook_rests_on_makes_it_stale_and_no_other(clone, make, finished, touched):
    paths = [clone / "data" / "reference" / name for name in touched.split()]
    kept = [path.stat().st_mtime for path in paths]
    for path in paths:
        os.utime(path)
    planned = re.findall(r"execute notebooks/(\w+?)_", make("-n", "notebooks").stdout)
    for path, before in zip(paths, kept, strict=True):
        os.utime(path, (before, before))
    assert sorted(planned) == RESTS_ON[touched].split()


def test_the_course_is_written_and_the_targets_are_listed(clone, make, finished):
    course, listed = make("course"), make("help")
    assert course.returncode == 0 and listed.returncode == 0, course.stderr + listed.stderr
    written = {path.name for path in (clone / "notebooks" / "exercises").glob("*.ipynb")}
    assert written == {path.name for path in CHAPTERS} and "make reproduce " in listed.stdout


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
