"""requirements.lock, pyproject.toml and environment.yml say the same."""

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

from packaging.requirements import Requirement

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
ON_DEMAND = {"bench", "book", "browser", "gguf"}
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
    installed = {name: version(name).split("+")[0] for name in LOCK}
    assert installed == LOCK
