"""The scores by which a task is judged, from torchmetrics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor
from torchmetrics.functional import matthews_corrcoef, spearman_corrcoef
from torchmetrics.functional.classification import binary_f1_score, multiclass_accuracy
from transformers import EvalPrediction

from shrink_utils.text import TaskSpec

__all__ = ["task_metrics"]


def task_metrics(spec: TaskSpec) -> Callable[[EvalPrediction], dict[str, float]]:
    """Function from predictions to the task's scores, for transformers' `compute_metrics`.

    Parameters
    ----------
    spec : TaskSpec
        Names the metrics: ``accuracy``, ``f1`` (of class 1), ``matthews``, ``spearman``.
    """
    n = spec.n_labels
    functions = {
        "accuracy": lambda p, y: multiclass_accuracy(p, y, num_classes=n, average="micro"),
        "f1": lambda p, y: binary_f1_score(p, y),
        "matthews": lambda p, y: _matthews(p, y, n),
        "spearman": spearman_corrcoef,
    }

    def compute(prediction: EvalPrediction) -> dict[str, float]:
        given = prediction.predictions  # of several outputs the first is judged
        outputs = np.asarray(given[0] if isinstance(given, tuple) else given)  # (n, labels)
        predicted = outputs.squeeze(-1) if spec.is_regression else outputs.argmax(-1)  # (n,)
        p, y = torch.as_tensor(predicted), torch.as_tensor(prediction.label_ids)
        return {name: functions[name](p, y).item() for name in spec.metrics}

    return compute


def _matthews(p: Tensor, y: Tensor, n_classes: int) -> Tensor:
    """0 where either side has one class alone, as GLUE's scorer; torchmetrics rounds that 0/0."""
    if len(p.unique()) < 2 or len(y.unique()) < 2:
        return torch.tensor(0.0)
    return matthews_corrcoef(p, y, task="multiclass", num_classes=n_classes)
