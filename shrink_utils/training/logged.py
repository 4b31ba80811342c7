"""transformers' Trainer with the regularizer, whose terms go to every tracker that it knows."""

from contextlib import suppress

import torch
from torch import Tensor
from transformers import Trainer

from shrink_utils.geometry import anisotropy
from shrink_utils.topology import BarcodeRegularizer, RegularizerOutput
from shrink_utils.training.gather import whole_batch


class BarcodeTrainer(Trainer):
    """A Trainer that adds the barcode regularizer while it trains, and logs the terms of the loss.

    An evaluation sees the task alone. `RegularizedTrainer` is the study's own, which keeps a row
    per step instead.

    Parameters
    ----------
    regularizer : BarcodeRegularizer
    *args, **kwargs
        As of `transformers.Trainer`. Whole-number labels are classes, each with a barcode of its
        own; a regression takes the batch as one cloud.

    Notes
    -----
    Through `Trainer.log`, as means over the steps since the last entry: ``task_loss``; ``reward``,
    which is added to it (negative, in nats times the weight); ``entropy``, the sum over the classes
    of that of the selected bars; ``bars``, how many there are. And ``first_centred_score``, the
    share of the variance along the first direction of the last batch.
    """

    def __init__(self, *args, regularizer: BarcodeRegularizer, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.regularizer = regularizer
        self.model_accepts_loss_kwargs = False  # the Trainer then divides by the accumulated parts
        self._terms: list[Tensor] = []  # (4,) per batch since the last entry
        self._batch = torch.empty(0, 0)

    def embeddings_of(self, outputs, inputs) -> Tensor:
        """The vectors that are regularized, (b, d): the first token's in the last layer."""
        return outputs.hidden_states[-1][:, 0]

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Task loss; while training, plus the regularizer of the whole batch."""
        outputs = model(**inputs, output_hidden_states=True)
        loss = outputs.loss
        if model.training:
            labels = inputs["labels"]
            classes = None if labels.is_floating_point() else labels
            rows = self.embeddings_of(outputs, inputs)
            task_loss, rows, classes = whole_batch(loss, rows, classes)
            added = self.regularizer(rows, classes)
            loss = task_loss + added.loss
            self._note(task_loss, added, rows)
        outputs.hidden_states = None  # an evaluation would gather them
        return (loss, outputs) if return_outputs else loss

    def log(self, logs: dict[str, float], *args, **kwargs) -> None:
        """As the Trainer's; an entry of training steps holds the terms as well."""
        if "loss" in logs and self._terms:
            means = torch.stack(self._terms).mean(dim=0).tolist()
            logs |= dict(zip(("task_loss", "reward", "entropy", "bars"), means, strict=True))
            with suppress(ValueError):  # a batch without spread has no score
                logs["first_centred_score"] = float(anisotropy(self._batch, k=1, center=True)[0])
            self._terms = []
        super().log(logs, *args, **kwargs)

    @torch.no_grad()
    def _note(self, task_loss: Tensor, added: RegularizerOutput, rows: Tensor) -> None:
        """Keep a batch's terms on its device: nothing waits for a GPU between two entries."""
        terms = (task_loss, added.loss, added.entropy.sum(), added.n_bars.sum())
        self._terms.append(torch.stack([term.detach().float() for term in terms]))
        self._batch = rows.detach()
