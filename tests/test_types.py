"""A type checker knows what the library's functions give: `make types`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.nightly
def test_the_calls_of_listed_names_have_the_types_that_are_said():
    pytest.importorskip("mypy", reason="make types installs it")
    options = ["--config-file=", "--follow-imports=silent", "--ignore-missing-imports"]
    command = [sys.executable, "-m", "mypy", *options, "tests/typed_calls.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
