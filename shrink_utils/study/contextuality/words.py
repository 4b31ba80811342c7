"""One word in many contexts: how alike its vectors are, and the words around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import ipywidgets as widgets
import matplotlib.pyplot as plt
import seaborn as sns
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import normalize

from shrink_utils.models import Encoder, split_words, word_states
from shrink_utils.study.explorer import Explorer

FEWEST = 3  # contexts: with two there is one pair and nothing to compare


@dataclass(frozen=True)
class WordContexts:
    """A word's occurrences in n texts."""

    word: str  # in lower case
    snippets: list[str]  # a few words around each occurrence, the word itself in capitals
    similarity: Tensor  # (layers, n, n): cosines between its vectors
    n_texts: int  # all texts that hold the word; n of them are here

    def pair(self, layer: int, *, most: bool) -> tuple[str, str, float]:
        """The most or the least alike pair of contexts at a layer, and their cosine."""
        rows, columns = torch.triu_indices(*self.similarity[layer].shape, offset=1)
        cosines = self.similarity[layer][rows, columns]
        at = int(cosines.argmax() if most else cosines.argmin())
        return self.snippets[rows[at]], self.snippets[columns[at]], float(cosines[at])


def word_contexts(
    encoder: Encoder, texts: Sequence[str], word: str, *, n: int = 12, around: int = 3
) -> WordContexts:
    """Read a word, at its first place in each text, in n of the texts that hold it.

    Parameters
    ----------
    texts : sequence of str
        Where to look; a text that comes twice counts once. The n texts are spread evenly over them.
    word : str
        In upper or lower case, as `models.split_words` cuts words.
    n : int
        Most contexts to read, at least 3.
    around : int
        Words of a snippet on either side.

    Raises
    ------
    ValueError
        The word is not one word, or stands in fewer than 3 texts.
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
    snippets = [_snippet(read[text], word, around) for text in rows]
    return WordContexts(word, snippets, vectors @ vectors.mT, n_texts=len(found))


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


def draw_contexts(contexts: WordContexts, layers: Sequence[int]) -> Figure:
    """Cosines between all pairs of contexts, one heatmap per layer, and how their mean changes.

    Contexts are sorted by how alike they are to the others at the last of the layers.
    """
    order = contexts.similarity[layers[-1]].sum(0).argsort(descending=True)
    names = [contexts.snippets[i] for i in order]
    look = dict(vmin=0, vmax=1, cmap="cividis", square=True, cbar_kws={"label": "cosine"})
    look["xticklabels"] = range(1, len(names) + 1)
    fig, axes = plt.subplots(1, len(layers), figsize=(13, 4), sharey=True, squeeze=False)
    for ax, layer in zip(axes[0], layers, strict=True):
        cosines, bar = contexts.similarity[layer][order][:, order], layer == layers[-1]
        sns.heatmap(cosines, ax=ax, cbar=bar, yticklabels=names, **look)
        ax.tick_params(axis="x", labelrotation=0)
        ax.set(title=f"layer {layer}", xlabel="context (as on the left)")
        ax.tick_params(length=0)
    first, last = (_mean_cosine(contexts.similarity[layer]) for layer in (layers[0], layers[-1]))
    found = f"the mean cosine goes from {first:.2f} to {last:.2f}"
    fig.suptitle(f"“{contexts.word}” in {len(names)} contexts: {found}", x=0.01, ha="left")
    return fig


def _mean_cosine(similarity: Tensor) -> float:
    """Over all pairs of different contexts; similarity (n, n)."""
    rows, columns = torch.triu_indices(*similarity.shape, offset=1)
    return similarity[rows, columns].mean().item()


def describe_contexts(contexts: WordContexts, layers: Sequence[int]) -> str:
    """The most and the least alike pair of contexts at the last of the layers."""
    said = []
    for name, most in (("Most", True), ("Least", False)):
        a, b, cosine = contexts.pair(layers[-1], most=most)
        said.append(f"{name} alike at layer {layers[-1]} ({cosine:+.2f}): “{a}” and “{b}”.")
    return " ".join(said)


def word_explorer(
    first: WordContexts, find: Callable[[str], WordContexts], layers: Sequence[int]
) -> Explorer:
    """Type a word and press Enter; one that is too rare gets an answer in the figure's place.

    Parameters
    ----------
    first : WordContexts
        The word that stands there at the start.
    find : callable
        Reads a word in its contexts, and raises ``ValueError`` for one that it cannot read.
    """
    read = {first.word: first}

    def contexts(word: str) -> WordContexts:
        if word not in read:
            read.clear()  # one word at a time
            read[word] = find(word)
        return read[word]

    typed = widgets.Text(value=first.word, description="word", continuous_update=False)
    return Explorer(
        {"word": typed},
        lambda word: draw_contexts(contexts(word), layers),
        lambda word: describe_contexts(contexts(word), layers),
    )
