"""One word in many contexts: how alike its vectors are, and what stands around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import torch
from torch import Tensor
from torch.nn.functional import normalize

from shrink_utils.models import Encoder, split_words, word_states

__all__ = ["WordContexts", "word_contexts"]

FEWEST = 3  # contexts: with two there is one pair and nothing to compare


@dataclass(frozen=True)
class WordContexts:
    """A word's occurrences in n texts.

    Attributes
    ----------
    word : str
        In lower case.
    snippets : list of str
        A few words around each occurrence, the word itself in capitals.
    similarity : Tensor, shape (layers, n, n)
        Cosines between its vectors, layer by layer.
    n_texts : int
        In how many texts the word stands; n of them are here.
    """

    word: str
    snippets: list[str]
    similarity: Tensor
    n_texts: int

    def pair(self, layer: int, *, most: bool) -> tuple[str, str, float]:
        """The most or the least alike pair of contexts at a layer, and their cosine."""
        rows, columns = torch.triu_indices(*self.similarity[layer].shape, offset=1)
        cosines = self.similarity[layer][rows, columns]
        at = int(cosines.argmax() if most else cosines.argmin())
        return self.snippets[rows[at]], self.snippets[columns[at]], float(cosines[at])


def word_contexts(
    encoder: Encoder, texts: Sequence[str], word: str, *, n: int = 12, around: int = 3
) -> WordContexts:
    """Read a word in n of the texts that it stands in, spread evenly over them.

    Parameters
    ----------
    encoder : Encoder
    texts : sequence of str
        Where to look; a text that comes twice counts once.
    word : str
        In upper or lower case, as `models.split_words` cuts words.
    n : int
        Most contexts to read, at least 3.
    around : int
        Words of a snippet on either side.

    Returns
    -------
    WordContexts
        Of the word's first occurrence in each text that was read.

    Raises
    ------
    ValueError
        What was typed is not one word, or stands in fewer than 3 texts.
    """
    if n < FEWEST:
        raise ValueError(f"n must be at least {FEWEST}, got {n}")
    if len(split_words(word)) != 1:
        raise ValueError(f"word: {word!r} is not one word")
    word = split_words(word)[0]
    found = [text for text in dict.fromkeys(texts) if word in split_words(text)]
    if len(found) < FEWEST:
        raise _too_rare(word, len(found), texts)
    read = [found[i * len(found) // n] for i in range(n)] if len(found) > n else found
    states = word_states(encoder, read)
    rows: dict[int, int] = {}  # text → row of the word; a text cut before it has none
    for row, (text, other) in enumerate(zip(states.sentence.tolist(), states.word, strict=True)):
        if other == word:
            rows.setdefault(text, row)
    vectors = normalize(states.vectors[:, list(rows.values())].double(), dim=2)  # (layers, n, d)
    return WordContexts(
        word=word,
        snippets=[_snippet(read[text], word, around) for text in rows],
        similarity=vectors @ vectors.mT,
        n_texts=len(found),
    )


def _too_rare(word: str, count: int, texts: Sequence[str]) -> ValueError:
    known = sorted({other for text in texts for other in split_words(text)} - {word})
    near = get_close_matches(word, known, n=3)
    hint = f"; near it: {', '.join(near)}" if near else ""
    return ValueError(
        f"word: {word!r} stands in {count} of {len(texts)} texts, expected {FEWEST} or more{hint}"
    )


def _snippet(text: str, word: str, around: int) -> str:
    words = split_words(text)
    at = words.index(word)
    shown = [*words[max(0, at - around) : at], word.upper(), *words[at + 1 : at + 1 + around]]
    before, after = at > around, at + 1 + around < len(words)
    return "… " * before + " ".join(shown) + " …" * after
