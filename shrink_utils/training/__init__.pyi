"""Fine-tuning with the regularizer as a part of the loss: the list of `__init__.py`."""

from .dynamics import (
    AllocationRecorder as AllocationRecorder,
    Blocks as Blocks,
    FixedSetLoss as FixedSetLoss,
    loss_change as loss_change,
    shares as shares,
)
from .gather import (
    gathered_batch as gathered_batch,
    shared_draws as shared_draws,
)
from .penalties import (
    AverageCosine as AverageCosine,
    ClassPenalty as ClassPenalty,
    IsoScoreStar as IsoScoreStar,
    SIGReg as SIGReg,
    SpectralEntropy as SpectralEntropy,
)
from .trainer import (
    BarcodeTrainer as BarcodeTrainer,
    StepRecorder as StepRecorder,
)
