"""Labelled tasks under one face: a train and a validation split with text, text_pair and label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from shrink_utils.names import unknown_name
from shrink_utils.text.corpora import CORPORA, check_maximum, hash_order
from shrink_utils.text.glue import read_glue
from shrink_utils.text.offline import coherence, sentiment, word_order

if TYPE_CHECKING:  # datasets is loaded with the first rows, not with a task's name
    from datasets import DatasetDict


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
    if name in TASKS:
        return TASKS[name]
    raise unknown_name("name", "task", name, TASKS)


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
