"""From token vectors to one vector per text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a profile asks for the names alone
    from torch import Tensor

POOLINGS = ("cls", "mean", "first_last", "last")


def pool(states: Sequence[Tensor], attention_mask: Tensor, *, pooling: str = "cls") -> Tensor:
    """One vector per text from the hidden states of an encoder; differentiable.

    Parameters
    ----------
    states
        Hidden states from the embedding layer to the last, each (b, t, d).
    attention_mask
        (b, t); 1 at tokens, 0 at padding.
    pooling
        ``"cls"``: the first token's vector in the last layer. ``"mean"``: the mean of the last
        layer over the tokens, [CLS] and [SEP] included. ``"first_last"``: the same mean of the
        average of the first and the last of ``states``. ``"last"``: the last token's vector in the
        last layer, for decoders (GPT-2, Gemma): there a token sees only those before it, so the
        first one has the same vector in every text, and the last one alone has read all.

    Returns
    -------
    Tensor
        (b, d).

    Raises
    ------
    ValueError
        Unknown ``pooling``, no states, shapes that do not match, or a text without a token, which
        has no mean. (``"cls"`` and ``"last"`` leave that to `hidden_states`: looking would wait for
        the GPU.)

    References
    ----------
    Reimers & Gurevych (2019), *Sentence-BERT* (cls, mean); Li et al. (2020), *On the Sentence
    Embeddings from Pre-trained Language Models* (first_last).
    """
    if pooling not in POOLINGS:
        raise ValueError(f"pooling: {pooling!r}, expected one of {', '.join(POOLINGS)}")
    if len(states) == 0:
        raise ValueError("states: empty, expected the hidden states of at least one layer")
    if states[-1].shape[:2] != attention_mask.shape:
        raise ValueError(
            f"attention_mask: shape {tuple(attention_mask.shape)} does not match states of shape "
            f"{tuple(states[-1].shape)}"
        )
    if pooling == "cls":
        return states[-1][:, 0]
    if pooling == "last":
        return _last(states[-1], attention_mask)
    return _mean([states[-1]] if pooling == "mean" else [states[0], states[-1]], attention_mask)


def _last(layer: Tensor, attention_mask: Tensor) -> Tensor:
    """The vector of each text's last token, wherever padding stands, (b, d)."""
    import torch

    after = attention_mask.flip(1).argmax(dim=1)  # (b,): tokens of padding behind it
    rows = torch.arange(len(layer), device=layer.device)
    return layer[rows, layer.shape[1] - 1 - after]


def _mean(layers: list[Tensor], attention_mask: Tensor) -> Tensor:
    """The mean over the tokens of the average of one layer or two, (b, d)."""
    import torch

    has_token = attention_mask.any(dim=1)
    if not has_token.all():
        row = has_token.tolist().index(False)
        raise ValueError(f"attention_mask: row {row} has no token, so no mean; leave it out")
    dtype = torch.promote_types(layers[0].dtype, layers[-1].dtype)
    if dtype in (torch.float16, torch.bfloat16):  # sums over tokens would overflow or lose digits
        layers = [layer.float() for layer in layers]
    tokens = layers[0] if len(layers) == 1 else (layers[0] + layers[1]) / 2  # (b, t, d)
    mask = attention_mask.to(tokens.dtype).unsqueeze(-1)  # (b, t, 1)
    return ((tokens * mask).sum(dim=1) / mask.sum(dim=1)).to(dtype)
