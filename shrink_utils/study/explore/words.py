"""A word that the reader types, in a dozen contexts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ipywidgets as widgets
import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.figure import Figure

from shrink_utils.study.encoders.contexts import WordContexts
from shrink_utils.study.explore.explorer import Explorer

__all__ = ["describe_contexts", "draw_contexts", "word_explorer"]


def draw_contexts(contexts: WordContexts, layers: Sequence[int]) -> Figure:
    """Cosines between all pairs of contexts, a heatmap a layer.

    Parameters
    ----------
    contexts : WordContexts
    layers : sequence of int
        Contexts are sorted by how alike they are to the others at the last of these.

    Returns
    -------
    Figure
    """
    order = contexts.similarity[layers[-1]].sum(0).argsort(descending=True)
    names = [contexts.snippets[i] for i in order]
    fig, axes = plt.subplots(1, len(layers), figsize=(13, 4), sharey=True, squeeze=False)
    for ax, layer in zip(axes[0], layers, strict=True):
        cosines = contexts.similarity[layer][order][:, order]
        sns.heatmap(
            cosines,
            ax=ax,
            vmin=0,
            vmax=1,
            cmap="cividis",
            square=True,
            xticklabels=range(1, len(names) + 1),
            yticklabels=names,
            cbar=layer == layers[-1],
            cbar_kws={"label": "cosine"},
        )
        ax.tick_params(axis="x", labelrotation=0)
        ax.set(title=f"layer {layer}", xlabel="context (as on the left)")
        ax.tick_params(length=0)
    fig.suptitle(f"“{contexts.word}” in {len(names)} contexts")
    return fig


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
        Of the word that stands there at the start.
    find : callable
        Reads a word in its contexts, and raises ``ValueError`` for one that it cannot read.
    layers : sequence of int
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
