"""Fine-tuning with the regularizer as a part of the loss: the list of `__init__.py`."""

from .arguments import (
    EveryStep as EveryStep,
    fixed_batches as fixed_batches,
)
from .arms import (
    ARMS as ARMS,
    arm_options as arm_options,
)
from .config import (
    RunConfig as RunConfig,
    used_precision as used_precision,
)
from .dynamics import (
    AllocationRecorder as AllocationRecorder,
    Blocks as Blocks,
    FixedSetLoss as FixedSetLoss,
    LossChanges as LossChanges,
    loss_change as loss_change,
    shares as shares,
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
    make_regularizer as make_regularizer,
)
from .gather import (
    gathered_batch as gathered_batch,
    shared_draws as shared_draws,
)
from .penalties import (
    AverageCosine as AverageCosine,
    ClassPenalty as ClassPenalty,
    IsoScoreStar as IsoScoreStar,
    RankedBars as RankedBars,
    Regrouped as Regrouped,
    SIGReg as SIGReg,
    SpectralEntropy as SpectralEntropy,
)
from .pretraining import (
    ScratchConfig as ScratchConfig,
    ScratchResult as ScratchResult,
    collator as collator,
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
