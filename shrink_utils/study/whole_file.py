"""A file that is written whole or not at all."""

from __future__ import annotations

import glob
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

__all__ = ["HOST", "written"]

HOST = socket.gethostname().replace(".", "-")


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """A file to write, beside `path`; it takes the path's place at the end of the ``with``.

    A file of that name is always whole: what fails leaves the old one, and nothing else.

    Parameters
    ----------
    path : Path
        Its folder is made where it is missing.

    Yields
    ------
    Path
        ``<name>.<pid>.<host>.part``: no pattern of results such as ``*.csv`` takes it for one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    part = path.with_name(f"{path.name}.{os.getpid()}.{HOST}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove what processes of this host left behind that were killed while they wrote `path`."""
    for part in path.parent.glob(f"{glob.escape(path.name)}.*.{HOST}.part"):
        pid = part.name.split(".")[-3]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            part.unlink(missing_ok=True)
