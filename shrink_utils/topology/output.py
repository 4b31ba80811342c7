"""What the regularizer hands back: a differentiable loss, and what is logged of each class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology._host import to_device
from shrink_utils.topology.edges import KnownGradient


class RegularizerOutput(NamedTuple):
    """What one batch gives. Only `loss` carries a gradient; the rest is for logging.

    Attributes
    ----------
    loss : Tensor, shape ()
        To be added to the task loss.
    classes : Tensor, shape (k,)
        The class that each of the following entries is about, ascending.
    entropy : Tensor, shape (k,)
        Persistent entropy (nats) of the selected bars.
    n_features : Tensor of int64, shape (k,)
        Number of selected bars.
    n_bars : Tensor of int64, shape (k,)
        Number of bars.
    """

    loss: Tensor
    classes: Tensor
    entropy: Tensor
    n_features: Tensor
    n_bars: Tensor


class ClassTerm(NamedTuple):
    """One class's part of the loss, and what is logged of it."""

    loss: float
    entropy: float
    n_features: int
    n_bars: int


def regularizer_output(
    embeddings: Tensor, classes: np.ndarray, terms: list[ClassTerm], gradient: np.ndarray | None
) -> RegularizerOutput:
    """Sum of the classes' terms as a differentiable scalar, and the entries per class.

    Parameters
    ----------
    embeddings : Tensor, shape (b, d)
    classes : ndarray, shape (k,)
    terms : list of k ClassTerm
    gradient : ndarray, shape (b, d), or None
        Of the sum with respect to the embeddings; None if it is not wanted.
    """
    dtype = np.float64 if embeddings.dtype == torch.float64 else np.float32
    loss = np.array(sum(term.loss for term in terms), dtype)
    return RegularizerOutput(
        loss=(
            to_device(loss, embeddings)
            if gradient is None
            else KnownGradient.apply(embeddings, loss, gradient)
        ),
        classes=to_device(classes, embeddings),
        entropy=to_device(np.array([term.entropy for term in terms], dtype), embeddings),
        n_features=to_device(np.array([t.n_features for t in terms], np.int64), embeddings),
        n_bars=to_device(np.array([t.n_bars for t in terms], np.int64), embeddings),
    )
