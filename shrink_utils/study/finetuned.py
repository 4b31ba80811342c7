"""Run or load: a fine-tuning run is computed once, in this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch.distributed as dist

from shrink_utils import training  # its parts load the Trainer, for seconds, when a run is made
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import Result, progress_bar
from shrink_utils.study.runs import (
    Run,
    load_model,
    load_run,
    model_of,
    run_id,
    save_model,
    save_run,
)
from shrink_utils.training import RunConfig, used_precision

if TYPE_CHECKING:
    from shrink_utils.models import Encoder


def run_or_load(
    config: RunConfig,
    folder: Path,
    *,
    on_row: Callable[[dict], None] | None = None,
    keep_model: bool = True,
) -> Run:
    """The run of `config`: loaded from `folder` when it is there and whole, else computed.

    `folder` is where runs are kept, ``results/<profile>/runs``; `on_row` is called after every
    training step; `keep_model` saves the model of a run that is computed beside it. A damaged run
    is moved aside (``<id>.damaged-<n>``), with a warning, and computed again.
    """
    config = replace(config, precision=used_precision(config.precision))
    target = folder / run_id(config)
    return Result(target).load_or_compute(
        load_run, lambda: _compute(config, target, on_row, keep_model), lock=_rank() == 0
    )


def _rank() -> int:
    """This process among those that share every run (``accelerate launch``, ``torchrun``); else 0.

    The first one, 0, writes; the others are with it inside its lock.
    """
    return int(os.environ.get("RANK") or 0)


def _compute(
    config: RunConfig, target: Path, on_row: Callable[[dict], None] | None, keep_model: bool
) -> None:
    since = time.perf_counter()
    result = training.finetune(config, on_row=on_row)
    if _rank() == 0:
        if keep_model:
            save_model(config, result, target, since=since)
        processes = int(os.environ.get("WORLD_SIZE") or 1)
        facts = {"threads": config.threads, "precision": config.precision, "processes": processes}
        save_run(config, result, target, since=since, **facts)
    if dist.is_available() and dist.is_initialized():
        dist.barrier()  # all are to find it


def run_encoder(run: Run, *, device: str = "cpu") -> Encoder:
    """The fine-tuned encoder of a run, without its head, for reading its layers.

    A model that was not kept is trained again, and one that was damaged, with a warning.
    """
    from shrink_utils.models import load_encoder  # and transformers, which no finished run needs

    model = model_of(run.folder).load_or_compute(load_model, lambda: _train_again(run))
    return replace(load_encoder(str(model), device=device), name=run.config.label)


def _train_again(run: Run) -> None:
    since, label = time.perf_counter(), f"{run.config.label}, whose model was not kept"
    with progress_bar(total=len(run.history), unit="step", description=label) as bar:
        result = training.finetune(run.config, on_row=lambda row: bar.update())
    save_model(run.config, result, run.folder, since=since)


def default_run(profile: Profile, *, arm: str) -> Run:
    """The profile's first model, task and seed under `arm`: the run that notebooks look into."""
    for config in profile.runs():
        if config.arm == arm:
            return run_or_load(config, profile.folder / "runs")
    raise ValueError(f"arm: profile {profile.name} runs no arm {arm!r}")
