"""requirements.lock, pyproject.toml and environment.yml say the same."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]


def _pins(lines) -> dict[str, str]:
    found = {}
    for line in lines:
        if match := re.fullmatch(r"([A-Za-z0-9._-]+)==([A-Za-z0-9.!_-]+)", line.strip()):
            found[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
        else:
            assert not line.strip() or line.startswith("#"), f"not a pin: {line!r}"
    return found


LOCK = _pins((ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


# Extras that make installs when their target is asked for; not part of the study.
ON_DEMAND = {"bench", "book", "browser"}


def test_every_requirement_of_the_project_is_pinned_as_in_the_lock():
    extras = PROJECT["optional-dependencies"].items()
    wanted = _pins(
        [
            *PROJECT["dependencies"],
            *(line for name, extra in extras if name not in ON_DEMAND for line in extra),
        ]
    )
    assert len(wanted) > 20
    assert wanted.items() <= LOCK.items()


def test_conda_installs_the_lock_and_the_package():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (pip,) = [entry for entry in environment["dependencies"] if isinstance(entry, dict)]
    assert pip["pip"] == ["-r requirements.lock", "-e ."]
    (python,) = [str(e) for e in environment["dependencies"] if str(e).startswith("python=")]
    assert f">={python.removeprefix('python=')}" == PROJECT["requires-python"]


def test_the_tests_run_on_the_locked_packages():
    installed = {name: version(name).split("+")[0] for name in LOCK}
    assert installed == LOCK
