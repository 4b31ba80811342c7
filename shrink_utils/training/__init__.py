"""Fine-tuning with the regularizer as a part of the loss."""

from shrink_utils.training.arguments import used_precision
from shrink_utils.training.arms import ARMS, arm_options
from shrink_utils.training.config import RunConfig
from shrink_utils.training.entailment import (
    EntailmentTraining,
    common_start,
    entailment_model,
    pair_batches,
)
from shrink_utils.training.finetune import FinetuneResult, finetune
from shrink_utils.training.metrics import task_metrics
from shrink_utils.training.recorder import StepRecorder
from shrink_utils.training.scratch import ScratchResult, held_out_loss, new_model, pretrain
from shrink_utils.training.scratch_config import ScratchConfig
from shrink_utils.training.scratch_data import examples, held_out_batches, scratch_tokenizer
from shrink_utils.training.trainer import RegularizedTrainer, make_regularizer

__all__ = [
    "ARMS",
    "EntailmentTraining",
    "FinetuneResult",
    "RegularizedTrainer",
    "RunConfig",
    "ScratchConfig",
    "ScratchResult",
    "StepRecorder",
    "arm_options",
    "common_start",
    "entailment_model",
    "examples",
    "finetune",
    "held_out_batches",
    "held_out_loss",
    "make_regularizer",
    "new_model",
    "pair_batches",
    "pretrain",
    "scratch_tokenizer",
    "task_metrics",
    "used_precision",
]
