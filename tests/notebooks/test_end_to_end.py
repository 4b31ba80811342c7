"""`make reproduce` as a newcomer runs it: in a clone, killed halfway, run again, run twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from shrink_utils.__main__ import main
from shrink_utils.paths import home
from shrink_utils.study import (
    all_claims,
    load_profile,
    run_grid,
    score_table,
    summarize,
    task_table,
    write_table,
)
from shrink_utils.study.drawing import COLUMNS
from shrink_utils.study.runs import model_of, run_id

# Every stored notebook again; cells marked NBVAL_CHECK_OUTPUT are to print what is stored.
NBVAL = ["-n", "2", "--dist", "loadscope", "--nbval-lax", "--nbval-current-env"]
NBVAL += ["--nbval-cell-timeout=300", "--timeout=600", "-W", "default", "-q"]
CHAPTERS = list((home() / "notebooks").glob("[0-9]*.ipynb"))
TABLES = ["task_metric.csv", "anisotropy.csv", "claims.csv"]
pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory, clone_into):
    return clone_into(tmp_path_factory.mktemp("clone") / "shrink")


@pytest.fixture(scope="module")
def make(clone, study_environment):
    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["make", "--no-print-directory", "PROFILE=smoke", *arguments],
            cwd=clone,
            env=study_environment(clone),
            capture_output=True,
            text=True,
        )

    return run


def _runs(clone) -> dict[str, int]:
    """Finished runs of the grid, with the time that each was written."""
    folder = clone / "results" / "smoke" / "runs"
    paths = [folder / run_id(config) for config in load_profile("smoke").runs()]
    return {path.name: path.stat().st_mtime_ns for path in paths if path.is_dir()}


def _rewrite(path: Path, change) -> None:
    table = pd.read_csv(path)
    change(table)
    table.to_csv(path, index=False, float_format="%.6f")


def _edit_a_claim(folder: Path) -> None:
    def change(claims):
        claims.loc[3, "estimate"] += 0.01

    _rewrite(folder / "tables" / "claims.csv", change)


def _add_a_column(folder: Path) -> None:
    _rewrite(folder / "tables" / "anisotropy.csv", lambda table: table.insert(0, "colour", "red"))


def _edit_a_measured_table(folder: Path) -> None:
    (path,) = (folder / "measured").glob("corpus-*/table.parquet")
    pd.read_parquet(path).iloc[1:].to_parquet(path, index=False)


def _a_run(folder: Path) -> Path:
    return folder / "runs" / run_id(load_profile("smoke").runs()[0])


def _remove_a_run(folder: Path) -> None:
    shutil.rmtree(_a_run(folder))


def _flip_a_byte_of_a_run(folder: Path) -> None:
    path = model_of(_a_run(folder)).folder / "model" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _link_outside(folder: Path) -> None:
    path = _a_run(folder) / "evaluations.json"
    path.unlink()
    path.symlink_to("/etc/passwd")


@pytest.fixture(scope="module")
def killed(clone, start_study):
    """`make reproduce`, killed with everything it started when a few runs are finished."""
    process = start_study(clone, output=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while len(_runs(clone)) < 5 and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _runs(clone)


@pytest.fixture(scope="module")
def finished(make, killed):
    return make("reproduce")


def test_it_was_killed_in_the_middle_of_the_grid(killed):
    assert 5 <= len(killed) < len(load_profile("smoke").runs())


def test_it_finishes_and_prints_the_claims(finished):
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert "Claims, profile smoke" in finished.stdout
    assert "agrees" in finished.stdout and "inconclusive" in finished.stdout


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


def test_checked_cells_print_what_is_stored_of_quick(clone, study_environment, finished):
    notebooks = sorted((clone / "notebooks").glob("[0-9]*.ipynb"))
    again = subprocess.run(
        [sys.executable, "-m", "pytest", *NBVAL, *map(str, notebooks)],
        cwd=clone,
        env={**study_environment(clone), "SHRINK_PROFILE": "smoke"},
        capture_output=True,
        text=True,
    )
    assert again.returncode == 0, again.stdout + again.stderr
    cells = [cell for path in notebooks for cell in nbformat.read(path, as_version=4).cells]
    n_code = sum(cell.cell_type == "code" for cell in cells)
    assert f"\n{n_code} passed" in again.stdout  # none was left out


def test_nothing_half_written_is_left(clone, finished):
    assert not list((clone / "results").rglob("*.part*"))
    assert not list((clone / "results").rglob("*.failed.ipynb"))


def test_run_again_it_does_nothing_says_so_and_is_quick(clone, make, finished):
    before = {path: path.stat().st_mtime_ns for path in (clone / "results").rglob("*.ipynb")}
    started = time.monotonic()
    again = make("reproduce")
    seconds = time.monotonic() - started
    assert again.returncode == 0
    assert "Nothing to run: results/smoke is up to date." in again.stdout
    assert "Claims, profile smoke" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert seconds <= 5


def test_a_changed_module_makes_only_its_notebooks_stale(clone, make, finished):
    module = clone / "shrink_utils" / "topology" / "selection.py"
    kept = module.stat().st_mtime
    try:
        os.utime(module)
        planned = make("-n", "notebooks").stdout
    finally:
        os.utime(module, (kept, kept))
    assert "execute notebooks/05_regularizer.ipynb" in planned
    assert "execute notebooks/01_isotropy.ipynb" not in planned
    assert "execute notebooks/00_setup_and_data.ipynb" not in planned


@pytest.mark.parametrize(
    ("records", "shown"),
    [
        ("cohort/runs.parquet", ("07_ablation", "08_geometry_after_finetuning", "11_claims")),
        ("models/claims.csv", ("11_claims",)),
        ("models/layers.csv", ("02_contextuality",)),
        ("models/machine_text.csv", ("12_topology_on_language",)),
    ],
)
def test_new_records_make_the_notebooks_that_show_them_stale(clone, make, finished, records, shown):
    path = clone / "data" / "reference" / records
    kept = path.stat().st_mtime
    try:
        os.utime(path)
        planned = make("-n", "notebooks").stdout
    finally:
        os.utime(path, (kept, kept))
    for name in shown:
        assert f"execute notebooks/{name}.ipynb" in planned
    assert "execute notebooks/01_isotropy.ipynb" not in planned


def test_another_seed_is_another_study(clone, make, finished):
    planned = make("-n", "SEED=7", "notebooks").stdout
    assert "results/smoke-seed7/notebooks/07_ablation.ipynb" in planned
    assert "results/smoke/notebooks" not in planned


def test_an_unknown_profile_is_named_before_anything_runs(clone, study_environment, finished):
    wrong = subprocess.run(
        ["make", "PROFILE=smok", "reproduce"],
        cwd=clone,
        env=study_environment(clone),
        capture_output=True,
        text=True,
    )
    assert wrong.returncode != 0
    assert "PROFILE=smok is no profile; there are" in wrong.stderr
    assert not (clone / "results" / "smok").exists()


def test_every_picture_has_its_numbers_and_a_dark_one(clone, finished):
    folder = clone / "results" / "smoke" / "figures"
    pictures = {path.stem for path in folder.glob("*.png") if not path.stem.endswith(".dark")}
    assert len(pictures) > 60
    for name in pictures:
        assert (folder / f"{name}.dark.png").is_file()
        table = pd.read_csv(folder / f"{name}.csv")
        assert list(table.columns) == COLUMNS and len(table)


def test_the_provenance_page_lists_everything(clone, finished):
    folder = clone / "results" / "smoke"
    page = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    assert page["profile"] == {"name": "smoke", "seed": 0, "hash": load_profile("smoke").hash}
    assert len(page["notebooks"]) == len(CHAPTERS) and min(page["notebooks"].values()) > 0
    assert page["inputs"]["minilm"]["files"]["model.safetensors"].startswith("53aa51172d14")
    assert _runs(clone).keys() <= page["runs"].keys()
    assert "| 11_claims |" in (folder / "provenance.md").read_text(encoding="utf-8")


def test_the_folder_is_verified_with_every_claim_made_again(clone, make, finished):
    verified = make("verify", "RESULTS=results/smoke")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "ok    claims, made again" in verified.stdout
    assert "FAIL" not in verified.stdout


@pytest.mark.parametrize(
    ("hurt", "says"),
    [
        (_edit_a_claim, "estimate is"),
        (_flip_a_byte_of_a_run, "model.safetensors changed"),
        (_remove_a_run, "is missing"),
        (_add_a_column, "foreign column colour"),
        (_link_outside, "is a link"),
        (_edit_a_measured_table, "table.parquet changed on disk"),
    ],
)
def test_what_was_changed_in_a_folder_is_named(clone, finished, hurt, says, tmp_path, capsys):
    sent = tmp_path / "sent"
    shutil.copytree(clone / "results" / "smoke", sent)
    hurt(sent)
    assert main(["verify", str(sent)]) == 1
    printed = capsys.readouterr().out
    assert "FAIL" in printed and says in printed


def test_a_failing_notebook_stops_make_and_is_kept(clone, make, finished):
    notebook = clone / "notebooks" / "00_setup_and_data.ipynb"
    text = notebook.read_text(encoding="utf-8")
    try:
        notebook.write_text(text.replace("profile = begin(", "1 / 0; begin("), encoding="utf-8")
        failed = make("00_setup_and_data")
    finally:
        notebook.write_text(text, encoding="utf-8")
    assert failed.returncode != 0
    assert "00_setup_and_data.ipynb" in failed.stderr and "ZeroDivisionError" in failed.stderr
    executed = clone / "results" / "smoke" / "notebooks"
    assert (executed / "00_setup_and_data.failed.ipynb").is_file()
    verified = make("verify", "RESULTS=results/smoke")
    assert verified.returncode != 0 and "UNFINISHED" in verified.stdout
    assert "`make reproduce PROFILE=smoke` goes on" in verified.stdout
