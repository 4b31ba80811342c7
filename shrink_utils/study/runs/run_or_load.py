"""Run or load: a run lives in a folder named by what it is, and is computed once."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import torch.distributed as dist

from shrink_utils.models import Encoder, load_encoder
from shrink_utils.study.profiles import Profile
from shrink_utils.study.provenance import provenance
from shrink_utils.study.runs.folder import Run, checked_model, load_run, save_run
from shrink_utils.study.runs.ids import run_id
from shrink_utils.study.runs.once import alone
from shrink_utils.study.runs.whole_folder import load_whole
from shrink_utils.training import RunConfig, finetune, used_precision

__all__ = ["default_run", "run_encoder", "run_id", "run_or_load"]


def run_or_load(
    config: RunConfig, folder: Path, *, on_row: Callable[[dict], None] | None = None
) -> Run:
    """The run of `config`: loaded from `folder` when it is there and whole, else computed.

    A damaged run is moved aside (``<id>.damaged-<n>``), with a warning, and computed again. A long
    run that was ended goes on from its last checkpoint (in ``<id>.checkpoints``).

    Parameters
    ----------
    config : RunConfig
    folder : Path
        Where runs are kept, ``results/<profile>/runs``.
    on_row : callable, optional
        Called after every training step (not when the run is loaded).
    """
    target = folder / run_id(config)
    if (run := load_whole(target, load_run)) is not None:
        return run
    with alone(target) if _rank() == 0 else nullcontext():  # the others of a run are with the first
        if not target.exists():  # else another process has computed it in the meantime
            _compute(config, target, on_row)
    return load_run(target)


def _rank() -> int:
    """This process among those that share every run (``accelerate launch``, ``torchrun``); else 0.

    The first one, 0, writes.
    """
    return int(os.environ.get("RANK") or 0)


def _compute(config: RunConfig, target: Path, on_row: Callable[[dict], None] | None) -> None:
    checkpoints = target.with_name(f"{target.name}.checkpoints")
    started = time.perf_counter()
    result = finetune(config, on_row=on_row, checkpoints=checkpoints)
    stamp = {**provenance(), "threads": config.threads, "precision": used_precision(config)}
    stamp["processes"] = int(os.environ.get("WORLD_SIZE") or 1)
    stamp["seconds"] = round(time.perf_counter() - started, 1)  # since the last checkpoint, if any
    if _rank() == 0:
        save_run(config, result, stamp, target)
        shutil.rmtree(checkpoints, ignore_errors=True)
    if dist.is_available() and dist.is_initialized():
        dist.barrier()  # all are to find it


def run_encoder(run: Run, *, device: str = "cpu") -> Encoder:
    """The fine-tuned encoder of a run, without its head, for reading its layers.

    A model that was damaged is trained again, as the whole run is, with a warning.
    """
    model = load_whole(run.folder, checked_model)
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
