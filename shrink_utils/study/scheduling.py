"""The grid and the sweep: every run of a profile, computed or loaded, with progress.

Runs are computed in this process, by processes of this machine, or on a Dask cluster.
"""

from __future__ import annotations

import logging
import os
import shutil
import warnings
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import Result, progress_bar
from shrink_utils.study.runs import Run, load_run, model_of, run_id, run_or_load
from shrink_utils.training import RunConfig, used_precision

if TYPE_CHECKING:
    from distributed import Client

ADDRESS = "DASK_SCHEDULER_ADDRESS"
PROCESSES = {  # on this machine
    "threads_per_worker": 1,
    "memory_limit": 0,  # a model in memory is no leak, to be stopped by a restart
    "dashboard_address": ":0",  # None takes port 8787, for which two studies would compete
    "silence_logs": logging.CRITICAL,  # what a run raises is raised here
}


def run_grid(profile: Profile) -> list[Run]:
    """Every run of the profile's grid, in its order; those that exist are loaded.

    The others are computed in this process when the profile has one worker, else by so many
    processes, or on the Dask cluster at ``DASK_SCHEDULER_ADDRESS``: the numbers are the same.
    Processes of ``accelerate launch`` share every run instead.
    """
    return run_configs(profile.runs(), profile)


def run_sweep(profile: Profile) -> list[Run]:
    """Every run of the profile's weight sweep, as `run_grid` does it."""
    return run_configs(profile.sweep_runs(), profile)


def run_configs(configs: list[RunConfig], profile: Profile) -> list[Run]:
    """Some runs of a profile, as `run_grid` does it."""
    folder = profile.folder / "runs"
    names = [run_id(config) for config in configs]
    wanted = dict(zip(names, configs, strict=True))  # a configuration may stand there twice
    runs = {name: Result(folder / name).load(load_run) for name in wanted}
    missing = {name: config for name, config in wanted.items() if runs[name] is None}
    # Chapters read the models of the grid; those of the sweep are for the user.
    read = profile.all_runs() if profile.models_kept == "all" else profile.runs()
    keep = {name for name, config in missing.items() if config in read}
    shared = int(os.environ.get("WORLD_SIZE") or 1) > 1  # every run, by `accelerate launch`
    workers = min(profile.workers, len(missing))
    with progress_bar(total=len(missing), unit="run") as bar:
        # Runs side by side end together: after the first, tqdm would say several times too much.
        bar.bar_format = "{l_bar}{bar}| {n_fmt}/{total_fmt} runs [{elapsed}{postfix}]"
        seconds: list[float] = []

        def finished(name: str, run: Run) -> None:
            runs[name] = run
            seconds.append(run.provenance["seconds"])
            left = (len(missing) - len(seconds)) * sum(seconds) / len(seconds) / workers
            bar.set_postfix_str(f"about {left / 60:.0f} min left", refresh=False)
            bar.update()

        if not shared and (workers > 1 or (missing and os.environ.get(ADDRESS))):
            with cluster_client(workers=workers) as client:
                for name in compute_runs(client, missing, folder, keep=keep):
                    workers = max(1, len(client.nthreads()))  # they may join a cluster late
                    finished(name, load_run(folder / name))
        else:
            for name, config in missing.items():
                bar.set_description_str(config.label)
                finished(name, run_or_load(config, folder, keep_model=name in keep))
    return [runs[name] for name in names]


@contextmanager
def cluster_client(*, workers: int) -> Iterator[Client]:
    """A client of the cluster at ``DASK_SCHEDULER_ADDRESS``, else of one made for the ``with``.

    The cluster made here has `workers` processes of one thread; one at an address has its own.

    Raises
    ------
    ConnectionError
        If no scheduler answers at the address.
    """
    from distributed import Client, LocalCluster  # a study in one process does without them

    with ExitStack() as stack:
        if not (address := os.environ.get(ADDRESS)):
            stack.enter_context(patch.dict(os.environ))  # Dask leaves variables behind
            address = stack.enter_context(LocalCluster(n_workers=workers, **PROCESSES))
        try:
            client = stack.enter_context(Client(address))
        except OSError as error:
            raise ConnectionError(
                f"{ADDRESS}: no scheduler answers at {address}; start one, or unset the variable"
            ) from error
        yield client


def compute_runs(
    client: Client, configs: dict[str, RunConfig], folder: Path, *, keep: Collection[str] = ()
) -> Iterator[str]:
    """Compute runs on the workers of a cluster, and yield the name of each that is on disk.

    A worker that dies gives its run to another one. At the first run that raises, those that wait
    are given up; finished runs stay, and a second call computes the others. `configs` are named by
    their `run_id`, `keep` names those whose model is kept, and `folder` is on a file system that
    every worker shares.

    Raises
    ------
    RuntimeError
        If a run fails, with its label; the worker's own error is the cause.
    """
    from distributed import as_completed

    folder = folder.resolve()
    settings = {name: value for name, value in os.environ.items() if name.startswith("SHRINK_")}
    names = {}
    for name, config in configs.items():
        call = client.submit(_compute_run, name, config, folder, name in keep, settings)
        names[call] = name  # who else asks for this run shares it
    for future in as_completed(names):
        name = names[future]
        try:
            for category, text in future.result():
                warnings.warn(f"{configs[name].label}: {text}", category, stacklevel=2)
            if name not in os.listdir(folder):  # listing asks the file server again
                raise FileNotFoundError(f"{folder / name} of a worker is not seen here: share it")
        except Exception as error:
            raise RuntimeError(f"run {configs[name].label}: {error}") from error
        yield name


def _compute_run(
    name: str, config: RunConfig, folder: Path, keep_model: bool, settings: dict[str, str]
) -> list[tuple[type[Warning], str]]:
    """In a worker: compute the run; its warnings come back, for who called."""
    from distributed import get_worker

    with patch.dict(os.environ, settings), warnings.catch_warnings(record=True) as caught:
        if get_worker().state.nthreads > 1:  # runs of a process share torch's random numbers
            raise ValueError("its worker has several threads; start workers with `--nthreads 1`")
        if run_id(replace(config, precision=used_precision(config.precision))) != name:
            raise ValueError(
                "its worker would compute another run: bring its code and its packages up to date "
                "and start it again; for devices of several kinds set SHRINK_PRECISION=float32"
            )
        run_or_load(config, folder, keep_model=keep_model)
    return [(warning.category, str(warning.message)) for warning in caught]


def default_run(profile: Profile, *, arm: str) -> Run:
    """The profile's first model, task and seed under `arm`: the run that notebooks look into."""
    for config in profile.runs():
        if config.arm == arm:
            return run_or_load(config, profile.folder / "runs")
    raise ValueError(f"arm: profile {profile.name} runs no arm {arm!r}")


def drop_models(profile: Profile) -> None:
    """Remove those models of a finished study that the profile does not keep."""
    if profile.models_kept == "all":
        return
    kept = {profile.runs()[0].seed} if profile.models_kept == "first seed" else set()
    for config in profile.all_runs():
        if config.seed not in kept:
            model = model_of(profile.folder / "runs" / run_id(config))
            shutil.rmtree(model.folder, ignore_errors=True)
