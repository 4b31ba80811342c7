"""Earlier records read again at equal validation score and at equal validation loss: exploratory.

`python data/reference/heldout/earlier.py` prints selected bars minus all bars after the 24 steps of
profile strength, and what its ten epochs show. It decides nothing: the records had been seen.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))
from decide import LEVEL, NONE, PROMINENT, Found, Key, jackknife, read_off

STRENGTH = Path(__file__).resolve().parents[1] / "strength"
SCORES, LOSSES = (0.4, 0.35, 0.3, 0.25, 0.2), (0.49, 0.5, 0.51, 0.52)


class Earlier(NamedTuple):
    """Runs of one arm at one weight, seeds in order: of the validation rows, at the end."""

    score: np.ndarray  # (seeds,), as are the next
    loss: np.ndarray
    within: np.ndarray
    silhouette: np.ndarray
    correct: np.ndarray  # (seeds, rows)


def earlier_runs(epochs: int, *, last: int) -> dict[Key, Earlier]:
    """Cells of profile strength, of the last epochs."""
    tables = {}
    for name in ("evaluations", "correct"):
        table = pd.read_parquet(STRENGTH / f"{name}.parquet")
        table = table[table.epochs == epochs]
        tables[name] = table.assign(weight=table.weight.where(table.arm != "none", 0.0))
    seen, found = tables["evaluations"], {}
    seen = seen[seen.epoch > seen.epoch.max() - last]
    for key, of in seen.groupby(["arm", "weight"]):
        correct = tables["correct"]
        correct = correct[(correct.arm == key[0]) & (correct.weight == key[1])]
        mean = of.groupby("seed").mean(numeric_only=True)
        found[key] = Earlier(
            *(mean[name].to_numpy() for name in ("centred_1", "loss", "within_1", "silhouette")),
            correct.pivot(index="seed", columns="row", values="correct").to_numpy(),
        )
    return found


def selected_minus_all(runs: dict, seeds: Sequence[int], *, by: str, at: float, of: str) -> Found:
    """A quantity where both sweeps pass a score or a loss."""
    ours, theirs = (
        read_off(
            runs, [NONE, *sorted(k for k in runs if k[0] == arm)], seeds, by=by, target=at, of=of
        )
        for arm in ("prominent", "all")
    )
    return Found(ours.value - theirs.value, ours.passed and theirs.passed)


def print_all() -> None:
    """Both lengths, 95 % intervals."""
    short, long = earlier_runs(3, last=1), earlier_runs(10, last=3)
    asked = [(short, "24 steps", "score", at, "correct") for at in SCORES]
    asked += [(short, "24 steps", "loss", at, of) for at in LOSSES
              for of in ("correct", "score", "within", "silhouette")]  # fmt: skip
    target = long[PROMINENT].score.mean()
    asked += [(long, "10 epochs", "score", at, of) for at in (target, 0.78)
              for of in ("correct", "loss", "within", "silhouette")]  # fmt: skip
    for runs, length, by, at, of in asked:
        mean, passed = jackknife(partial(selected_minus_all, by=by, at=at, of=of), runs)
        low, high = mean.interval(LEVEL)
        note = "" if passed else "  (a sweep does not reach it)"
        print(f"{length}, {by} {at:.3f}: {of} {mean.estimate:+.3f} [{low:+.3f}, {high:+.3f}]{note}")


if __name__ == "__main__":
    print_all()
