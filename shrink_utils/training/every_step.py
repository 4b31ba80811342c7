"""Tell somebody outside of every step of a Trainer."""

from __future__ import annotations

from collections.abc import Callable

from transformers import TrainerCallback

__all__ = ["EveryStep"]


class EveryStep(TrainerCallback):
    """Call `on_step`, without arguments, after every step: progress bars."""

    def __init__(self, on_step: Callable[[], object]) -> None:
        self._on_step = on_step

    def on_step_end(self, args, state, control, **kwargs) -> None:
        """A step is finished."""
        self._on_step()
