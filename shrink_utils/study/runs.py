"""Fine-tuning runs: their names, their folders, and run or load: a run is computed once.

A run is named without the Trainer; what needs it loads it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import torch.distributed as dist

from shrink_utils.sources import data_dir, hub_revisions
from shrink_utils.study.code_version import code_hash
from shrink_utils.study.profiles import Profile, RunConfig, arm_options, used_precision
from shrink_utils.study.results import (
    CONFIG,
    STAMP,
    Result,
    Work,
    _read_json,
    _result_key,
    make_all,
    progress_bar,
    provenance,
)
from shrink_utils.study.run_tables import TABLES, _tables_of_run
from shrink_utils.text.tasks import task_spec

if TYPE_CHECKING:
    from torch import Tensor

    from shrink_utils.models import Encoder
    from shrink_utils.study.finetuning import _FinetuneResult

VECTORS = "embeddings.safetensors"
MODEL = "model"  # in a folder beside the run's: encoder and head, as transformers saves them


@dataclass(frozen=True)
class Run:
    """A finished run."""

    config: RunConfig
    tables: dict[str, pd.DataFrame]  # what it left, of `run_tables._tables_of_run`
    provenance: dict  # packages, device, threads, commit, seconds
    folder: Path

    @property
    def history(self) -> pd.DataFrame:
        """One row per training step."""
        return self.tables["steps"]

    @property
    def evaluations(self) -> list[dict]:
        """Of the validation rows before training and after every epoch: loss, metrics, scores."""
        return self.tables["evaluations"].to_dict("records")

    @cached_property
    def embeddings(self) -> dict[str, Tensor]:
        """Before, after (n, d), labels (n,) and predictions (evaluations, n) of the same rows."""
        from safetensors.torch import load_file

        return load_file(self.folder / VECTORS)


def run_id(config: RunConfig) -> str:
    """Sixteen hex digits: configuration, its arm's options, its model's commit, what computes it.

    The arm's own options count, not the other arms': a new arm leaves finished runs valid.
    """
    options, commit = arm_options(config.arm), hub_revisions().get(config.model)
    return _result_key(config.as_dict(), options, commit, code=code_hash())


def load_run(folder: Path) -> Run:
    """Read a run folder; `_DamagedResultError` if any file is not as written."""
    Result(folder).verify()
    return Run(
        config=RunConfig(**_read_json(folder / CONFIG)),
        tables={name: pd.read_parquet(folder / f"{name}.parquet") for name in TABLES},
        provenance=_read_json(folder / STAMP),
        folder=folder,
    )


def _model_of(run: Path) -> Result:
    """Where a run's model is, if it was kept: a result beside the run, ``<id>.model``."""
    return Result(run.with_name(f"{run.name}.{MODEL}"))


def _load_model(folder: Path) -> Path:
    """The model in such a folder; `_DamagedResultError` if any file is not as written."""
    Result(folder).verify()
    return folder / MODEL


def run_or_load(config: RunConfig, folder: Path, *, keep_model: bool = True) -> Run:
    """The run of `config`: loaded from `folder` when it is there and whole, else computed.

    `folder` is where runs are kept, ``results/<profile>/runs``; `keep_model` saves the model of a
    run that is computed beside it. A damaged run is computed again, with a warning.
    """
    config = replace(config, precision=used_precision(config.precision))
    target = folder / run_id(config)
    return Result(target).load_or_compute(
        load_run, lambda: _compute(config, target, keep_model), lock=_rank() == 0
    )


def _rank() -> int:
    """This process among those that share every run (``accelerate launch``, ``torchrun``); else 0.

    The first one, 0, writes; the others are with it inside its lock.
    """
    return int(os.environ.get("RANK") or 0)


def _compute(config: RunConfig, target: Path, keep_model: bool) -> None:
    from safetensors.torch import save_file

    from shrink_utils.study.finetuning import finetune  # it loads the Trainer, for seconds

    since = time.perf_counter()
    result = finetune(config)
    if _rank() == 0:
        if keep_model:
            _save_model(config, result, target, since)
        processes = int(os.environ.get("WORLD_SIZE") or 1)
        facts = {"threads": config.threads, "precision": config.precision, "processes": processes}
        with Result(target).save(config.as_dict(), since=since, **facts) as part:
            vectors = {name: x.contiguous() for name, x in result.embeddings.items()}
            save_file(vectors, part / VECTORS)
            measured = (config.as_dict(), result.history, result.evaluations, vectors)
            for name, table in _tables_of_run(*measured, _read_json(part / STAMP)).items():
                table.to_parquet(part / f"{name}.parquet", index=False)
    if dist.is_available() and dist.is_initialized():
        dist.barrier()  # all are to find it


def run_configs(
    configs: list[RunConfig], profile: Profile, *, kept: Collection[RunConfig] | None = None
) -> list[Run]:
    """Some runs of a profile, in their order; those that exist are loaded, the others made.

    The models of runs in `kept` stay; None keeps those that chapters read.

    `results.make_all` makes them: in this process, in as many as the profile has workers, or on a
    cluster. Processes of ``accelerate launch`` share every run instead.
    """
    paths = [profile.folder / "runs" / run_id(config) for config in configs]
    wanted = dict(zip(paths, configs, strict=True))  # a configuration may stand there twice
    runs = {path: Result(path).load(load_run) for path in wanted}
    # Chapters read the models of the grid; those of the sweep are for the user.
    read = profile.all_runs() if profile.models_kept == "all" else profile.runs()
    read = read if kept is None else kept
    work = [
        Work(path, partial(_make, config, path, config in read), config.label)
        for path, config in wanted.items()
        if runs[path] is None
    ]
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        for one in work:
            one.make()
    else:
        make_all(work, workers=profile.workers)
    return [runs[path] or load_run(path) for path in paths]


def _ablate_command(profile: Profile, *, part: slice, dry_run: bool) -> None:
    print(f"Ablation, profile {profile.name}: {profile.description}", flush=True)
    configs = profile.all_runs()[part]
    if dry_run:
        planned = _planned_runs(configs, profile)
        print(f"{planned.to_string(index=False, float_format='{:.1f}'.format)}\n")
        hours = (planned.missing * planned.seconds).sum() / 3600
        unknown = planned.missing[planned.seconds.isna()].sum()
        print(f"{hours:.1f} hours, one run after the other; {unknown} runs unlike any known one.")
    if dry_run or not all((profile.folder / "runs" / run_id(c)).exists() for c in configs):
        _check_inputs(configs)
    if dry_run:
        print("All encoders and tasks are there.")
    else:
        print(f"{len(run_configs(configs, profile))} runs in {profile.folder / 'runs'}")


def _check_inputs(configs: Iterable[RunConfig]) -> None:
    """Read the tasks and encoders of runs, so that what is missing is known before hours of work.

    Raises
    ------
    FileNotFoundError
        With a line for each task or encoder that cannot be read.
    """
    from shrink_utils.models import load_encoder
    from shrink_utils.text import load_task

    configs, faults = list(configs), []
    inputs: list[tuple[str, Callable]] = [(c.model, load_encoder) for c in configs]
    inputs += [(c.task, load_task) for c in configs]
    for name, read in dict.fromkeys(inputs):
        try:
            read(name)
        except Exception as error:  # of hubs, archives and files, read by several libraries
            faults.append(f"  {name}: {' '.join(str(error).split())}")
    if faults:
        raise FileNotFoundError("before any run, these could not be read:\n" + "\n".join(faults))


def _planned_runs(configs: Iterable[RunConfig], profile: Profile) -> pd.DataFrame:
    """What would be run: a row per model, task and epochs, and what like runs took.

    Columns ``runs`` and ``missing``, then means per run of finished ones of this profile, or else
    of those on record: ``seconds``, ``memory_gb`` and their ``device``. NaN: there are none.
    """
    like, took = ["model", "task", "epochs"], {"seconds": "mean", "memory_gb": "mean"}
    rows, stamps = [], []
    for config in dict.fromkeys(configs):
        stamp = profile.folder / "runs" / run_id(config) / STAMP
        of = {name: getattr(config, name) for name in like}
        rows.append(of | {"missing": not stamp.is_file()})
        stamps += [of | _read_json(stamp)] if stamp.is_file() else []
    table = pd.DataFrame(rows).groupby(like, sort=False).missing.agg(runs="size", missing="sum")
    table[[*took, "device"]] = None
    recorded = sorted((data_dir() / "reference").glob("*/runs.parquet"))
    for known in (pd.DataFrame(stamps), *map(pd.read_parquet, recorded)):
        known = known.reindex(columns=[*like, *took, "device"]).astype(dict.fromkeys(took, float))
        means = known.groupby(like, observed=True).agg(took | {"device": "first"})
        table = table.fillna(means.reindex(table.index))
    return table.reset_index()


def _make(config: RunConfig, target: Path, keep_model: bool) -> None:
    """What makes a run, in whatever process."""
    if run_id(replace(config, precision=used_precision(config.precision))) != target.name:
        raise ValueError(
            "its worker would compute another run: bring its code and its packages up to date and "
            "start it again; for devices of several kinds set SHRINK_PRECISION=float32"
        )
    run_or_load(config, target.parent, keep_model=keep_model)


def run_grid(profile: Profile) -> list[Run]:
    """Every run of the profile's grid, in its order."""
    return run_configs(profile.runs(), profile)


def _tables_of(runs: Iterable[Run]) -> dict[str, pd.DataFrame]:
    """The tables of some runs, one below the other."""
    runs = list(runs)
    return {
        name: pd.concat([run.tables[name] for run in runs], ignore_index=True) for name in TABLES
    }


def study_tables(
    profile: Profile, configs: list[RunConfig] | None = None
) -> dict[str, pd.DataFrame]:
    """The tables of some runs of a profile, by default of all; those that are missing are run."""
    return _tables_of(run_configs(profile.all_runs() if configs is None else configs, profile))


def default_run(profile: Profile, *, arm: str) -> Run:
    """The profile's first model, task and seed under `arm`: the run that notebooks look into."""
    for config in profile.runs():
        if config.arm == arm:
            return run_or_load(config, profile.folder / "runs")
    raise ValueError(f"arm: profile {profile.name} runs no arm {arm!r}")


def _drop_models(profile: Profile) -> None:
    """Remove those models of a finished study that the profile does not keep."""
    if profile.models_kept == "all":
        return
    kept = {profile.runs()[0].seed} if profile.models_kept == "first seed" else set()
    for config in profile.all_runs():
        if config.seed not in kept:
            model = _model_of(profile.folder / "runs" / run_id(config))
            shutil.rmtree(model.folder, ignore_errors=True)


def run_encoder(run: Run, *, device: str = "cpu") -> Encoder:
    """The fine-tuned encoder of a run, without its head, for reading its layers.

    A model that was not kept is trained again, and one that was damaged, with a warning.
    """
    from shrink_utils.models import load_encoder  # and transformers, which no finished run needs

    return replace(load_encoder(str(_kept_model(run)), device=device), name=run.config.label)


def _kept_model(run: Run) -> Path:
    """The folder of a run's model, which is trained again where it was not kept."""
    return _model_of(run.folder).load_or_compute(_load_model, lambda: _train_again(run))


def _train_again(run: Run) -> None:
    from shrink_utils.study.finetuning import finetune

    since, label = time.perf_counter(), f"{run.config.label}, whose model was not kept"
    with progress_bar(total=len(run.history), unit="step", description=label) as bar:
        result = finetune(run.config, on_row=lambda row: bar.update())
    _save_model(run.config, result, run.folder, since)


def _save_model(config: RunConfig, result: _FinetuneResult, run: Path, since: float) -> None:
    """Keep the model of a run in a folder beside it."""
    from shrink_utils.models import save_classifier

    with _model_of(run).save(config.as_dict(), since=since) as part:
        save_classifier(result.model, result.tokenizer, part / MODEL)
        card = _model_card(config, result.evaluations, provenance()["commit"])
        (part / MODEL / "README.md").write_text(card, encoding="utf-8")


def _model_card(
    config: RunConfig, evaluations: Sequence[Mapping], commit: object, *, task: str = ""
) -> str:
    """The README of a kept model: what it is, and its numbers before and after training.

    `task` names it for people; by default it is the configuration's.
    """
    before, after, task = evaluations[0], evaluations[-1], task or config.task
    names = {m: m for m in task_spec(config.task).metrics}
    names |= {"loss": "loss", "centred_1": "PC1 share"}
    numbers = [(n, f"{before[k]:.3f}", f"{after[k]:.3f}") for k, n in names.items() if k in after]
    trained = f"{config.seed}, {config.epochs}, {config.learning_rate:g}"
    about = [
        ("base", config.model),
        ("task", task),
        ("regularization term", f"{config.arm}, weight {config.weight:g}"),
        ("seed, epochs, learning rate", trained),
        ("pooling that the term saw", config.pooling),
        ("commit", commit),
    ]
    lines = [("", ""), ("---", "---"), *about]
    lines += [(), ("validation rows", "before", "after"), ("---",) * 3, *numbers]
    table = "\n".join(f"| {' | '.join(map(str, row))} |" if row else "" for row in lines)
    head = f"---\nbase_model: {config.model}\nlibrary_name: transformers\n---\n"
    return f"{head}# {config.model}, fine-tuned on {task}\n\n{table}\n"
