"""transformers' Trainer with the barcode regularizer as a part of the loss."""

from __future__ import annotations

from torch import Tensor
from transformers import Trainer

from shrink_utils.models import pool
from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training.arms import arm_options
from shrink_utils.training.recorder import StepRecorder

__all__ = ["RegularizedTrainer", "make_regularizer"]


def make_regularizer(arm: str, *, weight: float = 1.0) -> BarcodeRegularizer | None:
    """Regularizer of an arm of `ARMS`; None for the arm without one.

    Parameters
    ----------
    arm : str
    weight : float
        Factor of the summed class entropies in the loss.
    """
    options = arm_options(arm)
    return None if options is None else BarcodeRegularizer(**options, weight=weight)


class RegularizedTrainer(Trainer):
    """Trainer whose loss is the task's plus the regularizer's (STL, eq. of the total loss).

    Parameters
    ----------
    regularizer : BarcodeRegularizer or None
        None trains on the task alone.
    recorder : StepRecorder
        Told of every training batch.
    pooling : str
        Which vectors of the hidden states are regularized.
    per_class : bool
        One barcode a class; False (regression) takes the batch as one cloud.
    **kwargs
        As of `transformers.Trainer`.
    """

    def __init__(
        self,
        *,
        regularizer: BarcodeRegularizer | None,
        recorder: StepRecorder,
        pooling: str,
        per_class: bool,
        **kwargs,
    ) -> None:
        super().__init__(**kwargs, callbacks=[recorder])
        self.regularizer = regularizer
        self.recorder = recorder
        self.pooling = pooling
        self.per_class = per_class
        self._watch = BarcodeRegularizer("prominent", weight=0.0)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Task loss, plus −weight · Σ entropies while training; evaluation sees the task alone."""
        outputs = model(**inputs, output_hidden_states=model.training)
        if not model.training:
            return (outputs.loss, outputs) if return_outputs else outputs.loss
        embeddings = pool(outputs.hidden_states, inputs["attention_mask"], pooling=self.pooling)
        loss = outputs.loss + self._regularize(
            embeddings, inputs["labels"] if self.per_class else None, outputs.loss
        )
        return (loss, outputs) if return_outputs else loss

    def _regularize(
        self, embeddings: Tensor, labels: Tensor | None, task_loss: Tensor
    ) -> Tensor | float:
        if self.regularizer is None:
            bars = self._watch(embeddings.detach(), labels)
            self.recorder.observe(task_loss, embeddings, labels, bars)
            return 0.0
        bars = self.regularizer(embeddings, labels)
        self.recorder.observe(task_loss, embeddings, labels, bars)
        return bars.loss
