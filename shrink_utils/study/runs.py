"""A fine-tuning run: its name, its folder, and run or load: a run is computed once.

A run is named without the Trainer; what needs it loads it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch.distributed as dist

from shrink_utils import training  # its parts load the Trainer, for seconds, when a run is made
from shrink_utils.study.ablation import RUN
from shrink_utils.study.code_version import code_hash
from shrink_utils.study.results import (
    CONFIG,
    STAMP,
    Result,
    progress_bar,
    read_json,
    result_key,
    write_json,
)
from shrink_utils.text import hub_revisions
from shrink_utils.training import RunConfig, arm_options, used_precision

if TYPE_CHECKING:
    from torch import Tensor

    from shrink_utils.models import Encoder

NAMES = {"runs": "[0-9a-f]{16}", "measured": r"\w+-[0-9a-f]{16}"}  # of folders of results
MODEL = "model"  # in a folder beside the run's: encoder and head, as transformers saves them


@dataclass(frozen=True)
class Run:
    """A finished run."""

    config: RunConfig
    history: pd.DataFrame  # one row per training step
    # Of the validation rows before training and after every epoch: loss, metrics, anisotropy.
    evaluations: list[dict]
    # Before, after (n, d), labels (n,) and predictions (evaluations, n), of the same rows.
    embeddings: dict[str, Tensor]
    provenance: dict  # packages, device, threads, commit, seconds
    folder: Path


def run_id(config: RunConfig) -> str:
    """Sixteen hex digits: configuration, its arm's options, its model's commit, what computes it.

    The arm's own options count, not the other arms': a new arm leaves finished runs valid.
    """
    options, commit = arm_options(config.arm), hub_revisions().get(config.model)
    return result_key(config.as_dict(), options, commit, code=code_hash())


def keys_of(config: RunConfig) -> dict[str, object]:
    """What tells the runs of a study apart: model, task, arm, weight, seed."""
    return {name: getattr(config, name) for name in RUN}


def load_run(folder: Path) -> Run:
    """Read a run folder; `DamagedResultError` if any file is not as written."""
    from safetensors.torch import load_file

    Result(folder).verify()
    return Run(
        config=RunConfig(**read_json(folder / CONFIG)),
        history=pd.read_parquet(folder / "history.parquet"),
        evaluations=read_json(folder / "evaluations.json"),
        embeddings=load_file(folder / "embeddings.safetensors"),
        provenance=read_json(folder / STAMP),
        folder=folder,
    )


def kept_folders(folder: Path, kind: str) -> list[Path]:
    """Whole ``"runs"`` or ``"measured"`` tables: none that was moved aside or left half-way."""
    found = (folder / kind).glob("*")
    return sorted(path for path in found if re.fullmatch(NAMES[kind], path.name))


def newest_runs(folders: Iterable[Path]) -> dict[RunConfig, Path]:
    """The folder of each configuration: the newest one, where older code has left others.

    Left out is what this code cannot read: other results, fields or values of other code, damage.
    """
    known = {}
    for path in folders:
        try:
            config, stamp = RunConfig(**read_json(path / CONFIG)), read_json(path / STAMP)
        except (TypeError, ValueError):
            continue
        known[path] = str(stamp.get("time", "")), config  # all times are UTC and of one form
    return {known[path][1]: path for path in sorted(known, key=lambda path: known[path][0])}


def model_of(run: Path) -> Result:
    """Where a run's model is, if it was kept: a result beside the run, ``<id>.model``."""
    return Result(run.with_name(f"{run.name}.{MODEL}"))


def load_model(folder: Path) -> Path:
    """The model in such a folder; `DamagedResultError` if any file is not as written."""
    Result(folder).verify()
    return folder / MODEL


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
    from safetensors.torch import save_file

    since = time.perf_counter()
    result = training.finetune(config, on_row=on_row)
    if _rank() == 0:
        if keep_model:
            _save_model(config, result, target, since)
        processes = int(os.environ.get("WORLD_SIZE") or 1)
        facts = {"threads": config.threads, "precision": config.precision, "processes": processes}
        with Result(target).save(config.as_dict(), since=since, **facts) as part:
            write_json(part / "evaluations.json", result.evaluations)
            result.history.to_parquet(part / "history.parquet", index=False)
            embeddings = {name: x.contiguous() for name, x in result.embeddings.items()}
            save_file(embeddings, part / "embeddings.safetensors")
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
    _save_model(run.config, result, run.folder, since)


def _save_model(
    config: RunConfig, result: training.FinetuneResult, run: Path, since: float
) -> None:
    """Keep the model of a run in a folder beside it."""
    from shrink_utils.models import save_classifier

    with model_of(run).save(config.as_dict(), since=since) as part:
        save_classifier(result.model, result.tokenizer, part / MODEL)
