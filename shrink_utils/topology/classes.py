"""The classes of a batch: each has a point cloud of its own."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology._checks import check_matrix, not_finite
from shrink_utils.topology._host import to_host

__all__ = ["check_labels", "class_clouds", "rows_of_classes"]


def class_clouds(embeddings: Tensor, labels: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
    """Classes of a batch and the rows of each, as a regularizer that is not about bars sees them.

    Parameters
    ----------
    embeddings : Tensor, shape (b, d)
        One row a sample.
    labels : Tensor of int64, shape (b,), optional
        Class of each row. None makes one class, 0, of all rows (regression).

    Returns
    -------
    classes : Tensor, shape (k,)
        Ascending, on the device of `embeddings`.
    clouds : list of k Tensor, each of shape (rows of the class, d)
        Float64, in the graph of `embeddings`; on the CPU where the device has no float64.

    Raises
    ------
    ValueError
        If `embeddings` is not a real, finite matrix, `labels` has another length, or holds
        fractions: as `BarcodeRegularizer`.
    """
    embeddings = check_matrix(embeddings, name="embeddings")
    if not torch.isfinite(embeddings).all():
        raise ValueError(not_finite(to_host(embeddings.float())[0], "embeddings"))
    if labels is not None:
        labels = check_labels(labels, embeddings).to(embeddings.device)
    wide = (embeddings.cpu() if embeddings.device.type == "mps" else embeddings).double()
    if labels is None:
        return torch.zeros(1, dtype=torch.int64, device=embeddings.device), [wide]
    classes = labels.unique()  # sorted
    return classes, [wide[(labels == label).to(wide.device)] for label in classes]


def rows_of_classes(labels: np.ndarray | None, n: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Classes, ascending, and the numbers of the rows of each; one class, 0, without labels."""
    if labels is None:
        return np.zeros(1, np.int64), [np.arange(n)]
    classes = np.unique(labels)
    return classes, [np.flatnonzero(labels == label) for label in classes]


def check_labels(labels: Tensor, embeddings: Tensor) -> Tensor:
    """Return class labels as a tensor, or raise a ``ValueError``: a whole number a row."""
    labels = torch.as_tensor(labels)
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(
            f"labels must hold one class a row of embeddings; got shape {tuple(labels.shape)} "
            f"beside embeddings of shape {tuple(embeddings.shape)}"
        )
    if labels.is_floating_point() or labels.is_complex():
        raise ValueError(
            f"labels must be whole numbers, one a class; got {labels.dtype}. "
            "For regression pass labels=None: all rows are then one class"
        )
    return labels
