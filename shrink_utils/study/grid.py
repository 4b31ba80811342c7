"""The grid and the sweep: every run of a profile, computed or loaded, with progress."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from shrink_utils.study.cluster import cluster_client, compute_runs, scheduler_address
from shrink_utils.study.finetuned import run_or_load
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import Result, progress_bar
from shrink_utils.study.runs import Run, load_run, run_id
from shrink_utils.study.tables import keys_of
from shrink_utils.text import load_task
from shrink_utils.training import RunConfig


def run_grid(profile: Profile) -> list[Run]:
    """Every run of the profile's grid, in its order; those that exist are loaded.

    The others are computed in this process when the profile has one worker, else by so many
    processes, or on the Dask cluster at ``DASK_SCHEDULER_ADDRESS``: the numbers are the same.
    Processes of ``accelerate launch`` share every run instead.
    """
    return run_configs(profile.runs(), profile)


def run_sweep(profile: Profile) -> list[Run]:
    """Every run of the profile's weight sweep, as `run_grid` does it."""
    return run_configs(profile.sweep_runs(), profile)


def run_all(profile: Profile) -> list[Run]:
    """Grid, sweep and long runs, each once, under one progress bar."""
    return run_configs(profile.all_runs(), profile)


def histories(runs: Iterable[Run]) -> pd.DataFrame:
    """The steps of all runs in one tidy frame; model, task, arm, weight and seed come first."""
    frames = []
    for run in runs:
        frames.append(pd.DataFrame(keys_of(run.config), index=run.history.index).join(run.history))
    return pd.concat(frames, ignore_index=True)


def run_configs(configs: list[RunConfig], profile: Profile) -> list[Run]:
    """Some runs of a profile, as `run_grid` does it."""
    folder = profile.folder / "runs"
    names = [run_id(config) for config in configs]
    wanted = dict(zip(names, configs, strict=True))  # a configuration may stand there twice
    runs = {name: Result(folder / name).load(load_run) for name in wanted}
    missing = {name: config for name, config in wanted.items() if runs[name] is None}
    # Chapters read the models of the grid; those of the sweep are for the user.
    read = profile.all_runs() if profile.models_kept == "all" else profile.runs()
    keep = {name for name, config in missing.items() if config in read}
    steps = {name: _steps(config) for name, config in missing.items()}
    with progress_bar(total=sum(steps.values()), unit="step") as bar:
        progress = _Progress(bar, missing, steps)
        workers = min(profile.workers, len(missing))
        shared = int(os.environ.get("WORLD_SIZE") or 1) > 1
        if not shared and (workers > 1 or (missing and scheduler_address())):
            bar.set_description_str("waiting for workers")
            with cluster_client(workers=workers) as client:
                compute_runs(client, missing, folder, keep=keep, on_step=progress.at)
            runs |= {name: load_run(folder / name) for name in missing}
        else:
            for name, config in missing.items():
                runs[name] = progress.run_here(config, folder, keep_model=name in keep)
        bar.set_description_str(f"{len(configs)} runs")
    return [runs[name] for name in names]


class _Progress:
    """One bar for the steps of all runs: a run may go back to its start, or begin in its middle."""

    def __init__(self, bar: tqdm, configs: dict[str, RunConfig], steps: dict[str, int]) -> None:
        self._bar, self._configs, self._steps = bar, configs, steps
        self._made: dict[str, int] = {}
        self._description = ""

    def at(self, name: str, step: int) -> None:
        """The run of that name has made so many steps."""
        self._bar.update(step - self._made.get(name, 0))
        self._made[name] = step
        running = [name for name, made in self._made.items() if made < self._steps[name]]
        if len(running) > 1:
            self._describe(f"{len(running)} runs in flight")
        elif running:
            self._describe(self._configs[running[0]].label)

    def run_here(self, config: RunConfig, folder: Path, *, keep_model: bool) -> Run:
        """Compute a run in this process."""
        name = run_id(config)
        self.at(name, 0)

        def tell(row: dict) -> None:
            self.at(name, row["step"])

        return run_or_load(config, folder, on_row=tell, keep_model=keep_model)

    def _describe(self, text: str) -> None:
        if text != self._description:  # to set it draws the bar, however short ago it was drawn
            self._bar.set_description_str(text)
            self._description = text


def _steps(config: RunConfig) -> int:
    rows = len(load_task(config.task, max_train=config.train_rows, seed=config.seed)["train"])
    return config.epochs * math.ceil(rows / config.batch_size)
