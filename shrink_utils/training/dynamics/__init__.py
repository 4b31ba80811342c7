"""Where the loss goes while a model learns: loss change allocation."""

from shrink_utils.training.dynamics.allocation import (
    RULES,
    AllocationRecorder,
    LossChanges,
    loss_change,
)
from shrink_utils.training.dynamics.blocks import TRUNK, Blocks, shares
from shrink_utils.training.dynamics.gradients import FixedSetLoss

__all__ = [
    "RULES",
    "TRUNK",
    "AllocationRecorder",
    "Blocks",
    "FixedSetLoss",
    "LossChanges",
    "loss_change",
    "shares",
]
