"""Labelled tasks under one face: a train and a validation split with text, text_pair and label.

Six are made from the rated snippets: nothing to fetch but one small archive. Every split of these
is by document, four fifths to train and one to validate, and documents that share a text (an
editorial reprinted, "I love it!" in two reviews) go to the same side: no text of the validation
split was seen in training. All choices are hashes of what is chosen from, so they are the same in
every process and with every version of every library.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from shrink_utils.names import known_name
from shrink_utils.text.corpora import (
    CORPORA,
    Snippet,
    check_maximum,
    hash_order,
    read_snippets,
    stable_hash,
    text_key,
)
from shrink_utils.text.glue import labelled_columns, read_glue

if TYPE_CHECKING:  # datasets is loaded with the first rows, not with a task's name
    from datasets import DatasetDict


MIN_RATING = 0.5
MIN_WORDS = 5
VALIDATION_SHARE = 0.2


@dataclass(frozen=True, kw_only=True)
class TaskSpec:
    """What a task is.

    ``metrics`` are out of "accuracy", "f1", "matthews" and "spearman", the task's own first.
    ``build`` makes the columns of both splits from ``vader_sentiment``; None for a task of GLUE.
    """

    name: str
    metrics: tuple[str, ...]
    label_names: tuple[str, ...]  # () for a regression
    is_pair: bool = False
    build: Callable[[], dict[str, dict[str, list]]] | None = field(default=None, repr=False)

    @property
    def offline(self) -> bool:
        """Whether it needs neither GLUE nor the hub."""
        return self.build is not None

    @property
    def is_regression(self) -> bool:
        return not self.label_names

    @property
    def n_labels(self) -> int:
        """Number of classes; 1, the single output, for a regression."""
        return len(self.label_names) or 1


def _spec(name: str, metrics: str, labels: str = "", **options: object) -> TaskSpec:
    return TaskSpec(
        name=name, metrics=tuple(metrics.split()), label_names=tuple(labels.split()), **options
    )


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
    """Snippets and the group of each, by side; a group never stands on both.

    Documents that share a text, directly or by others, are one group.
    """
    _, documents = np.unique([s.document for s in snippets], return_inverse=True)
    _, texts = np.unique([text_key(s.text) for s in snippets], return_inverse=True)
    n = documents.max() + 1
    # A bipartite graph: every snippet is an edge between its document and its text.
    size = n + texts.max() + 1
    graph = coo_array((np.ones(len(snippets)), (documents, n + texts)), shape=(size, size))
    groups = connected_components(graph, directed=False)[1][documents]
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


TASKS = {
    spec.name: spec
    for spec in (
        *(
            _spec(f"sentiment_{s}", "accuracy f1", "negative positive", build=partial(sentiment, s))
            for s in CORPORA
        ),
        _spec("word_order", "matthews accuracy", "swapped acceptable", build=word_order),
        _spec("coherence", "accuracy f1", "unrelated consecutive", is_pair=True, build=coherence),
        _spec("cola", "matthews accuracy", "unacceptable acceptable"),
        _spec("sst2", "accuracy", "negative positive"),
        _spec("mrpc", "accuracy f1", "not_equivalent equivalent", is_pair=True),
        _spec("qqp", "accuracy f1", "not_duplicate duplicate", is_pair=True),
        _spec("stsb", "spearman", is_pair=True),
        _spec("mnli", "accuracy", "entailment neutral contradiction", is_pair=True),
        _spec("qnli", "accuracy", "entailment not_entailment", is_pair=True),
        _spec("rte", "accuracy", "entailment not_entailment", is_pair=True),
        _spec("wnli", "accuracy", "not_entailment entailment", is_pair=True),
    )
}


def task_spec(name: str) -> TaskSpec:
    """The description of a task; an unknown name is a ``ValueError`` with the nearest one."""
    return TASKS[known_name("name", "task", name, TASKS)]


def load_task(
    name: str, *, max_train: int | None = None, max_eval: int | None = None, seed: int = 0
) -> DatasetDict:
    """Load a task.

    Parameters
    ----------
    name
        A key of `TASKS`.
    max_train, max_eval
        At most so many rows of a split; all of them, in the order of the file, when None.
    seed
        Chooses the training rows and their order when ``max_train`` is given. The validation rows
        are the same for every seed, so that seeds are compared on one set.

    Returns
    -------
    datasets.DatasetDict
        Splits ``train`` and ``validation`` with columns ``text``, ``text_pair`` (None where the
        task is of single sentences) and ``label`` (a `ClassLabel`; float for a regression).

    Raises
    ------
    ValueError
        Unknown task; a maximum below 1.
    ConnectionError, FileNotFoundError
        The task's source cannot be had; see `fetch` and `read_glue`.
    """
    from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

    spec = task_spec(name)
    check_maximum("max_train", max_train, "rows")
    check_maximum("max_eval", max_eval, "rows")
    columns = spec.build() if spec.build else read_glue(name)
    label = Value("float32") if spec.is_regression else ClassLabel(names=list(spec.label_names))
    features = Features({"text": Value("string"), "text_pair": Value("string"), "label": label})
    splits = DatasetDict(
        {split: Dataset.from_dict(rows, features=features) for split, rows in columns.items()}
    )
    for split, most, salt in (("train", max_train, [seed]), ("validation", max_eval, [])):
        if most is not None:
            order = hash_order(len(splits[split]), name, split, *salt)
            splits[split] = splits[split].select(order[:most])
    return splits
