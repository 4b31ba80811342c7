"""Read an encoder's layers over texts: by batch, by text (pooled), or by word-piece."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from tokenizers import Encoding
from torch import Tensor

from shrink_utils.models.encoders import NO_LIMIT, Encoder, evaluating
from shrink_utils.models.products import OneDNN
from shrink_utils.names import POOLINGS, as_texts, known_name
from shrink_utils.topology.arrays import whole_number

MAX_LENGTH = 128  # tokens, where nobody says more or fewer


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
    texts: Iterable[str],
    *,
    layers: Sequence[int] | None = None,
    pooling: str = "cls",
    **options: Any,
) -> Tensor:
    """One vector per text from each layer.

    Parameters
    ----------
    encoder, texts
        As in `state_batches`.
    layers
        Indices out of ``encoder.layers``, negative ones from the end; all layers when None.
    pooling
        As in `pool`, at every layer: ``"first_last"`` at layer l averages the layers 0 and l.
    **options
        ``text_pairs``, ``batch_size`` and ``max_length``, as in `state_batches`.

    Returns
    -------
    Tensor
        (n_layers_selected, n, d), float32 on the CPU; layer 0 is the embedding layer.

    Raises
    ------
    ValueError
        As `state_batches` and `pool`; a text without a token (an empty one, where the tokenizer
        adds no special tokens), a layer the encoder has not, or layers of different width.
    """
    texts, chosen = as_texts(texts), chosen_layers(encoder, layers)
    rows, parts = [], []
    for batch in state_batches(encoder, texts, **options):
        for row, has_token in zip(batch.rows, batch.mask.any(dim=1).tolist(), strict=True):
            if not has_token:  # `pool` would know it by its row in the batch only
                raise ValueError(
                    f"texts: text {row}, {texts[row]!r}, has no token, so no vector; leave it out"
                )
        states_of(batch, chosen)
        pooled = [pool(batch.states[: layer + 1], batch.mask, pooling=pooling) for layer in chosen]
        parts.append(torch.stack(pooled).float().cpu())  # (layers, b, d)
        rows += batch.rows
    # The batches are sorted by length: column j belongs to text rows[j].
    return torch.cat(parts, dim=1)[:, torch.tensor(rows, device="cpu").argsort()]


def token_states(
    encoder: Encoder, texts: Iterable[str], *, layers: Sequence[int] | None = None, **options: Any
) -> TokenStates:
    """The vectors of all word-pieces, without special tokens and padding, from each layer.

    Parameters, and the ValueError of bad ones, are those of `hidden_states`.
    """
    chosen = chosen_layers(encoder, layers)
    vectors, rows, ids = [], [], []
    for batch in state_batches(encoder, texts, **options):
        pieces = ~batch.special  # (b, t)
        states = [layer[pieces] for layer in states_of(batch, chosen)]  # (n, d) each
        vectors.append(torch.stack(states).float().cpu())
        rows.append(torch.tensor(batch.rows, device="cpu")[pieces.nonzero()[:, 0].cpu()])
        ids.append(batch.tokens["input_ids"][pieces].cpu())
    sentence, order = torch.cat(rows).sort(stable=True)
    return TokenStates(
        vectors=torch.cat(vectors, dim=1)[:, order],
        sentence=sentence,
        token=encoder.tokenizer.convert_ids_to_tokens(torch.cat(ids)[order].tolist()),
    )


def state_batches(
    encoder: Encoder,
    texts: Iterable[str],
    *,
    text_pairs: Iterable[str] | None = None,
    batch_size: int = 64,
    max_length: int | None = None,
) -> Iterator[StateBatch]:
    """Forward passes over texts sorted by length, one batch of hidden states at a time.

    Parameters
    ----------
    encoder
        Run in evaluation mode, on the device where it is.
    texts, text_pairs
        n texts, and n second texts when the encoder reads pairs, by position: lists, columns,
        arrays, generators, … (see `names.as_texts`).
    batch_size
        Texts in a forward pass. Texts of like length go together, which changes the result only by
        rounding. Only texts of equal length do so where padding changes a model's vectors (FNet,
        ConvBERT), which is tried with one of the texts.
    max_length
        Longest input in tokens, special tokens included; longer ones are cut. None: 128, or what
        the encoder can read where that is less.

    Raises
    ------
    ValueError
        No texts, an item that is not a text, another number of pairs than of texts,
        ``max_length`` beyond what the encoder can read, a token that it has no embedding of, or
        an encoder that does not give the layers that its configuration names.
    """
    texts = as_texts(texts)
    text_pairs = None if text_pairs is None else as_texts(text_pairs, argument="text_pairs")
    if text_pairs is not None and len(text_pairs) != len(texts):
        raise ValueError(f"text_pairs: {len(text_pairs)} texts beside {len(texts)} in texts")
    whole_number(batch_size, "batch_size", 1)
    limit, tokenizer = encoder.max_length, encoder.tokenizer
    max_length = min(MAX_LENGTH, limit) if max_length is None else max_length
    if not 3 <= max_length <= limit:
        raise ValueError(f"max_length: {max_length}, expected 3 to {limit} tokens ({encoder.name})")
    options = {"truncation": True, "max_length": max_length, "return_special_tokens_mask": True}
    found = tokenizer(texts, text_pairs, **options)
    n_known = _refuse_unknown_tokens(encoder, found["input_ids"])
    pad = tokenizer.pad_token_id
    padding = {  # 0 in all other inputs
        # Some tokenizers were given a token for padding that the model does not know.
        "input_ids": pad if pad is not None and pad < n_known else 0,
        "token_type_ids": tokenizer.pad_token_type_id,
        "special_tokens_mask": 1,
    }

    device = encoder.model.device

    def inputs(rows: list[int], length: int = 1) -> dict[str, Tensor]:
        return {
            name: _padded([of_text[i] for i in rows], padding.get(name, 0), length).to(device)
            for name, of_text in found.items()
        }

    lengths = [len(ids) for ids in found["input_ids"]]
    batches = _batches(lengths, batch_size)
    if padded := _most_padded(lengths, batches):
        row, length = padded
        if _depends_on_padding(encoder, inputs([row]), inputs([row], length)):
            batches = _batches(lengths, batch_size, equal=True)
    for rows in batches:
        tokens = inputs(rows)
        special = tokens.pop("special_tokens_mask").bool()
        encodings = [found.encodings[i] for i in rows] if found.is_fast else None
        states = _states(encoder, tokens)
        yield StateBatch(rows, states, tokens["attention_mask"], special, tokens, encodings)


def _batches(lengths: list[int], batch_size: int, *, equal: bool = False) -> list[list[int]]:
    """Which texts are read together, the shortest first; `equal`: none beside a longer one."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    groups = [order]
    if equal:
        groups = [list(group) for _, group in groupby(order, key=lengths.__getitem__)]
    return [g[i : i + batch_size] for g in groups for i in range(0, len(g), batch_size)]


def _most_padded(lengths: list[int], batches: list[list[int]]) -> tuple[int, int] | None:
    """The text that is filled up by most tokens of padding, and its batch's length, if any is."""
    # A text without a token has nothing that padding could change.
    firsts = (next((row for row in rows if lengths[row]), rows[-1]) for rows in batches)
    pairs = [(row, lengths[rows[-1]]) for row, rows in zip(firsts, batches, strict=True)]
    row, length = max(pairs, key=lambda pair: pair[1] - lengths[pair[0]])
    return (row, length) if length > lengths[row] else None


def _depends_on_padding(
    encoder: Encoder, alone: dict[str, Tensor], padded: dict[str, Tensor]
) -> bool:
    """Whether padding changes the vectors of one text by more than rounding, half of the digits."""
    for tokens in (alone, padded):
        del tokens["special_tokens_mask"]
    n_tokens = alone["input_ids"].shape[1]
    for own, other in zip(_states(encoder, alone), _states(encoder, padded), strict=True):
        difference = (own - other[:, :n_tokens]).norm(dim=2)  # (1, n_tokens)
        if not (difference <= torch.finfo(own.dtype).eps ** 0.5 * own.norm(dim=2)).all():
            return True
    return False


def chosen_layers(encoder: Encoder, layers: Sequence[int] | None) -> list[int]:
    """Indices from 0, all of them for None; a ValueError for others than the encoder's, or none."""
    if layers is None:
        return list(encoder.layers)
    n = len(encoder.layers)
    if not len(layers) or any(not -n <= layer < n for layer in layers):
        raise ValueError(f"layers: {list(layers)}, expected indices out of {encoder.layers}")
    return [layer % n for layer in layers]


def states_of(batch: StateBatch, layers: Sequence[int]) -> list[Tensor]:
    """The states of chosen layers, (b, t, d) each; a ``ValueError`` where d differs."""
    states = [batch.states[layer] for layer in layers]
    if len(widths := {layer.shape[2] for layer in states}) > 1:
        found = ", ".join(f"{i}: {state.shape[2]}" for i, state in zip(layers, states, strict=True))
        raise ValueError(
            f"layers: of {len(widths)} widths ({found}); in Python, read those of one width "
            f"by layers=[{layers[0]}]"
        )
    return states


@torch.inference_mode()
def _states(encoder: Encoder, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    try:
        with evaluating(encoder.model), OneDNN():
            states = encoder.model(**inputs, output_hidden_states=True).hidden_states or ()
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # whatever a model does without an image, a decoder's input, …
        told = " ".join(str(error).split())[:200]
        raise ValueError(f"encoder: {encoder.name} does not read texts alone: {told}") from error
    expected = (len(encoder.layers), inputs["input_ids"].shape)
    # PEGASUS-X gives a pair in place of its last layer.
    shapes = {state.shape[:2] if isinstance(state, Tensor) else () for state in states}
    if (len(states), *shapes) != expected:
        raise ValueError(
            f"encoder: {encoder.name} gives {len(states)} layers of (texts, tokens) "
            f"{[tuple(shape) for shape in shapes]}, expected {expected[0]} of {(*expected[1],)}; "
            "take a model that has a vector per token at every layer, also without an image"
        )
    return states


def _refuse_unknown_tokens(encoder: Encoder, input_ids: list[list[int]]) -> int:
    """How many tokens the encoder has embeddings of; a ``ValueError`` for a token beyond them."""
    try:
        n_known = len(encoder.model.get_input_embeddings().weight)
    except (NotImplementedError, AttributeError):  # CANINE hashes every character there is
        return NO_LIMIT
    for i, ids in enumerate(input_ids):
        if max(ids, default=0) >= n_known:
            token = encoder.tokenizer.convert_ids_to_tokens(max(ids))
            raise ValueError(
                f"texts: text {i} has the token {token!r}, of which {encoder.name} has no "
                "embedding; take the tokenizer that belongs to the model, or train its embedding"
            )
    return n_known


def _padded(of_texts: list[list[int]], value: int, length: int = 1) -> Tensor:
    """One row per text, filled up on its right to `length` or the longest of them, (b, t).

    The tokenizer's own `pad` is far slower.
    """
    length = max(length, *map(len, of_texts))  # one of padding where no text has a token
    table = np.full((len(of_texts), length), value, dtype=np.int64)
    for row, of_text in zip(table, of_texts, strict=True):
        row[: len(of_text)] = of_text
    return torch.from_numpy(table)


def pool(states: Sequence[Tensor], attention_mask: Tensor, *, pooling: str = "cls") -> Tensor:
    """One vector per text from the hidden states of an encoder; differentiable.

    Parameters
    ----------
    states
        Hidden states from the embedding layer to the last, each (b, t, d).
    attention_mask
        (b, t); 1 (or True) at tokens, 0 at padding.
    pooling
        ``"cls"``: the first token's vector in the last layer, wherever padding stands. ``"mean"``:
        the mean of the last layer over the tokens, [CLS] and [SEP] included. ``"first_last"``: the
        same mean of the average of the first and the last of ``states``. ``"last"``: the last
        token's vector in the last layer, for decoders (GPT-2, Gemma): there a token sees only those
        before it, so the first one has the same vector in every text, and the last one alone has
        read all.

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
    known_name("pooling", "pooling", pooling, POOLINGS)
    if len(states) == 0:
        raise ValueError("states: empty, expected the hidden states of at least one layer")
    if states[-1].shape[:2] != attention_mask.shape:
        raise ValueError(
            f"attention_mask: shape {tuple(attention_mask.shape)} does not match states of shape "
            f"{tuple(states[-1].shape)}"
        )
    if pooling == "first_last" and states[0].shape != states[-1].shape:
        raise ValueError(f"states: {states[0].shape[2]} and {states[-1].shape[2]} wide, so no mean")
    if pooling in ("cls", "last"):  # wherever padding stands
        real = (attention_mask != 0).int()
        place = real.argmax(dim=1)  # (b,): the first token
        if pooling == "last":
            place = real.shape[1] - 1 - real.flip(1).argmax(dim=1)
        return states[-1][torch.arange(len(place), device=states[-1].device), place]
    layers = [states[-1]] if pooling == "mean" else [states[0], states[-1]]
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
