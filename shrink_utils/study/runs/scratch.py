"""Models trained here, run or loaded: each lives in a folder named by what it is."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from functools import cache
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from safetensors.torch import load_model, save_model
from transformers import (
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from shrink_utils.models import Encoder, trunk_of
from shrink_utils.study.dependencies import code_version
from shrink_utils.study.profiles import SEED_STEP, Profile
from shrink_utils.study.provenance import provenance
from shrink_utils.study.runs.once import alone
from shrink_utils.study.runs.progress import progress_bar
from shrink_utils.study.runs.whole_folder import (
    load_whole,
    name_of,
    read_json,
    verify,
    write_json,
    written_whole,
)
from shrink_utils.study.sizes import Pretraining
from shrink_utils.text import source_hashes
from shrink_utils.training import ScratchConfig, ScratchResult, new_model, pretrain
from shrink_utils.training.every_step import EveryStep

__all__ = [
    "ScratchRun",
    "load_scratch",
    "scratch_config",
    "scratch_encoder",
    "scratch_id",
    "train_or_load",
]

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer"


@dataclass(frozen=True)
class ScratchRun:
    """A finished pretraining.

    Attributes
    ----------
    config : ScratchConfig
    model : PreTrainedModel
        In evaluation mode, on the CPU.
    tokenizer : PreTrainedTokenizerBase
    history : DataFrame
        One row a step: step, loss, learning_rate.
    evaluations : list of dict
        Held-out loss (nats a token) before and after training.
    provenance : dict
        Packages, device, threads, commit, seconds.
    folder : Path
    """

    config: ScratchConfig
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    history: pd.DataFrame
    evaluations: list[dict]
    provenance: dict
    folder: Path


def scratch_config(
    profile: Profile, objective: str, *, seed: int = 0, **changes: object
) -> ScratchConfig:
    """The profile's pretraining under one objective.

    Parameters
    ----------
    profile : Profile
    objective : str
        ``"mlm"``, ``"clm"`` or ``"mt"``.
    seed : int
        Of the initial weights, such as one of ``profile.pretraining.seeds``. The base seed of the
        study shifts it, and the order of the data.
    **changes
        Fields of `ScratchConfig` that are to differ from the profile's.
    """
    shift = SEED_STEP * profile.base_seed
    sizes = {
        field.name: getattr(profile.pretraining, field.name)
        for field in fields(Pretraining)
        if field.name != "seeds"
    }
    values = {**sizes, "seed": shift + seed, "data_seed": shift, "threads": profile.threads}
    return ScratchConfig(objective=objective, **{**values, **changes})


@cache
def _computed_by() -> dict[str, str]:
    libraries = ("torch", "transformers", "tokenizers", "accelerate")
    code = code_version("shrink_utils.training.scratch")
    return {"code": code, **source_hashes(), **{name: version(name) for name in libraries}}


def scratch_id(config: ScratchConfig) -> str:
    """Hash of the configuration and of what computes it, 16 hex digits."""
    return name_of(config.as_dict(), _computed_by())


def train_or_load(config: ScratchConfig, folder: Path) -> ScratchRun:
    """The model of `config`: loaded from `folder` when it is there and whole, else trained.

    A damaged one is moved aside (``<id>.damaged-<n>``), with a warning, and trained again. While
    it trains there is a progress bar.

    Parameters
    ----------
    config : ScratchConfig
    folder : Path
        Where runs are kept, ``results/<profile>/runs``.
    """
    target = folder / scratch_id(config)
    if (run := load_whole(target, load_scratch)) is not None:
        return run
    with alone(target):
        if not target.exists():  # else another process has trained it in the meantime
            _train(config, target)
    return load_scratch(target)


def _train(config: ScratchConfig, target: Path) -> None:
    started = time.perf_counter()
    with progress_bar(total=config.steps, unit="step", description=config.label) as bar:
        result = pretrain(config, callbacks=[EveryStep(bar.update)])
    stamp = {**provenance(), "threads": config.threads}
    stamp["seconds"] = round(time.perf_counter() - started, 1)
    _save(config, result, stamp, target)


def load_scratch(folder: Path) -> ScratchRun:
    """Read a model's folder; its weights are those that were trained, bit for bit.

    Raises
    ------
    DamagedRunError
        If a file is missing, or not what was written.
    """
    verify(folder)
    config = ScratchConfig(**read_json(folder / "config.json"))
    tokenizer = AutoTokenizer.from_pretrained(folder / TOKENIZER)
    model = new_model(config, tokenizer)  # SoLU is in no configuration that transformers knows
    load_model(model, folder / WEIGHTS)
    return ScratchRun(
        config=config,
        model=model,
        tokenizer=tokenizer,
        history=pd.read_parquet(folder / "history.parquet"),
        evaluations=read_json(folder / "evaluations.json"),
        provenance=read_json(folder / "provenance.json"),
        folder=folder,
    )


def scratch_encoder(run: ScratchRun) -> Encoder:
    """The trunk of a model, for reading its layers: of a translation model, the encoder."""
    return Encoder(run.config.label, trunk_of(run.model), run.tokenizer)


def _save(config: ScratchConfig, result: ScratchResult, stamp: dict, target: Path) -> None:
    with written_whole(target) as part:
        write_json(part / "config.json", config.as_dict())
        write_json(part / "evaluations.json", result.evaluations)
        write_json(part / "provenance.json", stamp)
        result.history.to_parquet(part / "history.parquet", index=False)
        save_model(result.model, str(part / WEIGHTS))
        result.tokenizer.save_pretrained(part / TOKENIZER)
