"""Models trained from nothing: described by a profile, trained once, then loaded."""

import time
from dataclasses import asdict
from pathlib import Path

from safetensors.torch import load_model, save_model
from transformers import AutoTokenizer

from shrink_utils.study.code_version import code_hash
from shrink_utils.study.profiles import SEED_STEP, Profile
from shrink_utils.study.results import (
    CONFIG,
    Result,
    progress_bar,
    read_json,
    result_key,
    write_json,
)
from shrink_utils.training import ScratchConfig, ScratchResult, new_model, pretrain
from shrink_utils.training.arguments import EveryStep

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer"


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
        Of the initial weights. The study's base seed shifts it, and the order of the data.
    **changes
        Fields of `ScratchConfig` that are to differ from the profile's.
    """
    shift = SEED_STEP * profile.base_seed
    values = asdict(profile.pretraining)
    del values["seeds"]
    values |= {"seed": shift + seed, "data_seed": shift, "threads": profile.threads}
    return ScratchConfig(objective=objective, **{"source": "all", **values, **changes})


def dynamics_config(
    profile: Profile, objective: str, *, seed: int = 0, **changes: object
) -> ScratchConfig:
    """The short training that is followed: the profile's trunk, and the sizes of its ``dynamics``.

    `seed` is one of ``profile.pretraining.seeds``; `changes` are fields of `ScratchConfig`.
    """
    names = ("steps", "batch_size", "learning_rate", "max_length", "vocabulary")
    values = {name: getattr(profile.dynamics, name) for name in names} | changes
    return scratch_config(profile, objective, seed=seed, **values)


def scratch_id(config: ScratchConfig) -> str:
    """Hash of the configuration and of what computes it, 16 hex digits."""
    return result_key(config.as_dict(), code=code_hash())


def train_or_load(config: ScratchConfig, folder: Path) -> ScratchResult:
    """The model of `config`: loaded from `folder` when it is there and whole, else trained.

    `folder` is where runs are kept, ``results/<profile>/runs``. A damaged model is moved aside
    (``<id>.damaged-<n>``), with a warning, and trained again.
    """
    result = Result(folder / scratch_id(config))
    return result.load_or_compute(load_scratch, lambda: _pretrain_and_save(config, result))


def _pretrain_and_save(config: ScratchConfig, result: Result) -> None:
    since = time.perf_counter()
    with progress_bar(total=config.steps, unit="step", description=config.label) as bar:
        trained = pretrain(config, callbacks=[EveryStep(bar.update)])
    with result.save(config.as_dict(), since=since, threads=config.threads) as part:
        write_json(part / "evaluations.json", trained.evaluations)
        save_model(trained.model, str(part / WEIGHTS))
        trained.tokenizer.save_pretrained(part / TOKENIZER)


def load_scratch(folder: Path) -> ScratchResult:
    """Read a model's folder; `DamagedResultError` if any file is not as written."""
    Result(folder).verify()
    config = ScratchConfig(**read_json(folder / CONFIG))
    tokenizer = AutoTokenizer.from_pretrained(folder / TOKENIZER, trust_remote_code=False)
    model = new_model(config, tokenizer)  # SoLU is in no configuration that transformers knows
    load_model(model, folder / WEIGHTS)
    return ScratchResult(config, model, tokenizer, read_json(folder / "evaluations.json"))
