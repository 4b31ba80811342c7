"""Run or load: a run lives in a folder named by what it is, and is computed once."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pandas as pd
import psutil
from safetensors.torch import load_file, save_file
from torch import Tensor

from shrink_utils.study.dependencies import code_version
from shrink_utils.study.profiles import Profile
from shrink_utils.study.provenance import provenance
from shrink_utils.training import RunConfig, arm_options, finetune

__all__ = ["DamagedRunError", "Run", "default_run", "load_run", "run_id", "run_or_load"]

MANIFEST = "manifest.json"  # sha256 of every other file of the folder


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
    """

    config: RunConfig
    history: pd.DataFrame
    evaluations: list[dict]
    geometry: dict[str, dict[str, list[float]]]
    embeddings: dict[str, Tensor]
    provenance: dict


@cache
def _computed_by() -> dict[str, str]:
    """The code that computes a run, the list of arms left out, and the libraries below it."""
    code = code_version("shrink_utils.training.finetune", but="shrink_utils.training.arms")
    return {"code": code, **{name: version(name) for name in ("torch", "transformers", "gudhi")}}


def run_id(config: RunConfig) -> str:
    """Hash of the configuration, its arm's options and what computes it, 16 hex digits.

    The arm's own options count, not the other arms': a new arm leaves finished runs valid.
    """
    parts = [config.as_dict(), arm_options(config.arm), _computed_by()]
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def run_or_load(
    config: RunConfig, folder: Path, *, on_row: Callable[[dict], None] | None = None
) -> Run:
    """The run of `config`: loaded from `folder` when it is there and whole, else computed.

    A damaged run is moved aside (``<id>.damaged-<n>``), with a warning, and computed again.

    Parameters
    ----------
    config : RunConfig
    folder : Path
        Where runs are kept, ``results/<profile>/runs``.
    on_row : callable, optional
        Called after every training step (not when the run is loaded).
    """
    target = folder / run_id(config)
    if target.exists():
        try:
            return load_run(target)
        except DamagedRunError as damage:
            aside = _move_aside(target)
            warnings.warn(f"{damage} Moved to {aside.name}, running again.", stacklevel=2)
    started = time.perf_counter()
    result = finetune(config, on_row=on_row)
    stamp = {**provenance(), "threads": config.threads}
    stamp["seconds"] = round(time.perf_counter() - started, 1)
    run = Run(
        config=config,
        history=result.history,
        evaluations=result.evaluations,
        geometry=result.geometry,
        embeddings=result.embeddings,
        provenance=stamp,
    )
    _save(run, target)
    return load_run(target)


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
    )


def default_run(profile: Profile, *, arm: str) -> Run:
    """The profile's first model, task and seed under `arm`: the run that notebooks look into."""
    for config in profile.runs():
        if config.arm == arm:
            return run_or_load(config, profile.folder / "runs")
    raise ValueError(f"arm: profile {profile.name} runs no arm {arm!r}")


def _save(run: Run, target: Path) -> None:
    """Write beside the target, then rename: a folder of that name is always whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent)
    prefix = f"{target.name}.{os.getpid()}."
    part = Path(tempfile.mkdtemp(prefix=prefix, suffix=".part", dir=target.parent))
    try:
        _write_json(part / "config.json", run.config.as_dict())
        _write_json(
            part / "metrics.json", {"evaluations": run.evaluations, "geometry": run.geometry}
        )
        _write_json(part / "provenance.json", run.provenance)
        run.history.to_parquet(part / "history.parquet", index=False)
        save_file(
            {name: x.contiguous() for name, x in run.embeddings.items()},
            part / "embeddings.safetensors",
        )
        _write_json(part / MANIFEST, {p.name: _sha256(p) for p in sorted(part.iterdir())})
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


def _move_aside(target: Path) -> Path:
    n = 1
    while (aside := target.with_name(f"{target.name}.damaged-{n}")).exists():
        n += 1
    return target.rename(aside)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _read_json(path: Path):
    return json.loads(path.read_text(encoding="utf-8"))


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
