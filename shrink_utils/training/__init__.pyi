from .arms import ARMS, arm_options
from .config import RunConfig, native_precision, used_precision
from .entailment import EntailmentTraining, common_start, entailment_model, pair_batches
from .finetune import FinetuneResult, finetune, task_metrics
from .penalties import make_regularizer
from .scratch import (
    ScratchConfig,
    ScratchResult,
    examples,
    held_out_batches,
    held_out_loss,
    new_model,
    pretrain,
    scratch_tokenizer,
)
from .trainer import BarcodeTrainer, StepRecorder

__all__ = [
    "ARMS",
    "BarcodeTrainer",
    "EntailmentTraining",
    "FinetuneResult",
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
    "native_precision",
    "new_model",
    "pair_batches",
    "pretrain",
    "scratch_tokenizer",
    "task_metrics",
    "used_precision",
]
