"""The loss that is allocated: a model's own, on the same batches every time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

__all__ = ["FixedSetLoss"]

IGNORED = -100  # transformers' label of what is not predicted


class FixedSetLoss:
    """Mean loss over a fixed set, for `loss_change` and its recorder.

    Parameters
    ----------
    batches : sequence of dict
        Inputs of a transformers model with their ``labels``, masks drawn beforehand. Each batch
        counts by the number of its predictions.

    Raises
    ------
    ValueError
        No batches, or one without labels; and, when the loss is taken, nothing to predict in any.

    Notes
    -----
    It is the *task's* loss as the model computes it: a regularizer that a trainer adds is not in
    it, so that allocations of runs with and without one are of the same function.
    """

    def __init__(self, batches: Sequence[Mapping[str, Tensor]]) -> None:
        if not batches or not all("labels" in batch for batch in batches):
            raise ValueError(f"batches: {len(batches)}, expected one or more, each with labels")
        self.batches = [dict(batch) for batch in batches]

    def __call__(self, model: nn.Module) -> Iterator[Tensor]:
        """The loss in parts, one a batch that has something to predict: the others have no mean."""
        device = next(model.parameters()).device
        # A causal LM predicts every token but the first.
        first = int(type(model).__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
        predicted = [int((batch["labels"][..., first:] != IGNORED).sum()) for batch in self.batches]
        if not any(predicted):
            raise ValueError(f"batches: no token to predict in any of {len(self.batches)}")
        for batch, count in zip(self.batches, predicted, strict=True):
            if count:
                loss = model(**{key: x.to(device) for key, x in batch.items()}).loss
                yield count / sum(predicted) * loss

    def __len__(self) -> int:
        """Number of examples."""
        return sum(len(batch["labels"]) for batch in self.batches)

    @property
    def token_ids(self) -> Tensor:
        """The word-pieces that occur in the set, as inputs or as labels, sorted."""
        ids = [
            x.flatten()
            for batch in self.batches
            for key, x in batch.items()
            if key.endswith("input_ids") or (key == "labels" and x.ndim == 2)  # (n, tokens)
        ]
        found = torch.cat(ids).unique()
        return found[found >= 0]
