"""A folder that is written whole or not at all, and checked whenever it is read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import psutil

from shrink_utils.study.whole_file import HOST

__all__ = [
    "DamagedRunError",
    "load_whole",
    "move_aside",
    "name_of",
    "read_json",
    "verify",
    "write_json",
    "written_whole",
]

MANIFEST = "manifest.json"  # sha256 of every other file of the folder
DAY = 24 * 3600.0
Loaded = TypeVar("Loaded")


class DamagedRunError(ValueError):
    """A run folder whose files are not those that were written."""


def name_of(*parts: object) -> str:
    """A folder's name: sixteen hex digits that change when one of `parts` (JSON values) does."""
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A folder to write into, beside `target`; renamed to it at the end of the ``with`` statement.

    A folder of the target's name is always whole: what fails leaves nothing behind. Of two
    processes that write the same folder, the first one's stays.

    Yields
    ------
    Path
        The folder to fill. A manifest of its files' hashes is added.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    prefix = f"{target.name}.{os.getpid()}.{HOST}."
    part = Path(tempfile.mkdtemp(prefix=prefix, suffix=".part", dir=target.parent))
    try:
        yield part
        files = sorted(path for path in part.rglob("*") if path.is_file())
        digests = {path.relative_to(part).as_posix(): _sha256(path) for path in files}
        write_json(part / MANIFEST, digests)
        os.chmod(part, 0o755)  # mkdtemp makes it private
        part.rename(target)
    except OSError:
        if not target.exists():  # another process may have finished the same folder first
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def load_whole(target: Path, load: Callable[[Path], Loaded]) -> Loaded | None:
    """What `load` reads from `target`, or None: nothing is there, or what was is now moved aside.

    Parameters
    ----------
    target : Path
    load : callable
        Reads a folder, and raises `DamagedRunError` when it is not whole; then a warning says so
        and the folder becomes ``<name>.damaged-<n>``.
    """
    if not target.exists():
        return None
    try:
        return load(target)
    except DamagedRunError as damage:
        try:
            aside = move_aside(target)
        except FileNotFoundError:  # another process has done so
            return None
        warnings.warn(f"{damage} Moved to {aside.name}, running again.", stacklevel=3)
        return None


def verify(folder: Path, *, unread: str | None = None) -> None:
    """Compare a folder's files with its manifest.

    Parameters
    ----------
    folder : Path
    unread : str, optional
        Of this folder in it, files have to be there; what is in them is looked at another time.

    Raises
    ------
    DamagedRunError
        If a file is missing, or not what was written.
    """
    try:
        manifest = read_json(folder / MANIFEST)
        wrong = []
        for name, digest in manifest.items():
            if unread is not None and name.startswith(f"{unread}/"):
                (folder / name).stat()
            elif _sha256(folder / name) != digest:
                wrong.append(name)
    except (OSError, ValueError) as error:
        raise DamagedRunError(f"run {folder.name} is damaged: {error}.") from error
    if wrong:
        raise DamagedRunError(f"run {folder.name} is damaged: {', '.join(wrong)} changed on disk.")


def move_aside(target: Path) -> Path:
    """Rename a damaged folder to ``<id>.damaged-<n>``, and say to what."""
    n = 1
    while (aside := target.with_name(f"{target.name}.damaged-{n}")).exists():
        n += 1
    return target.rename(aside)


def read_json(path: Path):
    """The value that `write_json` wrote.

    Raises
    ------
    ValueError
        If the file holds something else; the message names it.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: no JSON ({error})") from error


def write_json(path: Path, value: object) -> None:
    """Write a value of plain types, to be read by people too."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def _sweep(folder: Path) -> None:
    """Remove what a process that was killed while saving left behind."""
    for part in folder.glob("*.part"):
        if _is_abandoned(part):
            shutil.rmtree(part, ignore_errors=True)


def _is_abandoned(part: Path) -> bool:
    """Its process is gone; of another host's process, nothing is known: it gets a day.

    What has not the name of a part, ``<id>.<pid>.<host>.<random>.part``, is somebody's own.
    """
    named = re.fullmatch(r"[^.]+\.(\d+)\.([^.]+)\.[^.]+\.part", part.name)
    if named is None:
        return False
    if named[2] == HOST:
        return not psutil.pid_exists(int(named[1]))
    try:
        return time.time() - part.stat().st_mtime > DAY
    except FileNotFoundError:  # finished meanwhile
        return False


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
