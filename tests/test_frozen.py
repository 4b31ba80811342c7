"""Registered analyses are as they were, and their tables decide to the committed ones."""

import subprocess
import sys
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "data" / "reference"
PINS = tomllib.loads((REFERENCE / "frozen.toml").read_text(encoding="utf-8"))
EARLIER, GONE = PINS.pop("earlier"), PINS.pop("gone")
FOLDERS = [(name, name) for name, of in PINS.items() if of["writes"]] + [
    (name, f"{name}/{also}") for name, of in PINS.items() for also in of.get("also", ())
]


def _sha256(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_every_frozen_file_is_as_it_was_and_no_living_script_stands_beside_it():
    pinned = {f"{name}/{file}": digest for name, of in PINS.items()
              for file, digest in of["scripts"].items()}  # fmt: skip
    scripts = {path.relative_to(REFERENCE).as_posix(): path for path in REFERENCE.rglob("*.py")}
    assert {name: _sha256(path) for name, path in scripts.items()} == pinned
    assert {entry["script"] for entry in EARLIER} <= {*scripts}
    for name, of in PINS.items():
        registered = (ROOT / of["page"]).read_text(encoding="utf-8").split("## Deviations")[0]
        assert sha256(registered.encode()).hexdigest() == of["text"], name
    for entry in GONE:
        assert _sha256(REFERENCE / entry["table"]) == entry["sha256"], entry["table"]


@pytest.mark.parametrize(("name", "folder"), FOLDERS)
def test_the_tables_of_an_analysis_decide_to_the_committed_ones_to_the_byte(name, folder, tmp_path):
    committed, written = REFERENCE / folder, {f"{table}.csv" for table in PINS[name]["writes"]}
    for path in [*committed.glob("*.parquet"), *committed.glob("claims.csv")]:
        (tmp_path / path.name).symlink_to(path)
    command = [sys.executable, REFERENCE / name / "decide.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.glob("*.csv")} - {"claims.csv"} == written
    for table in sorted(written):
        assert (tmp_path / table).read_bytes() == (committed / table).read_bytes(), table
