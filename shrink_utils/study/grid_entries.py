"""Lines of the ablation grid and of the weight sweep, as a profile's TOML file has them."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GridEntry", "SweepEntry"]


@dataclass(frozen=True, kw_only=True)
class GridEntry:
    """One task of the ablation: its arms, its size and its hyper-parameters.

    `train_rows` and `eval_rows` of None take every row. The other fields are `RunConfig`'s.
    """

    task: str
    arms: tuple[str, ...]
    max_length: int
    learning_rate: float
    weight_decay: float
    train_rows: int | None = None
    eval_rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class SweepEntry:
    """One arm of the weight sweep, on a task of the grid and with its hyper-parameters."""

    task: str
    arm: str
    weights: tuple[float, ...]
