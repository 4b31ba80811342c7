"""A whole study is made under one line of progress: its runs, its notebooks, and the time left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO

import pandas as pd
from tqdm import tqdm

from shrink_utils.paths import data_dir
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs import run_id

MAKE = ("make", "-s", "--no-print-directory")
LINE = "{desc}: {percentage:3.0f} % of the work, {elapsed} so far, about {remaining} left"
SECONDS = "seconds.csv"  # what the parts of a study took once, from nothing: only ratios count


@dataclass(frozen=True)
class Part:
    """A run or a notebook that is missing."""

    kind: str
    path: Path
    seconds: float

    def done(self, since: float) -> bool:
        """Whether it has been written since then."""
        return self.path.exists() and self.path.stat().st_mtime >= since


def watch_study(profile: Profile, *, make: Sequence[str] = MAKE) -> int:
    """Make what is missing of a study, and return make's exit status.

    What the commands say is dropped; their errors stand above the line.
    """
    since, parts = time.time(), _missing(profile, make)
    quiet = {**os.environ, "TQDM_DISABLE": "1"}
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with (
        _line(parts) as bar,
        subprocess.Popen([*make, "parts"], env=quiet, text=True, **pipes) as process,
    ):
        relay = Thread(target=_relay, args=[process.stderr], daemon=True)
        relay.start()
        try:
            while process.poll() is None:
                _update(bar, parts, since)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1.0 if sys.stderr.isatty() else 60.0)
        finally:
            process.terminate()  # where this process was told to stop
            process.wait()
        relay.join()
        _update(bar, parts, since)
    return process.returncode


def _missing(profile: Profile, make: Sequence[str]) -> list[Part]:
    """Runs without a folder, and the notebooks that make would execute."""
    seconds = _seconds(profile)
    configs = {profile.folder / "runs" / run_id(config): config for config in profile.all_runs()}
    longer = {path: config.epochs / profile.epochs for path, config in configs.items()}
    runs = [Part("runs", path, seconds["run"] * longer[path]) for path in configs]
    planned = subprocess.run([*make, "-n", "notebooks"], capture_output=True, text=True).stdout
    names = dict.fromkeys(re.findall(r"execute notebooks/(\S+)\.ipynb", planned))
    folder = profile.folder / "notebooks"
    return [run for run in runs if not run.path.exists()] + [
        Part("notebooks", folder / f"{name}.ipynb", seconds.get(name, seconds.mean()))
        for name in names
    ]


def _seconds(profile: Profile) -> pd.Series:
    """By part, of the profile or, where nobody has timed it, of `quick`."""
    folders = [data_dir() / "reference" / name for name in (profile.name, "quick")]
    path = next(folder / SECONDS for folder in folders if (folder / SECONDS).is_file())
    return pd.read_csv(path, index_col="part").seconds


def _line(parts: Sequence[Part]) -> tqdm:
    silent = os.environ.get("TQDM_DISABLE", "0") not in ("", "0")
    total = sum(part.seconds for part in parts)
    return tqdm(total=total, bar_format=LINE, smoothing=0, dynamic_ncols=True, disable=silent)


def _relay(errors: IO[str]) -> None:
    for line in errors:
        tqdm.write(line.rstrip("\n"), file=sys.stderr)


def _update(bar: tqdm, parts: Sequence[Part], since: float) -> None:
    done = [part for part in parts if part.done(since)]
    of = {kind: sum(part.kind == kind for part in parts) for kind in ("runs", "notebooks")}
    made = {kind: sum(part.kind == kind for part in done) for kind in of}
    said = ", ".join(f"{made[kind]} of {of[kind]} {kind}" for kind in of if of[kind])
    bar.n = sum(part.seconds for part in done)
    bar.set_description_str(said or "claims")
