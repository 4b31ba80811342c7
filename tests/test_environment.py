"""requirements.lock, pyproject.toml and environment.yml say the same."""

import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest
import six
from packaging.requirements import Requirement

from tests.conftest import run_make

ROOT = Path(__file__).resolve().parents[1]


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pins(lines) -> dict[str, str]:
    found = {}
    for line in lines:
        if match := re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!_-]+)", line.strip()):
            found[_plain(match[1])] = match[2]
        else:
            assert not line.strip() or line.startswith("#"), f"not a pin: {line!r}"
    return found


LOCK = _pins((ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# Extras for those who ask for them; not part of the study.
ON_DEMAND = {"bench", "book", "browser", "fast", "gguf", "types"}
EXTRAS = PROJECT["optional-dependencies"]
CORE = [Requirement(line) for line in PROJECT["dependencies"]]


def test_the_lock_is_within_the_bounds_of_the_project():
    extras = [lines for name, lines in EXTRAS.items() if name not in ON_DEMAND]
    wanted = [*CORE, *(Requirement(line) for lines in extras for line in lines)]
    assert len(wanted) > 20
    outside = [
        f"{r} {LOCK[_plain(r.name)]}" for r in wanted if LOCK[_plain(r.name)] not in r.specifier
    ]
    assert not outside


def test_the_tests_run_on_the_locked_packages():
    assert runpy.run_path(str(ROOT / "tests" / "environment.py"))["faults"]() == []


@pytest.fixture
def bare(tmp_path):
    """A checkout without .venv, whose lock names two small packages; its `make` to be called."""
    root = tmp_path / "bare"
    shutil.copytree(ROOT / "shrink_utils", root / "shrink_utils")
    for name in ("Makefile", "pyproject.toml", "README.md", "LICENSE", "tests/environment.py"):
        (root / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    pins = "".join(f"{name}=={LOCK[name]}\n" for name in ("setuptools", "six"))
    (root / "requirements.lock").write_text(pins)
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    (root / "Makefile").write_text(makefile.replace("'^torch=='", "'^six=='"))  # what comes first

    return partial(run_make, f"PYTHON={sys.executable}", ".venv/.complete", cwd=root), root


@pytest.mark.nightly  # asks an index
@pytest.mark.parametrize("name", ["PYTHONPATH", "PIP_TARGET", "PIP_DRY_RUN", "PYTHONHOME"])
def test_a_set_up_is_whole_whatever_points_elsewhere(bare, tmp_path, name):
    make, root = bare
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(six.__file__, elsewhere)
    shutil.copytree(next(Path(six.__file__).parent.glob("six-*")), elsewhere / "six-1.dist-info")
    done = make(**{name: "1" if name == "PIP_DRY_RUN" else str(elsewhere)})
    assert done.returncode == 0 and (root / ".venv" / ".complete").is_file(), done.stdout
    asked = [
        root / ".venv/bin/python",
        "-I",
        "-c",
        "import six, shrink_utils as s; print(s.__file__)",
    ]
    told = subprocess.run(asked, capture_output=True, text=True)
    assert told.stdout.strip() == str(root / "shrink_utils" / "__init__.py"), told.stderr


@pytest.mark.nightly
def test_a_set_up_that_went_elsewhere_is_not_called_complete(bare, tmp_path):
    make, root = bare
    (tmp_path / "pip.conf").write_text(f"[install]\ntarget = {tmp_path / 'elsewhere'}\n")
    done = make(PIP_CONFIG_FILE=str(tmp_path / "pip.conf"))
    assert done.returncode and not (root / ".venv" / ".complete").exists()
    assert "The set-up failed" in done.stdout
