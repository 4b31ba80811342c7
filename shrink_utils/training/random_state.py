"""The global random generators: a training seeds them, and hands them back as they were."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

__all__ = ["random_state_kept"]


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Python's, NumPy's and torch's generators are afterwards in the state that they were in."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
