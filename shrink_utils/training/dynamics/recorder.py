"""Loss change allocation of any run of transformers' Trainer, as a callback."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor
from transformers import TrainerCallback

from shrink_utils.training.dynamics.allocator import Allocator
from shrink_utils.training.dynamics.changes import LossChanges
from shrink_utils.training.dynamics.gradients import Loss

__all__ = ["AllocationRecorder"]


class AllocationRecorder(TrainerCallback):
    """Allocate the loss of a fixed set at every optimizer step of a Trainer.

    Whatever the Trainer minimizes (a regularizer may be in it), what is allocated is `loss`.

    Parameters
    ----------
    loss : callable
        Deterministic, such as a `FixedSetLoss`.
    rules, token_ids, tolerance, max_pieces, batch_gradient
        As in `Allocator`.
    on_step : callable, optional
        Called without arguments after every recorded step: progress bars.

    Notes
    -----
    Under the Trainer's mixed precision the model's own forward is in it too, and the closure error
    says what that costs.
    """

    def __init__(
        self,
        loss: Loss,
        *,
        rules: Sequence[str] = ("trapezoid",),
        token_ids: Tensor | None = None,
        tolerance: float = 1e-3,
        max_pieces: int = 32,
        batch_gradient: bool = False,
        on_step: Callable[[], None] | None = None,
    ) -> None:
        self._loss, self._on_step = loss, on_step
        self._options = {
            "rules": rules,
            "token_ids": token_ids,
            "tolerance": tolerance,
            "max_pieces": max_pieces,
            "batch_gradient": batch_gradient,
        }
        self._allocator: Allocator | None = None

    def on_train_begin(self, args, state, control, model=None, **kwargs) -> None:
        """Begin a new record."""
        self._allocator = Allocator(model, self._loss, **self._options)

    def on_pre_optimizer_step(self, args, state, control, **kwargs) -> None:
        """Note where the step begins."""
        self._allocator.start()

    def on_optimizer_step(self, args, state, control, **kwargs) -> None:
        """Allocate the step, before the Trainer clears the gradients."""
        self._allocator.finish()
        if self._on_step is not None:
            self._on_step()

    def changes(self) -> LossChanges:
        """The record of the training that began last.

        Raises
        ------
        ValueError
            Nothing has been trained with this callback.
        """
        if self._allocator is None:
            raise ValueError("nothing has been trained with this callback yet")
        return self._allocator.changes()
