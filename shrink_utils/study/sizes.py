"""Sizes of what notebooks 09 and 10 train and measure: one table each in a profile's TOML file."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SIZES", "Dynamics", "Family", "Heuristics", "Pretraining", "Stitching"]


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """The trunk that every objective trains here, and what it is trained on.

    Attributes
    ----------
    source : str
        A corpus of `text.load_sentences`, or the id of a data set of sentence pairs on the hub.
    sentences : int or None
        How many of it; None takes all.
    vocabulary : int
        Word-pieces of the tokenizer, which is trained on the same sentences.
    width, depth, heads : int
        Of the trunk; its feed-forward layers are four times as wide.
    max_length : int
        Tokens; longer sentences are cut.
    steps, batch_size, learning_rate, warmup
        Of AdamW; warm-up as a share of the steps.
    seeds : tuple of int
        Models that differ in nothing but their initial weights.
    """

    source: str
    sentences: int | None = None
    vocabulary: int
    width: int
    depth: int
    heads: int
    max_length: int
    steps: int
    batch_size: int
    learning_rate: float
    warmup: float
    seeds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Stitching:
    """How many held-out sentences a stitch is judged on, and how long one is trained."""

    sentences: int
    steps: int
    warmup: int


@dataclass(frozen=True, kw_only=True)
class Heuristics:
    """Models of either kind, the examples they see, and how long they train.

    `generalizing` and `heuristic` name models of a hub; empty, both groups are trained here.
    """

    models: int
    train_rows: int
    test_rows: int
    steps: int
    learning_rate: float
    generalizing: tuple[str, ...] = ()
    heuristic: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Family:
    """Widths and depths of models of one family, or the ids of its members on a hub."""

    widths: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    sentences: int


@dataclass(frozen=True, kw_only=True)
class Dynamics:
    """Sentences of the fixed set on which the loss is allocated, and the steps followed."""

    sentences: int
    steps: int
    data_sizes: tuple[int, ...]
    sources: tuple[str, ...]


SIZES = {
    "pretraining": Pretraining,
    "stitching": Stitching,
    "heuristics": Heuristics,
    "family": Family,
    "dynamics": Dynamics,
}
