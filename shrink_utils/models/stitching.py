"""Stitched models: the lower layers of one, a map, the upper layers of another.

g_{>m} ∘ φ ∘ f_{≤l} with f the *front* and g the *back*. What a stitch costs, its penalty, is the
stitched model's loss less that of g by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor
from transformers import PreTrainedModel

from shrink_utils.models.evaluation import evaluating
from shrink_utils.models.stitching_halves import (
    Batch,
    depth_of,
    lower_states,
    summed_loss,
    upper_logits,
)

__all__ = [
    "Map",
    "Reading",
    "Stitched",
    "identity",
    "identity_stitches",
    "read_layers",
    "stitched",
    "stitched_logits",
]

Map = Callable[[Tensor], Tensor]  # states (b, t, d_front) → (b, t, d_back)


@dataclass(frozen=True)
class Reading:
    """A model, and what each of its layers makes of fixed batches: computed once, stitched often.

    Attributes
    ----------
    model : PreTrainedModel
    batches : list of dict
        What it read, with labels.
    states : list of tuple of Tensor
        For each batch, each layer's (b, t, d), from the embeddings (0) to the last.
    loss : float
        The model's own mean loss over all predictions of the batches, without dropout.
    """

    model: PreTrainedModel
    batches: list[Batch]
    states: list[tuple[Tensor, ...]]
    loss: float

    @property
    def depth(self) -> int:
        """Number of the last layer."""
        return depth_of(self.model)


class Stitched(NamedTuple):
    """What one stitched model loses on fixed batches.

    Attributes
    ----------
    front_layer, back_layer : int
        l and m.
    loss : float
        Mean over all predictions.
    penalty : float
        `loss` less what the back loses by itself on the same batches.
    """

    front_layer: int
    back_layer: int
    loss: float
    penalty: float


def identity(states: Tensor) -> Tensor:
    """The map that changes nothing."""
    return states


def read_layers(model: PreTrainedModel, batches: Sequence[Batch]) -> Reading:
    """Run a model once over fixed batches and keep the states of all its layers.

    Parameters
    ----------
    model
        `BertForMaskedLM`, `BertLMHeadModel` (as a decoder) or `BertForSequenceClassification`;
        left as it is.
    batches
        Dicts with ``input_ids``, ``attention_mask``, ``labels`` and, for pairs of texts,
        ``token_type_ids``.

    Raises
    ------
    ValueError
        No batches, or a model of another kind.
    """
    if not len(batches):
        raise ValueError("batches: none, expected at least one")
    states = [lower_states(model, batch) for batch in batches]
    reading = Reading(model, list(batches), states, loss=float("nan"))
    top = reading.depth
    return replace(reading, loss=_mean_loss(reading, reading, identity, top, top))


def stitched(
    front: Reading, back: Reading, phi: Map = identity, *, front_layer: int, back_layer: int
) -> Stitched:
    """Loss and penalty of g_{>m} ∘ φ ∘ f_{≤l}.

    Parameters
    ----------
    front, back : Reading
        Of the same batches. Neither model is changed in any way.
    phi : callable
        Takes states (b, t, d) of the front to states of the back.
    front_layer, back_layer : int
        l and m; 0 is the embedding layer. l = m = 0 takes the front's embeddings and nothing else
        of it, l = m = depth takes everything but the head.

    Raises
    ------
    ValueError
        A layer that a model has not, other texts, or a map to another width than the back's.

    Notes
    -----
    By identity, a model stitched to itself at equal layers repeats its own arithmetic: the penalty
    is exactly 0.

    References
    ----------
    Lenc & Vedaldi 2015, *Understanding image representations by measuring their equivariance and
    equivalence*; Bansal, Nakkiran & Barak 2021, *Revisiting model stitching to compare neural
    representations*; on language models, Brown et al. 2023, section 3.
    """
    _check(front, back, front_layer, back_layer)
    loss = _mean_loss(front, back, phi, front_layer, back_layer)
    return Stitched(front_layer, back_layer, loss, loss - back.loss)


def stitched_logits(
    front: Reading, back: Reading, phi: Map = identity, *, front_layer: int, back_layer: int
) -> Tensor:
    """What a stitched model predicts, in the order of the batches.

    Parameters
    ----------
    front, back, phi, front_layer, back_layer
        As for `stitched`.

    Returns
    -------
    Tensor, shape (predictions, classes)
        A row a text for a classifier; a row a predicted token for a language model, which takes
        memory.
    """
    _check(front, back, front_layer, back_layer)
    return torch.cat([logits for logits, _ in _logits(front, back, phi, front_layer, back_layer)])


def identity_stitches(front: Reading, back: Reading) -> list[Stitched]:
    """Two models of one shape stitched by identity at each pair of equal layers, 0 to the depth.

    Raises
    ------
    ValueError
        Models of different depth, or as `stitched`.
    """
    if front.depth != back.depth:
        raise ValueError(f"back: {back.depth} layers against the front's {front.depth}")
    return [stitched(front, back, front_layer=m, back_layer=m) for m in range(back.depth + 1)]


def _mean_loss(front: Reading, back: Reading, phi: Map, front_layer: int, back_layer: int) -> float:
    total, count = 0.0, 0
    for logits, batch in _logits(front, back, phi, front_layer, back_layer):
        loss, n = summed_loss(logits, back.model, batch)
        total, count = total + float(loss), count + n
    return total / count


@torch.no_grad()
def _logits(
    front: Reading, back: Reading, phi: Map, front_layer: int, back_layer: int
) -> Iterator[tuple[Tensor, Batch]]:
    """Batch by batch, so that a large vocabulary does not fill the memory."""
    with evaluating(back.model):
        for batch, states in zip(back.batches, front.states, strict=True):
            mapped = phi(states[front_layer].to(back.model.device))
            yield upper_logits(back.model, mapped, back_layer, batch), batch


def _check(front: Reading, back: Reading, front_layer: int, back_layer: int) -> None:
    for name, reading, layer in (("front", front, front_layer), ("back", back, back_layer)):
        if not 0 <= layer <= reading.depth:
            raise ValueError(f"{name}_layer: {layer}, expected 0 to {reading.depth}")
    texts = [[batch["input_ids"] for batch in reading.batches] for reading in (front, back)]
    if len(texts[0]) != len(texts[1]) or not all(map(torch.equal, *texts)):
        raise ValueError(
            "back: it read other texts than the front; read both from the same batches"
        )
