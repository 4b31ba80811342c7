"""numba where it is installed.

A loop that numba compiles is compiled once for each dtype and kept on disk beside its module (in
the user's cache if that folder is not writable), so that a process pays for loading only. It runs
in one thread and releases the interpreter's lock. Without numba the same function is plain Python:
fine for what is written with NumPy's own operations; what is written element by element has a
vectorized twin, and the caller chooses by `COMPILED`.

numba looks at the time stamp of the module that holds a function, not of those it calls into: let
compiled functions call only compiled functions of their own module.
"""

from __future__ import annotations

from collections.abc import Callable

try:
    import numba
except ImportError:  # an optional dependency: `pip install shrink-utils[fast]`
    numba = None

COMPILED = numba is not None


def compiled(function: Callable) -> Callable:
    """Compile `function`, or leave it as it is without numba.

    Sums may be taken in any order, which lets the processor add several numbers at once; nothing
    else of IEEE arithmetic is given up.
    """
    if numba is None:
        return function
    options = {"nogil": True, "fastmath": {"reassoc", "contract"}}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to keep it
        return numba.njit(**options)(function)
