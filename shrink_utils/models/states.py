"""Read an encoder's layers over a list of texts: one vector a text, or one a word-piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor

from shrink_utils.models.batches import StateBatch, chosen_layers, state_batches
from shrink_utils.models.encoders import Encoder
from shrink_utils.models.pooling import pool

__all__ = ["TokenStates", "hidden_states", "token_states"]


@dataclass(frozen=True)
class TokenStates:
    """Word-piece vectors of many sentences, in the order of the sentences.

    Attributes
    ----------
    vectors
        (n_layers_selected, n_tokens, d), float32.
    sentence
        (n_tokens,), long: the index of the sentence that a token stands in.
    token
        The n_tokens word-pieces.
    """

    vectors: Tensor
    sentence: Tensor
    token: list[str]


def hidden_states(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    text_pairs: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    pooling: str = "cls",
    batch_size: int = 64,
    max_length: int = 128,
) -> Tensor:
    """One vector a text from each layer.

    Parameters
    ----------
    encoder
        From `load_encoder`. Run in evaluation mode, on the device where it is.
    texts, text_pairs
        n texts, and n second texts when the encoder reads pairs.
    layers
        Indices out of ``encoder.layers``, negative ones from the end; all layers when None.
    pooling
        As in `pool`, at every layer: ``"first_last"`` at layer l averages the layers 0 and l.
    batch_size
        Texts in a forward pass. Texts of like length go together, which changes the result only by
        rounding.
    max_length
        Longest input in tokens, [CLS] and [SEP] included; longer ones are cut.

    Returns
    -------
    Tensor
        (n_layers_selected, n, d), float32 on the CPU; layer 0 is the embedding layer.

    Raises
    ------
    ValueError
        No texts, what is not a text among them, a text without a token (an empty one, where the
        tokenizer adds no special tokens), pairs of another number, a layer the encoder has not, an
        unknown ``pooling``, or ``max_length`` beyond what the encoder can read.
    """
    chosen = chosen_layers(encoder, layers)
    rows, parts = [], []
    for batch in state_batches(
        encoder, texts, text_pairs=text_pairs, batch_size=batch_size, max_length=max_length
    ):
        _refuse_empty(batch, texts)
        pooled = [pool(batch.states[: layer + 1], batch.mask, pooling=pooling) for layer in chosen]
        parts.append(torch.stack(pooled).float().cpu())  # (layers, b, d)
        rows += batch.rows
    # The batches are sorted by length: column j belongs to text rows[j].
    return torch.cat(parts, dim=1)[:, torch.tensor(rows).argsort()]


def _refuse_empty(batch: StateBatch, texts: Sequence[str]) -> None:
    """A text without a token has no vector; `pool` would know it by its row in the batch only."""
    for row, has_token in zip(batch.rows, batch.mask.any(dim=1).tolist(), strict=True):
        if not has_token:
            raise ValueError(
                f"texts: text {row}, {texts[row]!r}, has no token, so no vector; leave it out"
            )


def token_states(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    layers: Sequence[int] | None = None,
    max_length: int = 128,
    batch_size: int = 64,
) -> TokenStates:
    """The vectors of all word-pieces, without special tokens and padding, from each layer.

    Parameters
    ----------
    encoder, texts, layers, max_length, batch_size
        As in `hidden_states`.

    Returns
    -------
    TokenStates

    Raises
    ------
    ValueError
        As `hidden_states`.
    """
    chosen = chosen_layers(encoder, layers)
    vectors: list[Tensor] = [torch.empty(0)] * len(texts)
    tokens: list[list[str]] = [[]] * len(texts)
    for batch in state_batches(encoder, texts, batch_size=batch_size, max_length=max_length):
        stacked = torch.stack([batch.states[layer] for layer in chosen]).float().cpu()
        # (layers, b, t, d)
        for b, row in enumerate(batch.rows):
            pieces = ~batch.special[b]  # (t,)
            vectors[row] = stacked[:, b, pieces.cpu()]
            ids = batch.tokens["input_ids"][b][pieces]
            tokens[row] = encoder.tokenizer.convert_ids_to_tokens(ids.tolist())
    lengths = torch.tensor([len(words) for words in tokens])
    return TokenStates(
        vectors=torch.cat(vectors, dim=1),
        sentence=torch.arange(len(texts)).repeat_interleave(lengths),
        token=list(chain.from_iterable(tokens)),
    )
