"""The runner: one way to make results, and to keep them.

A result is a folder written whole, named by what it rests on, checked when read. `make_all` makes
those that are missing in this process, in several, or on a Dask cluster; what fails stops nothing
else. Fine-tuning runs are made and kept so, and whatever else takes a while.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import TypeVar
from unittest.mock import patch
from uuid import uuid4

import psutil
from filelock import FileLock, Timeout
from tqdm.auto import tqdm

from shrink_utils.sources import home, sha256_of, source_hashes

CONFIG, STAMP, MANIFEST = "config.json", "provenance.json", "manifest.json"
HOST = socket.gethostname().replace(".", "-")
PART = re.compile(r".+\.(\d+)\.([^.]+)\.[0-9a-f]{8}\.part")  # <name>.<pid>.<host>.<random>.part
# Below the code of every result.
LIBRARIES = ("torch", "transformers", "tokenizers", "accelerate", "scikit-learn", "gudhi")
# Named by a result's stamp.
PACKAGES = "torch transformers datasets numpy pandas gudhi scipy torchmetrics".split()
ADDRESS = "DASK_SCHEDULER_ADDRESS"
WORKERS = "SHRINK_WORKERS"  # how many processes make results, whatever a profile says
# On one GPU: more processes gained nothing; what CUDA itself takes of each; a margin, as the first
# run need not be the largest.
MOST_ON_GPU, CONTEXT_GB, SPARE = 16, 0.6, 1.5
NO_TIME_LEFT = "{l_bar}{bar}| {n_fmt}/{total_fmt} runs [{elapsed}]"
TIME_LEFT = "{l_bar}{bar}| {n_fmt}/{total_fmt} runs [{elapsed}, about {remaining} left]"
Loaded = TypeVar("Loaded")


class _DamagedResultError(ValueError):
    """A result whose files are not those that were written."""


class Result:
    """A result on disk: a folder that is whole or not there.

    It holds ``config.json`` (what was computed), ``provenance.json`` (by what, where and when), the
    files of its kind, and ``manifest.json``: the sha256 of every other file. Its name has the
    `_result_key` what it rests on: what is stale has another name, and is not found.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def save(self, config: dict, *, since: float, **facts: object) -> Iterator[Path]:
        """A folder to fill beside the result; it is renamed at the end of the ``with`` statement.

        What fails leaves nothing behind. Of two processes that save the same result, the first
        one's stays. The stamp is `provenance`, `facts`, and the seconds since `since` (by
        `time.perf_counter`).
        """
        stamp = provenance() | facts | {"seconds": round(time.perf_counter() - since, 1)}
        with _part(self.folder) as part:
            part.mkdir()
            _write_json(part / CONFIG, config)
            _write_json(part / STAMP, stamp)
            yield part
            files = [path for path in sorted(part.rglob("*")) if path.is_file()]
            digests = {path.relative_to(part).as_posix(): sha256_of(path) for path in files}
            _write_json(part / MANIFEST, digests)
            try:
                part.rename(self.folder)
            except OSError:
                if not self.folder.exists():  # else another process has saved it first
                    raise

    def load(self, read: Callable[[Path], Loaded]) -> Loaded | None:
        """What `read` makes of the folder; None where there is none.

        A damaged folder, of which `read` raises `_DamagedResultError`, is removed, with a warning.
        """
        try:
            return read(self.folder) if self.folder.exists() else None
        except _DamagedResultError as damage:
            warnings.warn(f"{damage} It is computed again.", stacklevel=3)
            with _part(self.folder) as part, suppress(FileNotFoundError):  # another process has it
                self.folder.rename(part)
            return None

    def load_or_compute(
        self, read: Callable[[Path], Loaded], compute: Callable[[], None], *, lock: bool = True
    ) -> Loaded:
        """What `read` makes of the folder, after `compute` has saved it where it is not there.

        Of two processes that want the same result, one computes it and the other waits. Without
        `lock` they compute together (``accelerate launch``).
        """
        if (found := self.load(read)) is not None:
            return found
        with _file_lock(self.folder) if lock else nullcontext():
            if not self.folder.exists():  # else another process has saved it in the meantime
                compute()
        return read(self.folder)

    def verify(self) -> None:
        """Raise `_DamagedResultError` if a file is missing, or not what was written.

        A file that was added is no harm.
        """
        name = f"{self.folder.parent.name}/{self.folder.name}"
        try:
            for file, digest in _read_json(self.folder / MANIFEST).items():
                path = self.folder / file
                if not path.is_file() or sha256_of(path) != digest:
                    raise ValueError(f"{file} {'changed' if path.is_file() else 'is missing'}")
        except (OSError, ValueError, AttributeError) as error:
            raise _DamagedResultError(f"{name} is damaged: {error}.") from error


def _result_key(*parts: object, code: str) -> str:
    """Sixteen hex digits that change with what a result rests on.

    That is the configuration (`parts`, in JSON values), the `code` that computes it (of
    `code_hash`), the libraries below, and the archives of ``data/sources.toml``.
    """
    text = json.dumps([*parts, code, _inputs()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _inputs() -> dict[str, str]:
    return source_hashes() | {name: version(name) for name in LIBRARIES}


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A file to write, beside `path`; it takes the path's place at the end of the ``with``.

    A file of that name is always whole: what fails leaves the old one, and nothing else.
    """
    with _part(path) as part:
        yield part
        part.replace(path)


@contextmanager
def _part(target: Path) -> Iterator[Path]:
    """A new name beside the target, of which nothing is left after the ``with`` statement.

    No pattern of results, such as ``*.csv``, takes it for one.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for part in target.parent.glob("*.part"):
        named = PART.fullmatch(part.name)
        # Of another host's process, and of somebody's own files, nothing is known.
        if named and named[2] == HOST and not psutil.pid_exists(int(named[1])):
            _remove(part)
    part = target.with_name(f"{target.name}.{os.getpid()}.{HOST}.{uuid4().hex[:8]}.part")
    try:
        yield part
    finally:
        _remove(part)


def _check_writable(folder: Path, argument: str) -> None:
    """Make a folder; an ``OSError`` that names its argument where nothing can be written to it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        told = f"{argument}: {folder} cannot be written to ({error.strerror}); name another"
        raise type(error)(told) from error


def _remove(part: Path) -> None:
    if part.is_dir():
        shutil.rmtree(part, ignore_errors=True)
    else:
        part.unlink(missing_ok=True)


@contextmanager
def _file_lock(target: Path, *, wait: bool = True) -> Iterator[None]:
    """Nobody else on this machine is within ``file_lock(target)``; who comes later waits.

    Without `wait` it gets a `filelock.Timeout` instead. The lock is the operating system's, and
    goes with the process, however that ends. Its file is in the temporary folder, named by who owns
    it: results hold nothing but results.
    """
    name = hashlib.sha256(str(target.resolve()).encode()).hexdigest()[:16]
    owner = os.getuid() if hasattr(os, "getuid") else "me"  # Windows has such a folder per user
    path = Path(tempfile.gettempdir()) / f"shrink-{owner}-{name}.lock"
    with FileLock(path, timeout=-1 if wait else 0):
        yield


def _read_json(path: Path):
    """The value that `_write_json` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))


def _write_json(path: Path, value: object) -> None:
    """Write a value of plain types, to be read by people too."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def provenance() -> dict[str, object]:
    """Packages, interpreter, device, threads, commit and time (UTC) of this process."""
    import torch  # most of who writes files whole needs no torch

    return {
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "platform": f"{platform.system()} {platform.machine()}",
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "memory_gb": round(_peak_memory() / 1e9, 2),
        "commit": _commit(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _peak_memory() -> int:
    """Bytes that this process has held at once: of its GPU, or else of the machine."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_reserved()
    try:
        import resource
    except ImportError:  # Windows
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _commit() -> str:
    """Commit of the checkout, marked when files differ from it; 'unknown' outside git."""
    command = ["git", "-C", str(home()), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()


def progress_bar(*, total: int, unit: str, description: str = "") -> tqdm:
    """A bar that counts to `total`, to be used in a ``with`` statement: sparse in a log.

    There is none when `total` is 0, and none under ``TQDM_DISABLE=1``, which is how notebooks are
    stored: in a notebook, tqdm by itself does not heed that variable.
    """
    watched = sys.stderr.isatty() or "ipykernel" in sys.modules
    return tqdm(
        total=total,
        unit=unit,
        desc=description or None,
        mininterval=0.5 if watched else 15.0,
        smoothing=0,  # the time left is by the mean of all steps: runs of a study take turns
        dynamic_ncols=True,
        disable=total == 0 or os.environ.get("TQDM_DISABLE", "0") not in ("", "0"),
    )


# --- many results ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """A result that is to be made: `make`, called without arguments, leaves the folder `path`."""

    path: Path
    make: Callable[[], object]  # for other processes: a function of a module, or a partial of one
    label: str

    @property
    def log(self) -> Path:
        """Where it is written why the result could not be made."""
        return self.path.with_name(f"{self.path.name}.failed.log")


def make_all(work: Sequence[Work], *, workers: int = 1) -> None:
    """Make results, each once, whoever else makes some of them at the same time.

    In this process, by `workers` processes, or on the Dask cluster at ``DASK_SCHEDULER_ADDRESS``,
    which sees the same folder. ``SHRINK_WORKERS`` takes the place of `workers`. On GPUs, where it
    is not set, as many work as the memory that the first result took allows; there is at least one
    per GPU, and the i-th has GPU i mod n. The numbers are the same.

    Raises
    ------
    RuntimeError
        Some could not be made: after all others, with the log of each. A second call tries these
        alone, as all that was made stays.
    ConnectionError
        No scheduler answers at the address.
    """
    work = [one for one in work if not one.path.exists()]
    gpus, workers = _gpus(), _n_workers(workers)
    workers = min(len(work), max(workers, len(gpus)))
    for one in work:
        one.path.parent.mkdir(parents=True, exist_ok=True)
        one.log.unlink(missing_ok=True)
    with progress_bar(total=len(work), unit="run") as bar:
        bar.bar_format = NO_TIME_LEFT
        if work and os.environ.get(ADDRESS):
            _on_cluster(work, bar)
        elif workers > 1 or gpus:
            if gpus and not os.environ.get(WORKERS):
                _side_by_side(work[:1], 1, gpus, bar)
                workers = min(len(work), len(gpus) * _fit_on_gpu(work[0], len(gpus)))
            _side_by_side(work, workers, gpus, bar)
        elif work:
            _settle_all(work, bar=bar)
    if failed := [one for one in work if one.path.name not in os.listdir(one.path.parent)]:
        told = [f"  {one.label}: {_last_line(one.log)} ({one.log})" for one in failed]
        raise RuntimeError(
            f"{len(failed)} of {len(work)} runs failed; the same command tries these again:\n"
            + "\n".join(told)
        )


def _n_workers(of_profile: int) -> int:
    given = os.environ.get(WORKERS, "")
    if given and not (given.isdecimal() and int(given)):
        raise ValueError(f"{WORKERS}: {given!r}, expected a whole number from 1 up, or nothing")
    return int(given or of_profile)


def _gpus() -> list[str]:
    """What ``CUDA_VISIBLE_DEVICES`` may name, one per GPU that torch sees."""
    import torch

    found = range(torch.cuda.device_count())
    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return named[: len(found)] or [str(i) for i in found]


def _fit_on_gpu(first: Work, gpus: int) -> int:
    """How many processes one GPU holds, by the memory that the first result took; 1 if unknown."""
    import torch

    stamp = first.path / STAMP
    took = _read_json(stamp).get("memory_gb", 0.0) if stamp.is_file() else 0.0
    has = torch.cuda.get_device_properties(0).total_memory / 1e9
    by_memory = int(has / (SPARE * took + CONTEXT_GB)) if took else 1
    return max(1, min(MOST_ON_GPU, by_memory, (os.cpu_count() or 1) // gpus))


def _last_line(log: Path) -> str:
    text = log.read_text(encoding="utf-8") if log.is_file() else "nothing is known of it"
    return text.strip().splitlines()[-1]


def _settle(one: Work) -> bool:
    """Make a result, unless it is there or was tried; False while another process makes it."""
    try:
        with _file_lock(one.path.with_name(f"{one.path.name}.made"), wait=False):
            if one.path.exists() or one.log.exists():
                return True
            one.log.write_text("its process ended in the middle\n", encoding="utf-8")
            try:
                one.make()
            except Exception:
                one.log.write_text(traceback.format_exc(), encoding="utf-8")
            else:
                one.log.unlink(missing_ok=True)  # another call may have cleared it, beginning anew
            return True
    except Timeout:
        return False


def _settle_all(work: Sequence[Work], *, gpu: str = "", bar: tqdm | None = None) -> None:
    """What a process does: all that nobody else does, until nothing is left."""
    if gpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu  # read when torch first asks for the device
    waiting, parent = list(work), parent_process()
    while waiting:
        for one in [*waiting]:
            if parent is not None and not parent.is_alive():
                return  # it was killed: what is made stays, and nobody asks for the rest
            if _settle(one):
                waiting.remove(one)
                if bar is not None:
                    _show(bar, work)
        if waiting:
            time.sleep(1)


def _side_by_side(work: Sequence[Work], workers: int, gpus: list[str], bar: tqdm) -> None:
    spawn = get_context("spawn")
    of = [{"work": work, "gpu": gpus[i % len(gpus)] if gpus else ""} for i in range(workers)]
    team = [spawn.Process(target=_settle_all, kwargs=one, daemon=True) for one in of]
    for process in team:
        process.start()
    try:
        while any(process.is_alive() for process in team):
            time.sleep(1)
            _show(bar, work, workers)
    finally:
        for process in team:
            process.terminate()
            process.join()


def _show(bar: tqdm, work: Sequence[Work], workers: int = 1) -> None:
    """Move the bar to what is made; the time left is told when every worker has made one.

    Runs side by side end together: after the first alone it would be far too much.
    """
    made = sum(one.path.exists() for one in work)
    if made >= workers:
        bar.bar_format = TIME_LEFT
    bar.update(made - bar.n)


def _on_cluster(work: Sequence[Work], bar: tqdm) -> None:
    from distributed import Client, as_completed  # all others do without them

    address = os.environ[ADDRESS]
    settings = {name: value for name, value in os.environ.items() if name.startswith("SHRINK_")}
    try:
        client = Client(address)
    except OSError as error:
        raise ConnectionError(
            f"{ADDRESS}: no scheduler answers at {address}; start one, or unset the variable"
        ) from error
    with client:
        calls = {client.submit(_remote, one, settings, key=str(one.path)): one for one in work}
        for call in as_completed(calls):
            if (error := call.exception()) is not None:
                calls[call].log.write_text(f"{error}\n", encoding="utf-8")
            _show(bar, work, len(client.nthreads()))


def _remote(one: Work, settings: dict[str, str]) -> None:
    from distributed import get_worker

    if get_worker().state.nthreads > 1:  # runs of a process share torch's random numbers
        raise ValueError("its worker has several threads; start workers with `--nthreads 1`")
    with patch.dict(os.environ, settings):
        while not _settle(one):
            time.sleep(1)
