"""Run or load: a fine-tuning run is computed once, in this process."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch.distributed as dist

from shrink_utils.models import Encoder, load_encoder
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import Result
from shrink_utils.study.runs import Run, checked_model, load_run, run_id, save_run
from shrink_utils.training import RunConfig, finetune, used_precision


def run_or_load(
    config: RunConfig, folder: Path, *, on_row: Callable[[dict], None] | None = None
) -> Run:
    """The run of `config`: loaded from `folder` when it is there and whole, else computed.

    `folder` is where runs are kept, ``results/<profile>/runs``; `on_row` is called after every
    training step. A damaged run is moved aside (``<id>.damaged-<n>``), with a warning, and computed
    again. A long run that was ended goes on from its last checkpoint (in ``<id>.checkpoints``).
    """
    target = folder / run_id(config)
    return Result(target).load_or_compute(
        load_run, lambda: _compute(config, target, on_row), lock=_rank() == 0
    )


def _rank() -> int:
    """This process among those that share every run (``accelerate launch``, ``torchrun``); else 0.

    The first one, 0, writes; the others are with it inside its lock.
    """
    return int(os.environ.get("RANK") or 0)


def _compute(config: RunConfig, target: Path, on_row: Callable[[dict], None] | None) -> None:
    checkpoints = target.with_name(f"{target.name}.checkpoints")
    since = time.perf_counter()  # or the last checkpoint
    result = finetune(config, on_row=on_row, checkpoints=checkpoints)
    if _rank() == 0:
        save_run(
            config,
            result,
            target,
            since=since,
            threads=config.threads,
            precision=used_precision(config),
            processes=int(os.environ.get("WORLD_SIZE") or 1),
        )
        shutil.rmtree(checkpoints, ignore_errors=True)
    if dist.is_available() and dist.is_initialized():
        dist.barrier()  # all are to find it


def run_encoder(run: Run, *, device: str = "cpu") -> Encoder:
    """The fine-tuned encoder of a run, without its head, for reading its layers.

    A model that was damaged is trained again, as the whole run is, with a warning.
    """
    model = Result(run.folder).load(checked_model)
    if model is None:
        model = checked_model(run_or_load(run.config, run.folder.parent).folder)
    encoder = load_encoder(str(model), device=device)
    return replace(encoder, name=run.config.label)


def default_run(profile: Profile, *, arm: str) -> Run:
    """The profile's first model, task and seed under `arm`: the run that notebooks look into."""
    for config in profile.runs():
        if config.arm == arm:
            return run_or_load(config, profile.folder / "runs")
    raise ValueError(f"arm: profile {profile.name} runs no arm {arm!r}")
