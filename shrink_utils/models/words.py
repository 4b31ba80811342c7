"""Word vectors: the mean of a word's pieces, whatever the tokenizer makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from shrink_utils.models._word_places import (
    WORD_OR_MARK,
    WordsOfBatch,
    owner_by_count,
    owner_by_place,
    split_words,
)
from shrink_utils.models.batches import StateBatch, chosen_layers, state_batches
from shrink_utils.models.encoders import Encoder

__all__ = ["WordBatch", "split_words", "word_batches", "word_states"]


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
        punctuation never count, nor does a piece of two words (``co`` and ``operate`` with a soft
        hyphen between them, which BERT drops); a word without pieces is left out, and so is one
        that ``max_length`` cuts through or off.

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
        words = WordsOfBatch([texts[row] for row in batch.rows])
        owner = (
            owner_by_place(batch, words)
            if places
            else owner_by_count(batch, words, [inputs[row] for row in batch.rows], encoder)
        )
        yield _pooled(batch, owner, words, chosen)


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


def _pooled(
    batch: StateBatch, owner: np.ndarray, words: WordsOfBatch, layers: list[int]
) -> WordBatch:
    """Mean over the pieces of each word that has some."""
    pieces = np.flatnonzero(owner >= 0)  # (n_pieces,), rows of the (b t, d) states
    numbers = owner.ravel()[pieces]
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))  # a word's pieces follow one another
    found = numbers[starts]  # (n_words,)
    mean = _MeanOfPieces(pieces, starts, batch.mask.device)
    vectors = batch.states[0].new_empty(
        len(layers), len(found), batch.states[0].shape[-1], dtype=torch.float32
    )
    for out, layer in zip(vectors, layers, strict=True):
        mean(batch.states[layer].flatten(0, 1).float(), out)
    return WordBatch(
        vectors=vectors.cpu(),
        sentence=torch.from_numpy(np.array(batch.rows)[words.text[found]]),
        position=torch.from_numpy(found - words.first[words.text[found]]),
        word=[words.word[number] for number in found],
        n_texts=len(batch.rows),
    )


class _MeanOfPieces:
    """Means over runs of rows, prepared once for all layers; most words are one piece."""

    def __init__(self, pieces: np.ndarray, starts: np.ndarray, device: torch.device) -> None:
        counts = np.diff(starts, append=len(pieces))
        several = counts > 1
        self.first, self.several, self.pieces, self.starts = (
            torch.from_numpy(indices).to(device)
            for indices in (
                pieces[starts],
                np.flatnonzero(several),
                pieces[np.repeat(several, counts)],
                np.cumsum(counts[several]) - counts[several],
            )
        )

    def __call__(self, states: Tensor, out: Tensor) -> None:
        """Write the means of rows of `states` to `out`, (n_words, d)."""
        torch.index_select(states, 0, self.first, out=out)
        if len(self.several):
            out[self.several] = embedding_bag(self.pieces, states, self.starts, mode="mean")
