"""Where the loss goes while a model learns: loss change allocation."""

from shrink_utils.training.dynamics.allocation import loss_change
from shrink_utils.training.dynamics.allocator import BATCH, Allocator
from shrink_utils.training.dynamics.blocks import COMPONENTS, TRUNK, Blocks
from shrink_utils.training.dynamics.changes import LossChanges
from shrink_utils.training.dynamics.fixed_set import FixedSetLoss
from shrink_utils.training.dynamics.gradients import Loss
from shrink_utils.training.dynamics.grouping import allocated, block_steps, hurting, shares
from shrink_utils.training.dynamics.quadrature import RULES
from shrink_utils.training.dynamics.recorder import AllocationRecorder

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
