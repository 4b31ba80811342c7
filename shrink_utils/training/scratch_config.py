"""One pretraining, described completely: equal configurations give equal models."""

from __future__ import annotations

from dataclasses import dataclass, fields

from shrink_utils.models import OBJECTIVES, Trunk
from shrink_utils.names import unknown_name

__all__ = ["ScratchConfig"]


@dataclass(frozen=True, kw_only=True)
class ScratchConfig:
    """Objective, trunk, text and hyper-parameters of a model trained from nothing.

    Parameters
    ----------
    objective : str
        ``"mlm"``, ``"clm"`` or ``"mt"``, as in `scratch_model`.
    width, depth, heads, activation, dropout
        The `Trunk`.
    source : str
        Sentences and their translations, as in `load_pairs`.
    sentences : int or None
        At most so many to train on; None takes all.
    vocabulary : int
        Word-pieces at most.
    max_length : int
        Tokens kept of a sentence.
    steps, batch_size : int
        Optimizer steps; sentences a step.
    learning_rate, warmup : float
        Adam's highest rate, reached after the fraction `warmup` of the steps.
    masked : float
        Share of the tokens that a masked LM has to predict.
    seed : int
        Initial weights and dropout.
    data_seed : int
        Order of the sentences, and which of their words are masked.
    threads : int
        Torch threads; part of the configuration because it changes the last digits of sums.
    """

    objective: str
    width: int
    depth: int
    heads: int
    activation: str = "gelu"
    dropout: float = 0.1
    source: str
    sentences: int | None = None
    vocabulary: int
    max_length: int
    steps: int
    batch_size: int
    learning_rate: float
    warmup: float
    masked: float = 0.15
    seed: int
    data_seed: int = 0
    threads: int = 1

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise unknown_name("objective", "objective", self.objective, OBJECTIVES)
        _ = self.trunk  # refuses what cannot be built
        for name in ("steps", "batch_size", "threads"):
            _require(name, getattr(self, name), lambda v: v >= 1, "at least 1")
        for name in ("seed", "data_seed"):
            _require(name, getattr(self, name), lambda v: v >= 0, "0 or more")
        _require("sentences", self.sentences, lambda v: v is None or v >= 1, "at least 1, or None")
        _require("vocabulary", self.vocabulary, lambda v: v > 5, "above the 5 special tokens")
        _require("max_length", self.max_length, lambda v: v >= 3, "at least 3")
        _require("learning_rate", self.learning_rate, lambda v: 0 < v < 1, "between 0 and 1")
        _require("masked", self.masked, lambda v: 0 < v < 1, "between 0 and 1")
        _require("warmup", self.warmup, lambda v: 0 <= v < 1, "at least 0 and below 1")

    @property
    def trunk(self) -> Trunk:
        """The sizes that models of every objective share."""
        return Trunk(
            width=self.width,
            depth=self.depth,
            heads=self.heads,
            activation=self.activation,
            dropout=self.dropout,
        )

    @property
    def label(self) -> str:
        """How a person names the model."""
        sizes = f"{self.depth} × {self.width} {self.activation}"
        return f"{self.objective} · {sizes} · {self.source} · seed {self.seed}"

    def as_dict(self) -> dict[str, object]:
        """Plain values, in the order of the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _require(name: str, value: object, holds, expected: str) -> None:
    if not holds(value):
        raise ValueError(f"{name}: must be {expected}, found {value!r}")
