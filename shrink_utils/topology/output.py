"""What the regularizer hands back: a differentiable loss, and what is logged of each class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology._host import to_device
from shrink_utils.topology.edges import LengthsValue


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
    """One class's part of the loss, what is logged of it, and how it changes with edges' lengths.

    Attributes
    ----------
    loss, entropy : float
    n_features, n_bars : int
    edges : ndarray of int64, shape (m, 2)
        Rows of the batch.
    lengths : ndarray of float64, shape (m,)
        Measured between the rows as `coordinates` gives them.
    slopes : ndarray of float64, shape (m,)
        Of the loss with respect to the lengths in the embeddings.
    """

    loss: float
    entropy: float
    n_features: int
    n_bars: int
    edges: np.ndarray
    lengths: np.ndarray
    slopes: np.ndarray


def regularizer_output(
    embeddings: Tensor, points: np.ndarray, classes: np.ndarray, terms: list[ClassTerm]
) -> RegularizerOutput:
    """Sum of the classes' terms as a differentiable scalar, and the entries per class.

    Parameters
    ----------
    embeddings : Tensor, shape (b, d)
    points : ndarray, shape (b, d)
        Their `coordinates`.
    classes : ndarray, shape (k,)
    terms : list of k ClassTerm
    """
    dtype = np.float64 if embeddings.dtype == torch.float64 else np.float32
    loss = np.array(sum(term.loss for term in terms), dtype)
    return RegularizerOutput(
        loss=LengthsValue.apply(embeddings, loss, points, *_joined(terms)),
        classes=to_device(classes, embeddings),
        entropy=to_device(np.array([term.entropy for term in terms], dtype), embeddings),
        n_features=to_device(np.array([t.n_features for t in terms], np.int64), embeddings),
        n_bars=to_device(np.array([t.n_bars for t in terms], np.int64), embeddings),
    )


def _joined(terms: list[ClassTerm]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges, lengths and slopes of all terms."""
    if len(terms) == 1:
        return terms[0].edges, terms[0].lengths, terms[0].slopes
    none = np.empty(0)
    return (
        np.concatenate([np.empty((0, 2), np.int64), *(term.edges for term in terms)]),
        np.concatenate([none, *(term.lengths for term in terms)]),
        np.concatenate([none, *(term.slopes for term in terms)]),
    )
