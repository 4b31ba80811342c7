"""Two processes that want the same result: one computes it, the other waits and loads it."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

__all__ = ["alone"]


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Nobody else on this machine is within ``alone(target)``; who comes later waits.

    The lock is the operating system's: it goes with the process, however that ends. Its file is in
    the temporary folder, so that results hold nothing but results.

    Parameters
    ----------
    target : Path
        What is about to be computed, a file or a folder; it need not exist.
    """
    name = hashlib.sha256(str(target.resolve()).encode()).hexdigest()[:16]
    with FileLock(Path(tempfile.gettempdir()) / f"shrink-{name}.lock"):
        yield
