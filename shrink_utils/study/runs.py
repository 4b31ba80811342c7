"""A fine-tuning run: its name, and its folder when it is finished.

A run is named and listed without torch; to read or write its vectors and its model imports it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import CONFIG, STAMP, Result, key_of, read_json, write_json
from shrink_utils.study.staleness import code_hash
from shrink_utils.text import hub_revisions
from shrink_utils.training import RunConfig, arm_options

if TYPE_CHECKING:
    from torch import Tensor

    from shrink_utils.training import FinetuneResult

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
    return key_of(config.as_dict(), options, commit, code=code_hash())


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


def save_run(
    config: RunConfig, result: FinetuneResult, target: Path, *, since: float, **facts: object
) -> None:
    """Write a run's folder, as `Result.save` does; `since` and `facts` are for its stamp."""
    from safetensors.torch import save_file

    with Result(target).save(config.as_dict(), since=since, **facts) as part:
        write_json(part / "evaluations.json", result.evaluations)
        result.history.to_parquet(part / "history.parquet", index=False)
        embeddings = {name: x.contiguous() for name, x in result.embeddings.items()}
        save_file(embeddings, part / "embeddings.safetensors")


def save_model(config: RunConfig, result: FinetuneResult, run: Path, *, since: float) -> None:
    """Write the model of a run, in the same way."""
    from shrink_utils.models import save_classifier

    with model_of(run).save(config.as_dict(), since=since) as part:
        save_classifier(result.model, result.tokenizer, part / MODEL)


def drop_models(profile: Profile) -> None:
    """Remove those models of a finished study that the profile does not keep."""
    if profile.models_kept == "all":
        return
    kept = {profile.runs()[0].seed} if profile.models_kept == "first seed" else set()
    for config in profile.all_runs():
        if config.seed not in kept:
            model = model_of(profile.folder / "runs" / run_id(config))
            shutil.rmtree(model.folder, ignore_errors=True)


def list_runs(profile: Profile) -> pd.DataFrame:
    """The profile's grid and weight sweep, one run per row, each once.

    Columns run (its folder's name), model, task, arm, weight, seed, and ``seconds`` that it took: a
    dash for a run that is not there.
    """
    rows = []
    for config in profile.all_runs():
        stamp = profile.folder / "runs" / run_id(config) / STAMP
        row = {name: getattr(config, name) for name in ("model", "task", "arm", "weight", "seed")}
        seconds = read_json(stamp)["seconds"] if stamp.is_file() else "–"
        rows.append({"run": run_id(config), **row, "seconds": seconds})
    return pd.DataFrame(rows)
