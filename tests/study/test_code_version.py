"""What a change of the code makes stale: for make, for runs and for measured tables."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shrink_utils.sources import home
from shrink_utils.study import code_version
from shrink_utils.study.code_version import code_hash

FORMULA, CLAIM = "topology/entropy.py", "study/claims/verdicts.py"


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """The whole package, copied; `code_hash` looks at it anew at every call."""
    shutil.copytree(code_version.PACKAGE, tmp_path / "shrink_utils")
    monkeypatch.setattr(code_version, "PACKAGE", tmp_path / "shrink_utils")
    monkeypatch.setattr(code_version, "code_hash", code_hash.__wrapped__)
    return tmp_path / "shrink_utils"


@pytest.fixture(scope="module")
def before():
    """Hashes of the package as it is: for runs, and for the study."""
    return [code_hash(study=study) for study in (False, True)]


@pytest.mark.parametrize(
    ("name", "old", "new", "stale"),
    [
        ("text/tasks.py", "GLUE's file is missing", "no such file", [False, False]),
        ("study/run_tables.py", "RATIO = 5.0", "RATIO = 4.0", [True, True]),  # runs leave it
        (FORMULA, '"""', '"""A docstring. ', [False, False]),
        (FORMULA, "import numpy as np", "import numpy as np  # a comment", [False, False]),
        (
            "study/profiles.py",
            "ARMS: dict[str, Options | None] = {",
            'ARMS: dict[str, Options | None] = {"new": {},',
            [False, False],
        ),
        ("study/run_tables.py", "KEYS = [*RUN, ", "KEYS = [*RUN, *RUN, ", [True, True]),
        ("study/figures.py", "SHARP = 200", "SHARP = 300", [False, False]),
        (CLAIM, "FURTHER =", "OTHER = FURTHER =", [False, False]),
        (FORMULA, "entr(bars / bars.sum())", "entr(bars)", [True, True]),
        ("study/experiments.py", "// (rank + 1)", "// rank", [False, True]),
        ("study/profiles.py", "manual_seed(seed)", "manual_seed(0)", [False, True]),
    ],
)
def test_words_of_errors_and_of_pages_are_free_and_formulas_are_not(
    before, copied, name, old, new, stale
):
    _edit(copied / name, old, new)
    after = [code_version.code_hash(study=study) for study in (False, True)]
    assert [one != other for one, other in zip(before, after, strict=True)] == stale


def test_what_an_error_is_and_when_it_is_raised_is_code():
    code = (
        """if x > 0:\n    raise ValueError("x is " f"{x}", 2)\nwarnings.warn("w", stacklevel=2)"""
    )
    free = {"x is ": "found ", "{x}": "{x:.2f}", 'f"{x}"': '"x"', '"w"': 'f"{x}"'}
    assert {code_version._code_only(code.replace(*change)) for change in free.items()} == {
        code_version._code_only(code)
    }
    counts = {"ValueError": "TypeError", "x > 0": "x > 1", ", 2)": ", 3)", "raise": "return"}
    changed = [code_version._code_only(code.replace(*change)) for change in counts.items()]
    assert code_version._code_only(code) not in changed


def test_rooms_without_numbers_are_there_and_none_that_counts_calls_them():
    """But for the profiles, whose set-up of a notebook takes the house style; their code counts."""
    rooms = [code_version.PACKAGE / "study" / name for name in code_version.WITHOUT_NUMBERS]
    assert all(room.exists() for room in rooms)
    free = {room.stem for room in rooms}
    for path in code_version.PACKAGE.glob("study/**/*.py"):
        if path.stem not in {"__init__", "profiles"} and not free & {path.parent.name, path.stem}:
            called = re.findall(r"from shrink_utils\.study\.(\w+)", path.read_text("utf-8"))
            assert not free & {*called}, path


@pytest.fixture
def study(tmp_path):
    """A checkout in which make finds every notebook and run finished: a function that plans."""
    root = home()
    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy2(root / name, tmp_path / name)
    for name in ("shrink_utils", "data/reference", "data/published"):
        shutil.copytree(root / name, tmp_path / name)
    (tmp_path / "notebooks").mkdir()
    for path in (root / "notebooks").glob("[0-9]*.ipynb"):
        (tmp_path / "notebooks" / path.name).touch()
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".complete").touch()

    def plan() -> str:
        command = ["make", "-n", "PROFILE=smoke", f"PYTHON={sys.executable} -S -I", "notebooks"]
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "SHRINK_"))}
        done = subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "execute notebooks/01_isotropy.ipynb" in plan()
    results = tmp_path / "results" / "smoke"
    (results / "notebooks").mkdir()
    (results / "ablation.complete").touch()
    last = "11_claims.ipynb"
    for path in sorted((tmp_path / "notebooks").iterdir(), key=lambda path: path.name == last):
        (results / "notebooks" / path.name).touch()
    assert not _planned(plan())
    return tmp_path / "shrink_utils", plan


def _planned(told: str) -> set[str]:
    """Which of three commands make would call."""
    named = ("ablate", "execute notebooks/01_isotropy", "execute notebooks/07_ablation")
    return {name for name in named if f"-m shrink_utils {name}" in told}


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_make_runs_again_what_a_change_of_code_makes_stale_and_no_more(study):
    package, plan = study
    _edit(package / FORMULA, "\n\n", "\n\n# a comment\n")
    assert not _planned(plan())
    _edit(package / CLAIM, "\n\n\n", "\n\n\nNEW = 1\n\n\n")
    assert _planned(plan()) == {"execute notebooks/01_isotropy", "execute notebooks/07_ablation"}
    _edit(package / FORMULA, "\n\n\n", "\n\n\nNEW = 1\n\n\n")
    assert "ablate" in _planned(plan())
