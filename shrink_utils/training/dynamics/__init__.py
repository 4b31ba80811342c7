"""Where the loss goes while a model learns: loss change allocation."""

from shrink_utils.training.dynamics.allocation import (
    BATCH,
    RULES,
    AllocationRecorder,
    Allocator,
    LossChanges,
    loss_change,
)
from shrink_utils.training.dynamics.blocks import (
    TRUNK,
    Blocks,
    allocated,
    hurting,
    shares,
)
from shrink_utils.training.dynamics.gradients import FixedSetLoss, Loss

__all__ = [
    "BATCH",
    "RULES",
    "TRUNK",
    "AllocationRecorder",
    "Allocator",
    "Blocks",
    "FixedSetLoss",
    "Loss",
    "LossChanges",
    "allocated",
    "hurting",
    "loss_change",
    "shares",
]
