from .arguments import used_precision
from .arms import ARMS, arm_options
from .config import RunConfig
from .entailment import (
    EntailmentTraining,
    common_start,
    entailment_model,
    pair_batches,
)
from .finetune import FinetuneResult, finetune
from .metrics import task_metrics
from .recorder import StepRecorder
from .scratch import ScratchResult, held_out_loss, new_model, pretrain
from .scratch_config import ScratchConfig
from .scratch_data import examples, held_out_batches, scratch_tokenizer
from .trainer import RegularizedTrainer, make_regularizer

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
