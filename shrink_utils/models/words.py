"""Word vectors: the mean of a word's pieces, whatever the tokenizer makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from shrink_utils.models.batches import StateBatch, chosen_layers, state_batches
from shrink_utils.models.encoders import Encoder

__all__ = ["WordBatch", "split_words", "word_batches", "word_states"]

WORD = re.compile(r"\w+(?:['’]\w+)*")  # don't is one word; punctuation is none
WORD_OR_MARK = re.compile(rf"{WORD.pattern}|[^\w\s]")


@dataclass(frozen=True)
class WordBatch:
    """Word vectors of some sentences, sentence after sentence.

    Attributes
    ----------
    vectors : Tensor
        (n_layers_selected, n_words, d), float32 on the CPU.
    sentence, position : Tensor
        (n_words,), long: the index of the word's sentence among the texts, and the word's index in
        ``split_words`` of it. Together they name the word to any encoder.
    word : list of str
        The n_words words in lower case.
    n_texts : int
        How many texts these are, those without a word included.
    """

    vectors: Tensor
    sentence: Tensor
    position: Tensor
    word: list[str]
    n_texts: int


def split_words(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters and digits, with inner apostrophes."""
    return [match.group().lower() for match in WORD.finditer(text)]


def word_batches(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    layers: Sequence[int] | None = None,
    batch_size: int = 64,
    max_length: int = 128,
) -> Iterator[WordBatch]:
    """Word vectors from each layer, one forward pass at a time, the shortest texts first.

    Parameters
    ----------
    encoder, texts, batch_size, max_length
        As in `state_batches`. No more than a batch of hidden states is ever held.
    layers
        Indices out of ``encoder.layers``, negative ones from the end; all layers when None.

    Yields
    ------
    WordBatch
        A word's vector is the mean of the vectors of its pieces. Special tokens, padding and
        punctuation never count; a word that ``max_length`` cuts through or off is left out.

    Raises
    ------
    ValueError
        As `state_batches`, or a layer that the encoder has not.

    Notes
    -----
    Pieces are assigned to words by where they stand in the text. A tokenizer that cannot tell
    (one without a Rust implementation, such as Marian's) is given the text word by word instead,
    so that a piece of punctuation may differ from the one it would make of the running text.
    """
    chosen = chosen_layers(encoder, layers)
    places = encoder.tokenizer.is_fast  # it tells where in the text a piece stands
    inputs = texts if places else [WORD_OR_MARK.findall(text) or [""] for text in texts]
    for batch in state_batches(
        encoder, inputs, batch_size=batch_size, max_length=max_length, pre_split=not places
    ):
        owners = [
            _owners_by_place(batch, b, texts[row])
            if places
            else _owners_by_count(batch, b, inputs[row], encoder)
            for b, row in enumerate(batch.rows)
        ]
        yield _pooled(batch, owners, [split_words(texts[row]) for row in batch.rows], chosen)


def word_states(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    layers: Sequence[int] | None = None,
    batch_size: int = 64,
    max_length: int = 128,
) -> WordBatch:
    """All word vectors of the texts from each layer, in the order of the texts.

    Parameters
    ----------
    encoder, texts, layers, batch_size, max_length
        As in `word_batches`.

    Returns
    -------
    WordBatch
        Of all texts: n_layers × n_words × d × 4 bytes.

    Raises
    ------
    ValueError
        As `word_batches`.
    """
    options = {"layers": layers, "batch_size": batch_size, "max_length": max_length}
    batches = list(word_batches(encoder, texts, **options))
    sentence = torch.cat([batch.sentence for batch in batches])
    order = sentence.argsort(stable=True)
    words = [word for batch in batches for word in batch.word]
    return WordBatch(
        vectors=torch.cat([batch.vectors for batch in batches], dim=1)[:, order],
        sentence=sentence[order],
        position=torch.cat([batch.position for batch in batches])[order],
        word=[words[i] for i in order.tolist()],
        n_texts=len(texts),
    )


def _owners_by_place(batch: StateBatch, b: int, text: str) -> list[int]:
    """For each token of row b the position of its word; −1 for none, and for a word cut through."""
    spans = [match.span() for match in WORD.finditer(text)]
    word_at = [-1] * len(text)
    for position, (start, end) in enumerate(spans):
        word_at[start:end] = [position] * (end - start)
    encoding = batch.encodings[b]
    tokens = list(zip(encoding.offsets, encoding.special_tokens_mask, strict=True))
    read = max((end for (_, end), special in tokens if not special), default=0)
    complete = sum(end <= read for _, end in spans)
    owners = [
        -1 if special else max(word_at[start:end], default=-1) for (start, end), special in tokens
    ]
    padding = [-1] * (batch.special.shape[1] - len(owners))
    return [owner if owner < complete else -1 for owner in owners] + padding


def _owners_by_count(batch: StateBatch, b: int, units: list[str], encoder: Encoder) -> list[int]:
    """The same from how many pieces the tokenizer makes of each word and punctuation mark."""
    owners, position = [], 0
    room = int((~batch.special[b]).sum())
    for unit in units:
        n_pieces = len(encoder.tokenizer.tokenize(unit))
        is_word = WORD.fullmatch(unit) is not None
        complete = len(owners) + n_pieces <= room
        owners += [position if is_word and complete else -1] * n_pieces
        position += is_word
    of_pieces = iter(owners)
    return [-1 if s else next(of_pieces) for s in batch.special[b].tolist()]


def _pooled(
    batch: StateBatch, owners: list[list[int]], words: list[list[str]], layers: list[int]
) -> WordBatch:
    """Mean over the pieces of each word that has some."""
    owner = torch.tensor(owners, device=batch.mask.device)  # (b, t)
    row, place = (owner >= 0).nonzero(as_tuple=True)  # (n_pieces,) each
    longest = max(1, max(len(of_text) for of_text in words))
    # The pieces of a word follow one another: bags of consecutive rows of the (b t, d) states.
    key, counts = torch.unique_consecutive(row * longest + owner[row, place], return_counts=True)
    pieces, starts = row * owner.shape[1] + place, counts.cumsum(0) - counts
    vectors = [
        embedding_bag(pieces, batch.states[layer].flatten(0, 1).float(), starts, mode="mean")
        for layer in layers
    ]
    of_row, position = (key // longest).tolist(), (key % longest).cpu()
    return WordBatch(
        vectors=torch.stack(vectors).cpu(),
        sentence=torch.tensor([batch.rows[b] for b in of_row], dtype=torch.long),
        position=position,
        word=[words[b][p] for b, p in zip(of_row, position.tolist(), strict=True)],
        n_texts=len(batch.rows),
    )
