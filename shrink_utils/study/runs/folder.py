"""A finished fine-tuning run on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from safetensors.torch import load_file, save_file
from torch import Tensor

from shrink_utils.study.runs.whole_folder import (
    DamagedRunError,
    read_json,
    verify,
    write_json,
    written_whole,
)
from shrink_utils.training import RunConfig

if TYPE_CHECKING:
    from shrink_utils.training import FinetuneResult

__all__ = ["MODEL", "DamagedRunError", "Run", "checked_model", "load_run", "save_run"]

MODEL = "model"  # the fine-tuned encoder and its head, as transformers saves them


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    config : RunConfig
    history : DataFrame
        One row a training step.
    evaluations : list of dict
        Validation metrics before training and after it.
    geometry : dict
        Anisotropy scores of the validation rows, ``before`` and ``after``, ``raw`` and ``centred``.
    embeddings : dict of Tensor
        ``before``, ``after`` (n, d) and ``labels`` (n,) of the validation rows.
    provenance : dict
        Packages, device, threads, commit, seconds.
    folder : Path
        Where it is kept; ``folder / "model"`` loads in transformers like any local model.
    """

    config: RunConfig
    history: pd.DataFrame
    evaluations: list[dict]
    geometry: dict[str, dict[str, list[float]]]
    embeddings: dict[str, Tensor]
    provenance: dict
    folder: Path


def load_run(folder: Path) -> Run:
    """Read a run folder, but for its model: gigabytes in all, see `checked_model`.

    Raises
    ------
    DamagedRunError
        If a file is missing, or one that is read is not what was written.
    """
    verify(folder, unread=MODEL)
    metrics = read_json(folder / "metrics.json")
    return Run(
        config=RunConfig(**read_json(folder / "config.json")),
        history=pd.read_parquet(folder / "history.parquet"),
        evaluations=metrics["evaluations"],
        geometry=metrics["geometry"],
        embeddings=load_file(folder / "embeddings.safetensors"),
        provenance=read_json(folder / "provenance.json"),
        folder=folder,
    )


def checked_model(folder: Path) -> Path:
    """Where a run's model is; all files of the run are what was written.

    Raises
    ------
    DamagedRunError
        If a file is missing, or not what was written.
    """
    verify(folder)
    return folder / MODEL


def save_run(config: RunConfig, result: FinetuneResult, stamp: dict, target: Path) -> None:
    """Write beside the target, then rename: a folder of that name is always whole."""
    from shrink_utils.models import save_classifier

    with written_whole(target) as part:
        write_json(part / "config.json", config.as_dict())
        metrics = {"evaluations": result.evaluations, "geometry": result.geometry}
        write_json(part / "metrics.json", metrics)
        write_json(part / "provenance.json", stamp)
        result.history.to_parquet(part / "history.parquet", index=False)
        save_file(
            {name: x.contiguous() for name, x in result.embeddings.items()},
            part / "embeddings.safetensors",
        )
        save_classifier(result.model, result.tokenizer, part / MODEL)
