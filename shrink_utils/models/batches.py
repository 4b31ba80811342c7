"""Read an encoder batch by batch: all its layers of a few texts at a time, and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from tokenizers import Encoding
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from shrink_utils.models.encoders import Encoder
from shrink_utils.models.evaluation import evaluating

__all__ = ["StateBatch", "chosen_layers", "state_batches"]


@dataclass(frozen=True)
class StateBatch:
    """The hidden states of b texts, on the encoder's device.

    Attributes
    ----------
    rows : list of int
        Which texts.
    states : tuple of Tensor
        Each layer's (b, t, d), from the embedding layer to the output.
    mask : Tensor
        (b, t), 1 at tokens and 0 at padding.
    special : Tensor
        (b, t), true at special tokens and padding: where no piece of the text stands.
    tokens : dict of str to Tensor
        What the encoder was given, (b, t) each.
    encodings : list of Encoding or None
        Each text's tokens before padding, which know where in the text they stand; None when the
        tokenizer cannot tell.
    """

    rows: list[int]
    states: tuple[Tensor, ...]
    mask: Tensor
    special: Tensor
    tokens: dict[str, Tensor]
    encodings: list[Encoding] | None


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
        From `load_encoder`. Run in evaluation mode, on the device where it is.
    texts, text_pairs
        n texts, and n second texts when the encoder reads pairs.
    batch_size
        Texts in a forward pass. Texts of like length go together, which changes the result only by
        rounding.
    max_length
        Longest input in tokens, special tokens included; longer ones are cut.
    pre_split
        Each text is a list of words, which are tokenized one by one.

    Yields
    ------
    StateBatch

    Raises
    ------
    ValueError
        No texts, what is not a text among them, pairs of another number, or ``max_length`` beyond
        what the encoder can read.
    """
    _check(encoder, texts, text_pairs, batch_size, max_length)
    if not pre_split:
        _check_strings("texts", texts)
    if text_pairs is not None:
        _check_strings("text_pairs", text_pairs)
    found = encoder.tokenizer(
        list(texts),
        None if text_pairs is None else list(text_pairs),
        truncation=True,
        max_length=max_length,
        is_split_into_words=pre_split,
        return_special_tokens_mask=True,
    )
    order = sorted(range(len(texts)), key=lambda i: len(found["input_ids"][i]))
    padding = _padding(encoder.tokenizer)
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


def _padding(tokenizer: PreTrainedTokenizerBase) -> dict[str, int]:
    """What stands behind the end of a text in each input of the model; 0 in all others."""
    return {
        "input_ids": tokenizer.pad_token_id,
        "token_type_ids": tokenizer.pad_token_type_id,
        "special_tokens_mask": 1,
    }


def _padded(of_texts: list[list[int]], value: int) -> Tensor:
    """One row a text, filled up on its right, (b, t) long.

    The tokenizer's own `pad` does the same and is slower than all of the word vectors.
    """
    length = max(1, *map(len, of_texts))  # one of padding where no text has a token
    table = np.full((len(of_texts), length), value, dtype=np.int64)
    for row, of_text in zip(table, of_texts, strict=True):
        row[: len(of_text)] = of_text
    return torch.from_numpy(table)


def _check(
    encoder: Encoder,
    texts: Sequence[str],
    text_pairs: Sequence[str] | None,
    batch_size: int,
    max_length: int,
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


def _check_strings(name: str, texts: Sequence[str]) -> None:
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"{name}: item {i} is {text!r}, expected a string")


@torch.inference_mode()
def _states(model: PreTrainedModel, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Hidden states without dropout; every module is left in the mode it was in."""
    with evaluating(model):
        return model(**inputs, output_hidden_states=True).hidden_states


def chosen_layers(encoder: Encoder, layers: Sequence[int] | None) -> list[int]:
    """Indices from 0, all of them for None.

    Raises
    ------
    ValueError
        A layer that the encoder has not, or an empty choice.
    """
    if layers is None:
        return list(encoder.layers)
    n = len(encoder.layers)
    if not len(layers) or any(not -n <= layer < n for layer in layers):
        raise ValueError(f"layers: {list(layers)}, expected indices out of {encoder.layers}")
    return [layer % n for layer in layers]
