"""Fine-tuning with the regularizer as a part of the loss."""

from shrink_utils.training.arms import ARMS, arm_options
from shrink_utils.training.config import RunConfig
from shrink_utils.training.finetune import FinetuneResult, finetune
from shrink_utils.training.metrics import task_metrics
from shrink_utils.training.recorder import StepRecorder
from shrink_utils.training.trainer import RegularizedTrainer, make_regularizer

__all__ = [
    "ARMS",
    "FinetuneResult",
    "RegularizedTrainer",
    "RunConfig",
    "StepRecorder",
    "arm_options",
    "finetune",
    "make_regularizer",
    "task_metrics",
]
