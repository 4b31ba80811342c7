"""Runs computed by other processes: on this machine, or on the Dask cluster of an address."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING
from uuid import uuid4

from shrink_utils.study.finetuned import run_or_load
from shrink_utils.study.runs import run_id
from shrink_utils.training import RunConfig, used_precision

if TYPE_CHECKING:
    from distributed import Client, Future, Worker

STEPS = "shrink-steps"  # the topic of Dask's events that workers tell their steps under
PATIENCE = 60.0  # seconds until another host's file has to be seen on a shared file system
# On this machine: one run per worker, which nobody profiles.
LOCAL = {
    "distributed.scheduler.worker-saturation": 1.0,
    "distributed.worker.profile.enabled": False,
}
PROCESSES = {
    "threads_per_worker": 1,
    "processes": True,
    "memory_limit": 0,  # a model in memory is no leak, to be stopped by a restart
    "dashboard_address": ":0",  # None takes port 8787, for which two studies would compete
    "silence_logs": logging.CRITICAL,  # what a run raises is raised here
    "env": {"OMP_WAIT_POLICY": "passive"},
}


def scheduler_address() -> str | None:
    """Where the Dask scheduler of this study is, ``DASK_SCHEDULER_ADDRESS``; None for nowhere."""
    return os.environ.get("DASK_SCHEDULER_ADDRESS") or None


@contextmanager
def cluster_client(*, workers: int) -> Iterator[Client]:
    """A client of the cluster at `scheduler_address`, else of one made for the ``with`` statement.

    The cluster made here has `workers` processes of one thread; one at an address has its own.

    Raises
    ------
    ConnectionError
        If no scheduler answers at the address.
    """
    import dask  # a study in one process does without it
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        address = scheduler_address()
        if address is None:
            stack.enter_context(_environment({}))  # Dask leaves variables behind
            stack.enter_context(dask.config.set(LOCAL))
            address = stack.enter_context(LocalCluster(n_workers=workers, **PROCESSES))
        try:
            client = stack.enter_context(Client(address))
        except OSError as error:
            raise ConnectionError(
                f"DASK_SCHEDULER_ADDRESS: no scheduler answers at {address}; start one with "
                "`dask scheduler`, or unset the variable to compute on this machine"
            ) from error
        yield client


def compute_runs(
    client: Client,
    configs: dict[str, RunConfig],
    folder: Path,
    *,
    keep: Collection[str] = (),
    on_step: Callable[[str, int], None],
) -> None:
    """Compute runs on the workers of a cluster, each in the worker that is free first.

    A worker that dies gives its run to another one. At the first run that raises, those that wait
    are given up; finished runs stay, and a second call goes on from there. `configs` are named by
    their `run_id`, `keep` names those whose model is kept, `folder` is on a file system that every
    worker shares, and `on_step` is called in this thread with the id of a run and the steps that it
    has made, 0 at its start.

    Raises
    ------
    RuntimeError
        If a run fails, with its label; the worker's own error is the cause.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    news: SimpleQueue[dict | Future] = SimpleQueue()
    client.subscribe_topic(STEPS, lambda event: news.put(event[1]))
    shared = {"folder": folder, "mark": _mark(folder), "environment": _settings()}
    running = {}
    for run, config in configs.items():
        key = f"run-{folder / run}"  # who else asks for this run shares it
        future = client.submit(
            _compute_run, run, config.as_dict(), keep_model=run in keep, **shared, key=key
        )
        future.add_done_callback(news.put)
        running[future.key] = run
    while running:
        item = news.get()
        if isinstance(item, dict):
            if item["run"] in configs:
                on_step(item["run"], item["step"])
        else:
            run = running.pop(item.key)
            _accept(item, configs[run], folder / run)


def _mark(folder: Path) -> str:
    """A file that only this folder has: who sees it sees this folder, not one of the same path."""
    if not any(folder.glob(".shared-*")):
        (folder / f".shared-{uuid4().hex}").touch()
    return min(folder.glob(".shared-*")).name


def _accept(future: Future, config: RunConfig, target: Path) -> None:
    """Warn of what a worker was warned of, raise what it raised, wait until its run is seen."""
    try:
        caught = future.result()
    except Exception as error:
        raise RuntimeError(f"run {config.label}: {error}") from error
    for category, text in caught:
        warnings.warn(f"{config.label}: {text}", category, stacklevel=3)
    deadline = time.monotonic() + PATIENCE
    while target.name not in os.listdir(target.parent):  # listing asks the file server again
        if time.monotonic() > deadline:
            raise RuntimeError(f"run {config.label}: a worker finished {target}, not seen here")
        time.sleep(1.0)


def _compute_run(
    run: str,
    values: dict,
    *,
    keep_model: bool,
    folder: Path,
    mark: str,
    environment: dict[str, str],
) -> list[tuple[type[Warning], str]]:
    """In a worker: compute the run, tell every step; its warnings come back, for who called."""
    from distributed import get_worker

    worker = get_worker()

    def tell(step: int) -> None:
        worker.log_event(STEPS, {"run": run, "step": step, "worker": worker.address})

    config = RunConfig(**values)
    _require_fitness(worker, run, config, folder / mark)
    tell(0)
    with _environment(environment), warnings.catch_warnings(record=True) as caught:
        run_or_load(config, folder, on_row=lambda row: tell(row["step"]), keep_model=keep_model)
    return [(warning.category, str(warning.message)) for warning in caught]


def _require_fitness(worker: Worker, run: str, config: RunConfig, mark: Path) -> None:
    """Refuse what would make a run slower, other than the same run elsewhere, or lost."""
    place = f"worker {worker.address}"
    if worker.state.nthreads > 1:
        raise ValueError(
            f"{place}: has {worker.state.nthreads} threads, and runs in one process share torch's "
            "random numbers; start workers with `--nthreads 1`"
        )
    if not mark.parent.is_dir() or mark.name not in os.listdir(mark.parent):
        raise FileNotFoundError(
            f"{place}: does not see {mark.parent}; the results (SHRINK_RESULTS_DIR) have to be on "
            "a file system that all workers share"
        )
    if (native := used_precision(config.precision)) != config.precision:
        raise ValueError(
            f"{place}: trains in {native}, the study in {config.precision}; give it devices of one "
            "kind, or set SHRINK_PRECISION=float32 for the whole study"
        )
    if run_id(config) != run:
        raise ValueError(
            f"{place}: would compute another run, as its code or its packages differ; bring them "
            "up to date and start it again"
        )


def _settings() -> dict[str, str]:
    """This process's ``SHRINK_…`` variables, folders in full."""
    found = {name: value for name, value in os.environ.items() if name.startswith("SHRINK_")}
    folders = (name for name in found if name.endswith(("_DIR", "_HOME")) and found[name])
    return found | {name: str(Path(found[name]).resolve()) for name in folders}


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables within a ``with`` statement; afterwards all are as before."""
    found = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in os.environ.keys() - found.keys():
            del os.environ[name]
        os.environ.update(found)
