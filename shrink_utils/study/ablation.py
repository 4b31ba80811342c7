"""The ablation grid: every (model, task, arm, seed) of a profile, run or loaded, with progress."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from shrink_utils.study.profiles import Profile
from shrink_utils.study.progress import progress_bar
from shrink_utils.study.run_folder import Run
from shrink_utils.study.runs import run_id, run_or_load
from shrink_utils.text import load_task
from shrink_utils.training import RunConfig

__all__ = ["histories", "run_grid"]


def run_grid(profile: Profile) -> list[Run]:
    """Every run of the profile, in the grid's order; those that exist are loaded.

    One progress bar counts the training steps still to do and says how long they will take.
    """
    folder = profile.folder / "runs"
    configs = profile.runs()
    missing = [config for config in configs if not (folder / run_id(config)).exists()]
    total = sum(_steps(config) for config in missing)
    with progress_bar(total=total, unit="step") as bar:
        runs = []
        for config in configs:
            bar.set_description_str(config.label)
            runs.append(run_or_load(config, folder, on_row=lambda row: bar.update()))
        bar.set_description_str(f"{len(runs)} runs")
    return runs


def histories(runs: Iterable[Run]) -> pd.DataFrame:
    """The steps of all runs in one tidy frame, with columns model, task, arm and seed in front."""
    frames = []
    for run in runs:
        keys = {name: getattr(run.config, name) for name in ("model", "task", "arm", "seed")}
        frames.append(pd.DataFrame(keys, index=run.history.index).join(run.history))
    return pd.concat(frames, ignore_index=True)


def _steps(config: RunConfig) -> int:
    rows = len(load_task(config.task, max_train=config.train_rows, seed=config.seed)["train"])
    return config.epochs * math.ceil(rows / config.batch_size)
