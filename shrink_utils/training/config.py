"""One fine-tuning run, described completely: equal configurations give equal results."""

from __future__ import annotations

from dataclasses import dataclass, fields

from shrink_utils.models import POOLINGS
from shrink_utils.text import task_spec
from shrink_utils.training.arms import arm_options

__all__ = ["PRECISIONS", "SCHEDULES", "RunConfig"]

PRECISIONS = ("float32", "bfloat16")

# What follows the warm-up, and transformers' name for it. STL's text names the warm-up alone; its
# published notebook uses a cosine.
SCHEDULES = {"constant": "constant_with_warmup", "linear": "linear", "cosine": "cosine"}


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """(model, task, arm, seed, hyper-parameters) of a run.

    Parameters
    ----------
    model, task, arm : str
        Names that `load_classifier`, `load_task` and `ARMS` know.
    seed : int
        Classifier head, order of the rows, choice of the training rows and dropout.
    train_rows, eval_rows : int or None
        At most so many rows; None takes all.
    epochs, batch_size : int
        Passes over the rows; rows a step (the regularizer's point clouds come from one batch).
    accumulation : int
        Parts that a step's rows are taken in, one after the other: less memory. The regularizer
        then sees the clouds of a part, as in STL's published notebook (8 parts of 8 rows).
    precision : str
        ``"float32"``, or ``"bfloat16"`` where the device has it (on any other it is float32).
    learning_rate, weight_decay, warmup : float
        AdamW; linear warm-up over the fraction `warmup` of the steps.
    schedule : str
        What follows the warm-up: ``"constant"``, ``"linear"`` or ``"cosine"`` (decay to 0).
    max_length : int
        Tokens kept of a text.
    pooling : str
        What the regularizer sees: ``"cls"``, ``"mean"`` or ``"first_last"``.
    weight : float
        Factor of the entropies in the loss.
    threads : int
        Torch threads; part of the configuration because it changes the last digits of sums.
    """

    model: str
    task: str
    arm: str
    seed: int
    train_rows: int | None
    eval_rows: int | None
    epochs: int
    learning_rate: float
    weight_decay: float
    max_length: int
    batch_size: int = 64
    accumulation: int = 1
    precision: str = "float32"
    warmup: float = 0.1
    schedule: str = "constant"
    pooling: str = "cls"
    weight: float = 1.0
    threads: int = 1

    def __post_init__(self) -> None:
        task_spec(self.task)  # raises on an unknown name
        arm_options(self.arm)
        if self.pooling not in POOLINGS:
            raise ValueError(f"pooling: {self.pooling!r} is none of {', '.join(POOLINGS)}")
        if self.schedule not in SCHEDULES:
            raise ValueError(f"schedule: {self.schedule!r} is none of {', '.join(SCHEDULES)}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision: {self.precision!r} is none of {', '.join(PRECISIONS)}")
        for name in ("epochs", "batch_size", "accumulation", "max_length", "threads"):
            _require(name, getattr(self, name), lambda v: v >= 1, "at least 1")
        if self.batch_size % self.accumulation:
            raise ValueError(
                f"accumulation: must divide the batch size {self.batch_size}, "
                f"found {self.accumulation}"
            )
        for name in ("train_rows", "eval_rows"):
            _require(name, getattr(self, name), lambda v: v is None or v >= 2, "at least 2")
        for name in ("weight_decay", "weight", "seed"):
            _require(name, getattr(self, name), lambda v: v >= 0, "0 or more")
        _require("learning_rate", self.learning_rate, lambda v: 0 < v < 1, "between 0 and 1")
        _require("warmup", self.warmup, lambda v: 0 <= v < 1, "at least 0 and below 1")

    @property
    def label(self) -> str:
        """How a person names the run."""
        return f"{self.model} · {self.task} · {self.arm} · seed {self.seed}"

    def as_dict(self) -> dict[str, object]:
        """Plain values, in the order of the fields."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _require(name: str, value: object, holds, expected: str) -> None:
    if not holds(value):
        raise ValueError(f"{name}: must be {expected}, found {value!r}")
