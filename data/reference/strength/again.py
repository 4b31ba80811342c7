"""Every run of profile strength once more, on one device: a replicate of the records.

    python data/reference/strength/again.py FOLDER [PROCESSES]

Makes the runs that FOLDER lacks, by so many processes side by side (one, unless told), and then
writes the tables that `decide.py FOLDER` reads. It prints how many runs there are, but no outcome.
"""

import argparse
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

from shrink_utils.study.profiles import load_profile
from shrink_utils.study.records import TABLES
from shrink_utils.study.runs import Run, run_or_load
from shrink_utils.training import RunConfig

DECIDED_ON = ("runs", "evaluations", "correct")


def made(config: RunConfig, folder: Path) -> Run:
    """One run, found or made."""
    return run_or_load(config, folder, keep_model=False)


def make_all(configs: list[RunConfig], folder: Path, processes: int) -> list[Run]:
    """The runs, kept in `folder`/runs, and their tables in `folder`."""
    configs = sorted(configs, key=lambda config: -config.epochs)  # nobody waits for a long one
    with get_context("spawn").Pool(processes) as pool:
        runs = pool.starmap(made, zip(configs, repeat(folder / "runs")), chunksize=1)
    for name in DECIDED_ON:
        by_length = {
            length: TABLES[name]([run for run in runs if run.config.epochs == length])
            for length in sorted({config.epochs for config in configs})
        }
        table = pd.concat(by_length, names=["epochs", None]).reset_index(level="epochs")
        table.to_parquet(folder / f"{name}.parquet", index=False, compression="zstd")
    return runs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("processes", type=int, nargs="?", default=1)
    options = parser.parse_args()
    configs = load_profile("strength").all_runs(precision="float32")
    runs = make_all(configs, options.folder, options.processes)
    print(len(runs), "runs, made on", *sorted({run.provenance["device"] for run in runs}))
