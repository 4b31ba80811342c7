"""Run models without dropout, and leave them as they were."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["evaluating"]


@contextmanager
def evaluating(*models: nn.Module) -> Iterator[None]:
    """Without dropout inside; afterwards every submodule is in the mode it was in.

    Parameters
    ----------
    *models : Module
        What is evaluated within the ``with`` statement.
    """
    modes = [(module, module.training) for model in models for module in model.modules()]
    for model in models:
        model.eval()
    try:
        yield
    finally:
        for module, mode in modes:  # a frozen part may have had a mode of its own
            module.training = mode
