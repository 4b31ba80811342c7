"""Analyses that were fixed beforehand are older than their runs, and unchanged since."""

import subprocess
import tomllib
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = "docs/preregistration.md"
REGISTERED = "95c919f7ac4ba0390f06ecdc7c40afb7e2731224"  # the page's commit before the first run


def _git(*what: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, "show", *what], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("a checkout without history")
    return done.stdout


def test_the_analysis_is_older_than_the_runs_that_it_decides_on():
    registered = datetime.fromisoformat(_git("-s", "--format=%cI", REGISTERED).strip())
    times = pd.read_parquet(ROOT / "data/reference/cohort/runs.parquet", columns=["time"]).time
    assert registered < min(map(datetime.fromisoformat, times))


def test_the_text_of_the_analysis_is_that_of_its_commit_with_deviations_below():
    registered = _git(f"{REGISTERED}:{PAGE}").split("## Deviations")[0]
    assert (ROOT / PAGE).read_text(encoding="utf-8").startswith(registered)


@pytest.mark.parametrize("name", ["strength", "heldout", "objectives", "last", "base", "papers"])
def test_a_later_analysis_and_its_code_are_older_than_the_runs_that_they_decide_on(name):
    """Its commit is the one that added the page; that commit has the code as well."""
    page, records = f"docs/preregistration_{name}.md", f"data/reference/{name}"
    code = f"{records}/decide.py"
    if name == "strength":
        code = "shrink_utils/study/claims/strength.py"
    log = ["git", "-C", ROOT, "log", "--diff-filter=A", "--format=%H", "--", page]
    added = subprocess.run(log, capture_output=True, text=True).stdout.split()
    if not added:
        pytest.skip("a checkout without history")
    assert "def decide(" in _git(f"{added[-1]}:{code}")
    fixed = _git(f"{added[-1]}:{page}").split("## Deviations")[0]
    assert (ROOT / page).read_text(encoding="utf-8").startswith(fixed)
    if code.startswith("data/"):  # what stands there now, or what it is said to have been
        pins = tomllib.loads((ROOT / "data/reference/frozen.toml").read_text(encoding="utf-8"))
        earlier = [entry for entry in pins["earlier"] if entry["script"] == f"{name}/decide.py"]
        known = {entry["sha256"] for entry in earlier} | {pins[name]["scripts"]["decide.py"]}
        assert sha256(_git(f"{added[-1]}:{code}").encode()).hexdigest() in known
    runs = ROOT / records / "runs.parquet"
    if not runs.is_file():
        pytest.skip("no run is on record yet")
    registered = datetime.fromisoformat(_git("-s", "--format=%cI", added[-1]).strip())
    times = pd.read_parquet(runs, columns=["time"]).time
    assert registered < min(map(datetime.fromisoformat, times))
