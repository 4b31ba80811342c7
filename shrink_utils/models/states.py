"""Read an encoder's layers over a list of texts: by batch, by text, or by word-piece."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from tokenizers import Encoding
from torch import Tensor
from transformers import PreTrainedModel

from shrink_utils.models.encoders import Encoder, evaluating
from shrink_utils.models.pooling import pool
from shrink_utils.models.products import OneDNN


@dataclass(frozen=True)
class StateBatch:
    """The hidden states of b texts, on the encoder's device."""

    rows: list[int]  # which texts
    states: tuple[Tensor, ...]  # each layer's (b, t, d), from the embedding layer to the output
    mask: Tensor  # (b, t), 1 at tokens and 0 at padding
    special: Tensor  # (b, t), true at special tokens and padding
    tokens: dict[str, Tensor]  # what the encoder was given, (b, t) each
    # Each text's tokens before padding, with their places in it; None if the tokenizer is slow.
    encodings: list[Encoding] | None


@dataclass(frozen=True)
class TokenStates:
    """Word-piece vectors of many sentences, in the order of the sentences."""

    vectors: Tensor  # (n_layers_selected, n_tokens, d), float32
    sentence: Tensor  # (n_tokens,), long: the index of the token's sentence
    token: list[str]  # the n_tokens word-pieces


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
    """One vector per text from each layer.

    Parameters
    ----------
    encoder, texts, text_pairs, batch_size, max_length
        As in `state_batches`.
    layers
        Indices out of ``encoder.layers``, negative ones from the end; all layers when None.
    pooling
        As in `pool`, at every layer: ``"first_last"`` at layer l averages the layers 0 and l.

    Returns
    -------
    Tensor
        (n_layers_selected, n, d), float32 on the CPU; layer 0 is the embedding layer.

    Raises
    ------
    ValueError
        As `state_batches` and `pool`; a text without a token (an empty one, where the tokenizer
        adds no special tokens), or a layer the encoder has not.
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


def token_states(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    layers: Sequence[int] | None = None,
    max_length: int = 128,
    batch_size: int = 64,
) -> TokenStates:
    """The vectors of all word-pieces, without special tokens and padding, from each layer.

    Parameters, and the ValueError of bad ones, are those of `hidden_states`.
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


def state_batches(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    text_pairs: Sequence[str] | None = None,
    batch_size: int = 64,
    max_length: int = 128,
    pre_split: bool = False,
) -> Iterator[StateBatch]:
    """Forward passes over texts sorted by length, one batch of hidden states at a time.

    Parameters
    ----------
    encoder
        Run in evaluation mode, on the device where it is.
    texts, text_pairs
        n texts, and n second texts when the encoder reads pairs.
    batch_size
        Texts in a forward pass. Texts of like length go together, which changes the result only by
        rounding.
    max_length
        Longest input in tokens, special tokens included; longer ones are cut.
    pre_split
        Each text is a list of words, which are tokenized one by one.

    Raises
    ------
    ValueError
        No texts, an item that is not a text, another number of pairs than of texts, or
        ``max_length`` beyond what the encoder can read.
    """
    _check(encoder, texts, text_pairs, batch_size, max_length, pre_split)
    tokenizer = encoder.tokenizer
    found = tokenizer(
        list(texts),
        None if text_pairs is None else list(text_pairs),
        truncation=True,
        max_length=max_length,
        is_split_into_words=pre_split,
        return_special_tokens_mask=True,
    )
    order = sorted(range(len(texts)), key=lambda i: len(found["input_ids"][i]))
    padding = {  # 0 in all other inputs
        "input_ids": tokenizer.pad_token_id,
        "token_type_ids": tokenizer.pad_token_type_id,
        "special_tokens_mask": 1,
    }
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        tokens = {
            name: _padded([of_text[i] for i in rows], padding.get(name, 0)).to(encoder.model.device)
            for name, of_text in found.items()
        }
        special = tokens.pop("special_tokens_mask").bool()
        encodings = [found.encodings[i] for i in rows] if found.is_fast else None
        states = _states(encoder.model, tokens)
        yield StateBatch(rows, states, tokens["attention_mask"], special, tokens, encodings)


def chosen_layers(encoder: Encoder, layers: Sequence[int] | None) -> list[int]:
    """Indices from 0, all of them for None; a ValueError for others than the encoder's, or none."""
    if layers is None:
        return list(encoder.layers)
    n = len(encoder.layers)
    if not len(layers) or any(not -n <= layer < n for layer in layers):
        raise ValueError(f"layers: {list(layers)}, expected indices out of {encoder.layers}")
    return [layer % n for layer in layers]


@torch.inference_mode()
def _states(model: PreTrainedModel, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    with evaluating(model), OneDNN():
        return model(**inputs, output_hidden_states=True).hidden_states


def _padded(of_texts: list[list[int]], value: int) -> Tensor:
    """One row per text, filled up on its right, (b, t); the tokenizer's own `pad` is far slower."""
    length = max(1, *map(len, of_texts))  # one of padding where no text has a token
    table = np.full((len(of_texts), length), value, dtype=np.int64)
    for row, of_text in zip(table, of_texts, strict=True):
        row[: len(of_text)] = of_text
    return torch.from_numpy(table)


def _refuse_empty(batch: StateBatch, texts: Sequence[str]) -> None:
    """A text without a token has no vector; `pool` would know it by its row in the batch only."""
    for row, has_token in zip(batch.rows, batch.mask.any(dim=1).tolist(), strict=True):
        if not has_token:
            raise ValueError(
                f"texts: text {row}, {texts[row]!r}, has no token, so no vector; leave it out"
            )


def _check(
    encoder: Encoder,
    texts: Sequence[str],
    text_pairs: Sequence[str] | None,
    batch_size: int,
    max_length: int,
    pre_split: bool,
) -> None:
    if isinstance(texts, str):
        raise ValueError("texts: a string, expected a list of texts")
    if len(texts) == 0:
        raise ValueError("texts: empty, expected at least one text")
    if text_pairs is not None and len(text_pairs) != len(texts):
        raise ValueError(f"text_pairs: {len(text_pairs)} texts beside {len(texts)} in texts")
    if batch_size < 1:
        raise ValueError(f"batch_size: {batch_size}, expected at least 1")
    limit = encoder.max_length
    if not 3 <= max_length <= limit:
        raise ValueError(f"max_length: {max_length}, expected 3 to {limit} tokens ({encoder.name})")
    strings = {"texts": [] if pre_split else texts}
    strings["text_pairs"] = [] if text_pairs is None else text_pairs
    for name, items in strings.items():
        for i, text in enumerate(items):
            if not isinstance(text, str):
                raise ValueError(f"{name}: item {i} is {text!r}, expected a string")
