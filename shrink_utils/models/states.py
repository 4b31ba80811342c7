"""Read an encoder's layers over a list of texts: one vector a text, or one a word-piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor
from transformers import PreTrainedModel

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
        No texts, pairs of another number, a layer the encoder has not, an unknown ``pooling``, or
        ``max_length`` beyond what the encoder can read.
    """
    chosen = _chosen_layers(encoder, layers)
    rows, parts = [], []
    for batch_rows, batch, states in _forward(encoder, texts, text_pairs, batch_size, max_length):
        mask = batch["attention_mask"]
        pooled = [pool(states[: layer + 1], mask, pooling=pooling) for layer in chosen]
        parts.append(torch.stack(pooled).float().cpu())  # (layers, b, d)
        rows += batch_rows
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
    chosen = _chosen_layers(encoder, layers)
    vectors: list[Tensor] = [torch.empty(0)] * len(texts)
    tokens: list[list[str]] = [[]] * len(texts)
    for rows, batch, states in _forward(encoder, texts, None, batch_size, max_length):
        stacked = torch.stack([states[layer] for layer in chosen]).float().cpu()
        # (layers, b, t, d)
        for b, row in enumerate(rows):
            words = batch["special_tokens_mask"][b] == 0  # (t,), padding is special too
            vectors[row] = stacked[:, b, words.cpu()]
            ids = batch["input_ids"][b][words]
            tokens[row] = encoder.tokenizer.convert_ids_to_tokens(ids.tolist())
    lengths = torch.tensor([len(words) for words in tokens])
    return TokenStates(
        vectors=torch.cat(vectors, dim=1),
        sentence=torch.arange(len(texts)).repeat_interleave(lengths),
        token=list(chain.from_iterable(tokens)),
    )


def _chosen_layers(encoder: Encoder, layers: Sequence[int] | None) -> list[int]:
    if layers is None:
        return list(encoder.layers)
    n = len(encoder.layers)
    if not len(layers) or any(not -n <= layer < n for layer in layers):
        raise ValueError(f"layers: {list(layers)}, expected indices out of {encoder.layers}")
    return [layer % n for layer in layers]


def _forward(
    encoder: Encoder,
    texts: Sequence[str],
    text_pairs: Sequence[str] | None,
    batch_size: int,
    max_length: int,
) -> Iterator[tuple[list[int], dict[str, Tensor], tuple[Tensor, ...]]]:
    """Batches by length: which texts, the tokenizer's output, the hidden states (b, t, d)."""
    _check(encoder, texts, text_pairs, batch_size, max_length)
    texts, text_pairs = list(texts), None if text_pairs is None else list(text_pairs)
    cut = {"truncation": True, "max_length": max_length}
    lengths = [len(ids) for ids in encoder.tokenizer(texts, text_pairs, **cut)["input_ids"]]
    order = sorted(range(len(texts)), key=lengths.__getitem__)
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        batch = encoder.tokenizer(
            [texts[i] for i in rows],
            None if text_pairs is None else [text_pairs[i] for i in rows],
            **cut,
            padding=True,
            return_special_tokens_mask=True,
            return_tensors="pt",
        ).to(encoder.model.device)
        inputs = {key: batch[key] for key in batch if key != "special_tokens_mask"}
        yield rows, batch, _states(encoder.model, inputs)


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
    limit = encoder.tokenizer.model_max_length
    if not 3 <= max_length <= limit:
        raise ValueError(f"max_length: {max_length}, expected 3 to {limit} tokens ({encoder.name})")


@torch.inference_mode()
def _states(model: PreTrainedModel, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """Hidden states without dropout; the model is left in the mode it was in."""
    was_training = model.training
    model.eval()
    try:
        return model(**inputs, output_hidden_states=True).hidden_states
    finally:
        model.train(was_training)
