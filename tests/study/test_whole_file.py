"""A file written whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from fnmatch import fnmatch

import pytest

from shrink_utils.study.whole_file import HOST, written


def test_what_was_written_takes_the_path_and_nothing_else_stays(tmp_path):
    path = tmp_path / "new" / "table.csv"
    for text in ("old", "new"):
        with written(path) as part:
            part.write_text(text)
    assert path.read_text() == "new"
    assert [file.name for file in path.parent.iterdir()] == ["table.csv"]


@pytest.mark.parametrize("error", [OSError("No space left"), KeyError("x"), KeyboardInterrupt()])
def test_what_fails_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "table.csv"
    path.write_text("old")
    with pytest.raises(type(error)), written(path) as part:
        part.write_text("ha")
        raise error
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("claims.csv", "*.csv"),
        ("01_isotropy.ipynb", "[0-9]*.ipynb"),
        ("corpus-0123456789abcdef.parquet", "*.parquet"),
        ("line.png", "*.png"),
    ],
)
def test_a_part_is_beside_the_file_and_no_pattern_of_results_takes_it(tmp_path, name, pattern):
    with written(tmp_path / name) as part:
        part.write_text("half")
        assert part.parent == tmp_path and not fnmatch(part.name, pattern)
        assert [*tmp_path.glob(pattern)] == []


def test_what_a_killed_process_left_of_the_file_is_swept(tmp_path):
    killed = subprocess.Popen([sys.executable, "-c", ""])
    killed.wait()
    dead = tmp_path / f"a.csv.{killed.pid}.{HOST}.part"
    kept = [
        tmp_path / f"a.csv.{os.getppid()}.{HOST}.part",
        tmp_path / f"a.csv.{killed.pid}.another.part",
        tmp_path / f"b.csv.{killed.pid}.{HOST}.part",
        tmp_path / f"a.csv.mine.{HOST}.part",
    ]
    for path in (dead, *kept):
        path.touch()
    with written(tmp_path / "a.csv") as part:
        part.touch()
    assert not dead.exists() and all(path.exists() for path in kept)
