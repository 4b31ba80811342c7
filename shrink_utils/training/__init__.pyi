"""Fine-tuning with the regularizer as a part of the loss: the list of `__init__.py`."""

from .arms import (
    ARMS as ARMS,
    arm_options as arm_options,
)
from .config import (
    RunConfig as RunConfig,
    native_precision as native_precision,
    used_precision as used_precision,
)
from .entailment import (
    EntailmentTraining as EntailmentTraining,
    common_start as common_start,
    entailment_model as entailment_model,
    pair_batches as pair_batches,
)
from .finetuning import (
    FinetuneResult as FinetuneResult,
    finetune as finetune,
    task_metrics as task_metrics,
)
from .penalties import make_regularizer as make_regularizer
from .pretraining import (
    ScratchConfig as ScratchConfig,
    ScratchResult as ScratchResult,
    examples as examples,
    held_out_batches as held_out_batches,
    held_out_loss as held_out_loss,
    new_model as new_model,
    pretrain as pretrain,
    scratch_tokenizer as scratch_tokenizer,
)
from .trainer import (
    BarcodeTrainer as BarcodeTrainer,
    StepRecorder as StepRecorder,
)
