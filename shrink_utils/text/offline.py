"""Six tasks made from the rated snippets: nothing to fetch but one small archive.

Every split is by document, four fifths to train and one to validate, and documents that share a
text (an editorial reprinted, "I love it!" in two reviews) go to the same side: no text of the
validation split was seen in training. All choices are hashes of what is chosen from, so they are
the same in every process and with every version of every library.
"""

from __future__ import annotations

from itertools import count

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from shrink_utils.text.corpora import (
    Snippet,
    hash_order,
    labelled_columns,
    read_snippets,
    stable_hash,
    text_key,
)

MIN_RATING = 0.5
MIN_WORDS = 5
VALIDATION_SHARE = 0.2


def sentiment(source: str) -> dict[str, dict[str, list]]:
    """Is a snippet positive (1) or negative (0)? The sign of its mean rating, where |rating| ≥ 0.5.

    Returns ``{"train": columns, "validation": columns}`` with ``text``, ``text_pair``, ``label``.
    """
    snippets = [s for s in read_snippets(source) if abs(s.rating) >= MIN_RATING]
    return {
        side: labelled_columns([(s.text, int(s.rating > 0)) for s in rows])
        for side, (rows, _) in _split(snippets).items()
    }


def word_order() -> dict[str, dict[str, list]]:
    """Is a sentence as it was written (1), or were two neighbouring words of it swapped (0)?

    Sentences of editorials with at least five words; every second one, in hashed order, is swapped.

    Notes
    -----
    After the bigram-shift task of Conneau et al. (2018), *What you can cram into a single vector*.
    The first and the last word stay, and only words without punctuation that differ are swapped,
    since a capital or a full stop in the wrong place would give the answer away; a sentence without
    such a pair is left out of both classes.
    """
    columns = {}
    for side, (snippets, _) in _split(read_snippets("editorials")).items():
        texts = [s.text for s in snippets]
        swappable = [(text, places) for text in texts if (places := _swappable(text.split()))]
        rows = []
        for rank, i in enumerate(hash_order(len(swappable), "word_order", side)):
            text, places = swappable[i]
            words = text.split()
            if rank % 2 == 0:
                at = places[stable_hash("swap", text) % len(places)]
                words[at], words[at + 1] = words[at + 1], words[at]
            rows.append((" ".join(words), rank % 2))
        columns[side] = labelled_columns(rows)
    return columns


def coherence() -> dict[str, dict[str, list]]:
    """Does the second sentence follow the first in one editorial (1), or come from another one (0)?

    Of all pairs of consecutive sentences every second one, in hashed order, has its second sentence
    replaced by the second sentence of a pair of another editorial of the same split.
    """
    columns = {}
    for side, (snippets, groups) in _split(read_snippets("editorials")).items():
        pairs = [
            (first.text, second.text, group)
            for first, second, group in zip(snippets, snippets[1:], groups, strict=False)
            if first.document == second.document and second.position == first.position + 1
        ]
        rows = []
        for rank, i in enumerate(hash_order(len(pairs), "coherence", side)):
            first, second, group = pairs[i]
            if rank % 2 == 0:
                draws = (stable_hash("stranger", first, second, n) % len(pairs) for n in count())
                second = next(pairs[j][1] for j in draws if pairs[j][2] != group)
            rows.append((first, second, rank % 2))
        columns[side] = labelled_columns(rows)
    return columns


def _swappable(words: list[str]) -> list[int]:
    """Positions of inner words that may change places with their right neighbour."""
    if len(words) < MIN_WORDS:
        return []
    return [
        i
        for i in range(1, len(words) - 2)
        if words[i].isalnum()
        and words[i + 1].isalnum()
        and words[i].casefold() != words[i + 1].casefold()
    ]


def _split(snippets: list[Snippet]) -> dict[str, tuple[list[Snippet], np.ndarray]]:
    """Snippets and the group of each, by side; a group never stands on both."""
    groups = _groups(snippets)
    validation, rows = set(), 0
    sizes = np.bincount(groups)
    for group in hash_order(len(sizes), "split", snippets[0].source):
        if rows >= VALIDATION_SHARE * len(snippets):
            break
        validation.add(group)
        rows += sizes[group]
    held_out = np.isin(groups, list(validation))
    return {
        side: ([snippets[i] for i in np.flatnonzero(mask)], groups[mask])
        for side, mask in (("train", ~held_out), ("validation", held_out))
    }


def _groups(snippets: list[Snippet]) -> np.ndarray:
    """The group of each snippet: documents that share a text, directly or by others, are one."""
    _, documents = np.unique([s.document for s in snippets], return_inverse=True)
    _, texts = np.unique([text_key(s.text) for s in snippets], return_inverse=True)
    n = documents.max() + 1
    # A bipartite graph: every snippet is an edge between its document and its text.
    size = n + texts.max() + 1
    graph = coo_array((np.ones(len(snippets)), (documents, n + texts)), shape=(size, size))
    _, component = connected_components(graph, directed=False)
    return component[documents]
