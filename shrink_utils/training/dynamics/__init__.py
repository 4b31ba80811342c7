"""Where the loss goes while a model learns: loss change allocation."""

from shrink_utils.training.dynamics.allocation import (
    BATCH,
    AllocationRecorder,
    Allocator,
    LossChanges,
    loss_change,
)
from shrink_utils.training.dynamics.blocks import (
    COMPONENTS,
    TRUNK,
    Blocks,
    allocated,
    block_steps,
    hurting,
    shares,
)
from shrink_utils.training.dynamics.gradients import FixedSetLoss, Loss
from shrink_utils.training.dynamics.quadrature import RULES

__all__ = [
    "BATCH",
    "COMPONENTS",
    "RULES",
    "TRUNK",
    "AllocationRecorder",
    "Allocator",
    "Blocks",
    "FixedSetLoss",
    "Loss",
    "LossChanges",
    "allocated",
    "block_steps",
    "hurting",
    "loss_change",
    "shares",
]
