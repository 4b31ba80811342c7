"""The runs of docs/preregistration_papers.md: a seed at a time, whole or not at all.

    python data/reference/papers/run.py FOLDER --code CHECKOUT [--seeds 700 701 ...]
    python data/reference/papers/run.py FOLDER --collect

The code is that of the fourth analysis: CHECKOUT is a clean checkout of its commit, and the Python
that runs this has its package. The first line makes the seeds that FOLDER lacks, in their order;
start it as often as there are cores, and again after a stop: finished blocks of a seed are kept
beside FOLDER's seeds until it is whole. `--collect` merges the seeds into the tables beside this
file, and prints how many there are, but no outcome. ``--seeds 9000 --trial`` makes a short seed.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from filelock import FileLock, Timeout

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = "docs/preregistration_papers.md"
FOURTH = "daf00bdb313bf89ffe6d3970fadd3e86bbd11b15"  # the commit of the fourth analysis
SEEDS = range(700, 708)
PARTS = ("objectives", "spaces", "family", "stitching", "finetuning")
TABLES = ("runs", "trainings", "losses", "places", "closure", "layers", "alike", "aligned",
          "family", "stitches", "finetuned")  # fmt: skip
MACHINE = ["processor", "capability", "torch"]


def git(where: Path, *what: str) -> str:
    """What a git command prints in a checkout."""
    command = ["git", "-C", str(where), *what]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def the_fourth(checkout: Path):
    """Module run.py of the fourth analysis, from its clean checkout.

    Raises
    ------
    RuntimeError
        Another commit, changed files, or a package from elsewhere.
    """
    import shrink_utils

    if (head := git(checkout, "rev-parse", "HEAD")) != FOURTH:
        raise RuntimeError(f"--code: {checkout} is at {head}, expected {FOURTH}")
    if changed := git(checkout, "status", "--porcelain"):
        raise RuntimeError(f"--code: {checkout} has changes: {changed.splitlines()[:3]}")
    if checkout not in Path(shrink_utils.__file__).resolve().parents:
        raise RuntimeError(f"shrink_utils is {shrink_utils.__file__}, expected that of {checkout}")
    sys.path.insert(0, str(checkout / "data" / "reference" / "objectives"))
    import run

    return run


def check_page() -> None:
    """Raise a ``RuntimeError`` unless this checkout is the page's commit, unchanged."""
    head, page = git(ROOT, "rev-parse", "HEAD"), git(ROOT, "log", "-1", "--format=%H", "--", PAGE)
    if head != page:
        raise RuntimeError(f"HEAD is {head}, but {PAGE} is of {page}: check that out")
    if changed := git(ROOT, "status", "--porcelain"):
        raise RuntimeError(f"the checkout has changes: {changed.splitlines()[:3]}")


def blocks_of(fourth, seed: int) -> list:
    """The fourth analysis' blocks of one seed that a hypothesis needs, in its order."""
    fourth.SEEDS = (seed,)
    return [
        block
        for block in fourth.blocks()
        if block.part in PARTS and (block.part != "finetuning" or block.keys["arm"] == "none")
    ]


def make_seed(fourth, seed: int, target: Path) -> None:
    """Make the blocks of a seed, those that fail once more, and keep its tables, but no model."""
    work, since = target.with_name(f".{seed}.work"), time.perf_counter()
    planned = blocks_of(fourth, seed)
    try:
        fourth.make_all(work, planned=planned)
    except RuntimeError as error:
        print(f"{error}; once more", flush=True)
        fourth.make_all(work, planned=planned)
    part = target.with_name(f".{seed}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a process that was stopped
    part.mkdir()
    for name in TABLES:
        paths = [work / block.name / f"{name}.parquet" for block in planned]
        found = [pd.read_parquet(path) for path in paths if path.is_file()]
        compact(pd.concat(found, ignore_index=True)).to_parquet(
            part / f"{name}.parquet", index=False, compression="zstd"
        )
    part.rename(target)
    shutil.rmtree(work)
    print(f"{seed}: {time.perf_counter() - since:.0f} s", flush=True)


def compact(table: pd.DataFrame) -> pd.DataFrame:
    """Names as categories, single precision: what is committed is to be small."""
    kinds = {"str": "category", "object": "category", "float64": "float32"}
    return table.astype({c: kinds[str(t)] for c, t in table.dtypes.items() if str(t) in kinds})


def make_all(fourth, folder: Path, seeds: Sequence[int]) -> None:
    """Make every seed that is not there and that no other process is making."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for seed in seeds:
        try:
            with FileLock(folder / f".{seed}.lock", timeout=0):
                if not (folder / str(seed)).exists():
                    make_seed(fourth, seed, folder / str(seed))
        except Timeout:
            print(f"{seed}: another process makes it", flush=True)


def shorten(fourth) -> None:
    """Trainings of some steps, of a trial: its tables have the form of a run's."""
    whole = fourth.trained

    def short(training, models):
        windows = tuple((1 + 20 * i, 10 + 20 * i) for i in range(len(training.windows)))
        return whole(replace(training, steps=80, windows=windows), models)

    fourth.trained = short


def collect(folder: Path, target: Path = HERE) -> dict[str, int]:
    """Merge the whole seeds of a folder into tables in `target`; how many there are.

    Raises
    ------
    FileNotFoundError
        No seed is whole.
    ValueError
        Blocks of several commits, or a seed of several kinds of machine.
    """
    there = [folder / str(seed) for seed in SEEDS if (folder / str(seed)).is_dir()]
    if not there:
        raise FileNotFoundError(f"{folder} has no whole seed; make some first")
    for name in TABLES:
        parts = [pd.read_parquet(of / f"{name}.parquet").assign(run=of.name) for of in there]
        if name == "runs":
            runs = pd.concat(parts)
            if runs.commit.nunique() > 1:
                raise ValueError(f"commit: blocks are of {sorted(runs.commit.unique())}")
            if (runs.groupby("run")[MACHINE].nunique() > 1).any(axis=None):
                raise ValueError("a seed's blocks were made on several kinds of machine")
        table = pd.concat(parts, ignore_index=True).drop(columns="run")
        plain = table.astype({c: str for c, t in table.dtypes.items() if t == "category"})
        compact(plain).to_parquet(target / f"{name}.parquet", index=False, compression="zstd")
    return {"seeds": len(there), "of": len(SEEDS), "blocks": len(runs)}


def main(arguments: Sequence[str] | None = None) -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--code", type=Path, help="a checkout of the fourth analysis' commit")
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    parser.add_argument("--collect", action="store_true")
    parser.add_argument("--trial", action="store_true", help="short ones, of seeds from 9000 on")
    given = parser.parse_args(arguments)
    if given.collect:
        print(collect(given.folder))
        return
    if given.code is None:
        parser.error(f"--code: name a checkout of {FOURTH}")
    fourth = the_fourth(given.code.resolve())
    if not given.trial:
        check_page()
    elif min(given.seeds) < 9000:
        parser.error(f"--trial: seeds {given.seeds}, expected such from 9000 on")
    else:
        shorten(fourth)
    make_all(fourth, given.folder.resolve(), given.seeds)


if __name__ == "__main__":
    main()
