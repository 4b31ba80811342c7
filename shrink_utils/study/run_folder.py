"""A finished run on disk: written whole or not at all, and checked whenever it is read."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import psutil
from safetensors.torch import load_file, save_file
from torch import Tensor

from shrink_utils.models import save_classifier
from shrink_utils.training import FinetuneResult, RunConfig

__all__ = ["MODEL", "DamagedRunError", "Run", "load_run", "move_aside", "save_run"]

MANIFEST = "manifest.json"  # sha256 of every other file of the folder
MODEL = "model"  # the fine-tuned encoder and its head, as transformers saves them


class DamagedRunError(ValueError):
    """A run folder whose files are not those that were written."""


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes
    ----------
    config : RunConfig
    history : DataFrame
        One row a training step.
    evaluations : list of dict
        Validation metrics before training and after every epoch.
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
    """Read a run folder.

    Raises
    ------
    DamagedRunError
        If a file is missing, added to, or not what was written.
    """
    _verify(folder)
    metrics = _read_json(folder / "metrics.json")
    return Run(
        config=RunConfig(**_read_json(folder / "config.json")),
        history=pd.read_parquet(folder / "history.parquet"),
        evaluations=metrics["evaluations"],
        geometry=metrics["geometry"],
        embeddings=load_file(folder / "embeddings.safetensors"),
        provenance=_read_json(folder / "provenance.json"),
        folder=folder,
    )


def save_run(config: RunConfig, result: FinetuneResult, stamp: dict, target: Path) -> None:
    """Write beside the target, then rename: a folder of that name is always whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    prefix = f"{target.name}.{os.getpid()}."
    part = Path(tempfile.mkdtemp(prefix=prefix, suffix=".part", dir=target.parent))
    try:
        _write_json(part / "config.json", config.as_dict())
        metrics = {"evaluations": result.evaluations, "geometry": result.geometry}
        _write_json(part / "metrics.json", metrics)
        _write_json(part / "provenance.json", stamp)
        result.history.to_parquet(part / "history.parquet", index=False)
        save_file(
            {name: x.contiguous() for name, x in result.embeddings.items()},
            part / "embeddings.safetensors",
        )
        save_classifier(result.model, result.tokenizer, part / MODEL)
        files = sorted(path for path in part.rglob("*") if path.is_file())
        digests = {path.relative_to(part).as_posix(): _sha256(path) for path in files}
        _write_json(part / MANIFEST, digests)
        os.chmod(part, 0o755)  # mkdtemp makes it private
        part.rename(target)
    except OSError:
        if not target.exists():  # another process may have finished the same run first
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what a process that was killed while saving left behind."""
    for part in folder.glob("*.part"):
        if not psutil.pid_exists(int(part.name.split(".")[1])):
            shutil.rmtree(part, ignore_errors=True)


def _verify(folder: Path) -> None:
    try:
        manifest = _read_json(folder / MANIFEST)
        wrong = [name for name, digest in manifest.items() if _sha256(folder / name) != digest]
    except (OSError, ValueError) as error:
        raise DamagedRunError(f"run {folder.name} is damaged: {error}.") from error
    if wrong:
        raise DamagedRunError(f"run {folder.name} is damaged: {', '.join(wrong)} changed on disk.")


def move_aside(target: Path) -> Path:
    """Rename a damaged folder to ``<id>.damaged-<n>``, and say to what."""
    n = 1
    while (aside := target.with_name(f"{target.name}.damaged-{n}")).exists():
        n += 1
    return target.rename(aside)


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_json(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
