"""transformers' Trainer with a regularizer as a part of the loss."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import Trainer

from shrink_utils.models import pool
from shrink_utils.topology import BarcodeRegularizer, RegularizerOutput
from shrink_utils.training.arms import arm_options
from shrink_utils.training.gather import whole_batch
from shrink_utils.training.penalties import (
    AverageCosine,
    ClassPenalty,
    IsoScoreStar,
    SpectralEntropy,
)
from shrink_utils.training.recorder import StepRecorder

__all__ = ["PENALTIES", "RegularizedTrainer", "make_regularizer"]

PENALTIES: dict[str, type[ClassPenalty]] = {
    "cosine": AverageCosine,
    "isoscore": IsoScoreStar,
    "spectral": SpectralEntropy,
}


def make_regularizer(arm: str, *, weight: float = 1.0) -> BarcodeRegularizer | ClassPenalty | None:
    """Regularizer of an arm of `ARMS`; None for the arm without one.

    Parameters
    ----------
    arm : str
    weight : float
        Factor of the summed class terms in the loss.
    """
    if (options := arm_options(arm)) is None:
        return None
    others = {name: value for name, value in options.items() if name != "penalty"}
    kind = PENALTIES[options["penalty"]] if "penalty" in options else BarcodeRegularizer
    return kind(**others, weight=weight)


class RegularizedTrainer(Trainer):
    """Trainer whose loss is the task's plus the regularizer's (STL, eq. of the total loss).

    Parameters
    ----------
    regularizer : BarcodeRegularizer, ClassPenalty or None
        None trains on the task alone.
    recorder : StepRecorder
        Told of every training batch.
    pooling : str
        Which vectors of the hidden states are regularized.
    per_class : bool
        One term a class; False (regression) takes the batch as one cloud.
    **kwargs
        As of `transformers.Trainer`.

    Attributes
    ----------
    evaluated : list of Tensor
        The embeddings (n, d) of the rows of each evaluation so far, pooled as for the regularizer:
        an evaluation passes over the rows anyway.
    """

    def __init__(
        self,
        *,
        regularizer: BarcodeRegularizer | ClassPenalty | None,
        recorder: StepRecorder,
        pooling: str,
        per_class: bool,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs, callbacks=[recorder])
        self.model_accepts_loss_kwargs = True  # so that the rows of a step are counted, and
        self.loss_is_scaled_for_ga = True  # `compute_loss` itself weighs the parts of a step
        self.regularizer = regularizer
        self.recorder = recorder
        self.pooling = pooling
        self.per_class = per_class
        self.evaluated: list[Tensor] = []
        self._watch = BarcodeRegularizer("prominent", weight=0.0)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Task loss, plus the regularizer's while training; evaluation sees the task alone.

        An evaluation's outputs are the logits and the embeddings. Where a step's rows are taken in
        parts (accumulation), the losses of the parts sum to the mean task loss of all rows plus the
        mean of the parts' regularizers.
        """
        outputs = model(**inputs, output_hidden_states=True)
        embeddings = pool(outputs.hidden_states, inputs["attention_mask"], pooling=self.pooling)
        if not model.training:
            seen = {"loss": outputs.loss, "logits": outputs.logits, "embeddings": embeddings}
            return (outputs.loss, seen) if return_outputs else outputs.loss
        labels = inputs["labels"] if self.per_class else None
        task_loss, embeddings, labels = whole_batch(outputs.loss, embeddings, labels)
        regularizer = self._regularize(embeddings, labels, task_loss)
        if num_items_in_batch is not None:  # this may be a part of a step
            task_loss = task_loss * (len(embeddings) / num_items_in_batch)
            regularizer = regularizer / self.current_gradient_accumulation_steps
        loss = task_loss + regularizer
        return (loss, outputs) if return_outputs else loss

    def evaluation_loop(self, *args, **kwargs):
        """As the Trainer's; the embeddings are kept in `evaluated`."""
        output = super().evaluation_loop(*args, **kwargs)
        if output.predictions is not None:  # without metrics, the Trainer keeps the loss alone
            self.evaluated.append(torch.from_numpy(output.predictions[1]))
        return output

    def _regularize(
        self, embeddings: Tensor, labels: Tensor | None, task_loss: Tensor
    ) -> Tensor | float:
        added = None if self.regularizer is None else self.regularizer(embeddings, labels)
        if isinstance(added, RegularizerOutput):
            bars = added
        else:  # nobody looks at the bars, but they are written down
            bars = self._watch(embeddings.detach(), labels)
        regularizer = (bars if added is None else added).loss  # without a regularizer: 0
        self.recorder.observe(task_loss, embeddings, labels, bars, regularizer=regularizer)
        return 0.0 if added is None else added.loss
