"""A folder of results that somebody else sends: look at its files before anything is read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from shrink_utils.study.runs.whole_folder import MANIFEST, read_json
from shrink_utils.study.verification.page import PAGE, result_files, run_folders
from shrink_utils.text.sources import sha256_of

__all__ = ["changed_files", "changed_in_run", "odd_files"]


def odd_files(folder: Path) -> Iterator[str]:
    """Everything that is neither a plain file nor a folder: links, pipes, devices.

    Results hold none of them, and a link could lead a reader to any file of this machine.
    """
    for place, folders, files in os.walk(folder, followlinks=False):
        for name in [*folders, *files]:
            path = Path(place) / name
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                kind = "a link" if stat.S_ISLNK(mode) else "no plain file"
                yield f"{path.relative_to(folder)} is {kind}"


def changed_files(folder: Path, page: dict) -> Iterator[str]:
    """How tables, measured tables and runs differ from what the provenance page lists."""
    found = {path.relative_to(folder).as_posix(): path for path in result_files(folder)}
    found |= {f"runs/{path.name}": path / MANIFEST for path in run_folders(folder)}
    listed = {str(name): str(digest) for name, digest in page["results"].items()}
    listed |= {f"runs/{name}": str(run[MANIFEST]) for name, run in page["runs"].items()}
    yield from (f"{name} is missing" for name in sorted(listed.keys() - found.keys()))
    yield from (f"{name} is not in {PAGE}" for name in sorted(found.keys() - listed.keys()))
    for name in sorted(found.keys() & listed.keys()):
        if not found[name].is_file() or sha256_of(found[name]) != listed[name]:
            yield f"{name} is not the one that {PAGE} was written for"


def changed_in_run(run: Path) -> Iterator[str]:
    """How a run's files differ from its manifest.

    Only files that are there are opened: the names in a manifest that was sent lead nowhere.
    """
    manifest = read_json(run / MANIFEST)
    files = {path.relative_to(run).as_posix(): path for path in run.rglob("*") if path.is_file()}
    del files[MANIFEST]
    yield from (f"{run.name}: {name} is missing" for name in sorted(manifest.keys() - files.keys()))
    yield from (f"{run.name}: {name} was added" for name in sorted(files.keys() - manifest.keys()))
    for name in sorted(files.keys() & manifest.keys()):
        if sha256_of(files[name]) != manifest[name]:
            yield f"{run.name}: {name} changed"
