"""Where the words of a batch of texts stand, and which word each token is a piece of."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from shrink_utils.models.batches import StateBatch
from shrink_utils.models.encoders import Encoder

WORD = re.compile(r"\w+(?:['’]\w+)*")  # don't is one word; punctuation is none
WORD_OR_MARK = re.compile(rf"{WORD.pattern}|[^\w\s]")


def split_words(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters and digits, with inner apostrophes."""
    return [match.group().lower() for match in WORD.finditer(text)]


class WordsOfBatch:
    """The words of a batch's b texts in one row, numbered from 0 to w − 1.

    Attributes
    ----------
    word : list of str
        (w,), in lower case.
    start, end : ndarray
        (w,): where each stands in the texts joined to one.
    text : ndarray
        (w,): which of the texts it stands in.
    text_start, first : ndarray
        (b,): where a text begins in the joined one, and the number of its first word.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        joined = "\n".join(texts)  # no word goes across a line break
        spans = [match.span() for match in WORD.finditer(joined)]
        self.word = [joined[start:end].lower() for start, end in spans]
        self.start, self.end = np.array(spans, dtype=np.int64).reshape(-1, 2).T
        lengths = np.array([len(text) + 1 for text in texts])
        self.text_start = lengths.cumsum() - lengths
        self.text = np.searchsorted(self.text_start, self.start, side="right") - 1
        self.first = np.searchsorted(self.text, np.arange(len(texts)))


def owner_by_place(batch: StateBatch, words: WordsOfBatch) -> np.ndarray:
    """For each token, (b, t), its word's number; −1 for none, and for a word cut through."""
    owner = np.full(batch.special.shape, -1)
    if not words.word:
        return owner
    lengths = np.array([len(encoding) for encoding in batch.encodings])
    text, column = np.nonzero(np.arange(owner.shape[1]) < lengths[:, None])  # (n_tokens,) each
    places = [place for encoding in batch.encodings for place in encoding.offsets]
    places = np.array(places, dtype=np.int64).reshape(-1, 2)  # none at all: (0, 2)
    start, end = (places + words.text_start[text, None]).T
    piece = ~batch.special.cpu().numpy()[text, column]
    read = np.zeros(len(lengths), dtype=np.int64)  # how far into each text the encoder has read
    np.maximum.at(read, text[piece], end[piece])
    # The last word that begins before the end of a token is the only one that can own it.
    last = np.searchsorted(words.start, end) - 1
    word_end = words.end[last]
    within = (last >= 0) & (start < end) & (start < word_end)
    # A piece that reaches over two words ("co" and "operate" with a soft hyphen) is of neither.
    end_before = np.append(0, words.end)  # where the word before each ends, 0 for the first
    within &= start >= end_before[last]
    owner[text, column] = np.where(piece & within & (word_end <= read[text]), last, -1)
    return owner


def owner_by_count(
    batch: StateBatch, words: WordsOfBatch, units: list[list[str]], encoder: Encoder
) -> np.ndarray:
    """The same from how many pieces the tokenizer makes of each word and punctuation mark."""
    owner = np.full(batch.special.shape, -1)
    pieces = ~batch.special.cpu().numpy()
    for row, of_row, number, of_text in zip(owner, pieces, words.first, units, strict=True):
        owners, room = [], int(of_row.sum())
        for unit in of_text:
            n_pieces = len(encoder.tokenizer.tokenize(unit))
            is_word = WORD.fullmatch(unit) is not None
            complete = len(owners) + n_pieces <= room
            owners += [number if is_word and complete else -1] * n_pieces
            number += is_word
        row[of_row] = owners[:room]
    return owner
