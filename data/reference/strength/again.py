"""Every run of profile strength once more, on one device: a replicate of the records.

    python data/reference/strength/again.py FOLDER [PROCESSES]

Makes the runs that FOLDER lacks, by so many processes side by side (one, unless told), and then
writes the tables that `decide.py FOLDER` reads. It prints how many runs there are, but no outcome.

    python data/reference/strength/again.py FOLDER --compare

writes ``devices.csv`` there: how far these runs lie from those on record that a processor made.
"""

import argparse
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pandas as pd

from shrink_utils.study.profiles import load_profile
from shrink_utils.study.records import TABLES
from shrink_utils.study.runs import Run, run_or_load
from shrink_utils.study.statistics import paired_interval
from shrink_utils.training import RunConfig

HERE = Path(__file__).parent
DECIDED_ON = ("runs", "evaluations", "correct")
RUN = ["epochs", "arm", "weight", "seed"]


def make_all(configs: list[RunConfig], folder: Path, processes: int) -> list[Run]:
    """The runs, kept in `folder`/runs, and their tables in `folder`."""
    configs = sorted(configs, key=lambda config: -config.epochs)  # nobody waits for a long one
    with get_context("spawn").Pool(processes) as pool:
        make = partial(run_or_load, folder=folder / "runs", keep_model=False)
        runs = pool.map(make, configs, chunksize=1)
    for name in DECIDED_ON:
        by_length = {
            length: TABLES[name]([run for run in runs if run.config.epochs == length])
            for length in sorted({config.epochs for config in configs})
        }
        table = pd.concat(by_length, names=["epochs", None]).reset_index(level="epochs")
        table.to_parquet(folder / f"{name}.parquet", index=False, compression="zstd")
    return runs


def read_quantities(folder: Path) -> pd.DataFrame:
    """Device, score and accuracy by run."""
    runs, correct = (pd.read_parquet(folder / f"{name}.parquet") for name in ("runs", "correct"))
    accuracy = correct.groupby(RUN).correct.mean().rename("mean_correct")
    found = runs.set_index(RUN)[["device", "centred_1"]].join(accuracy)
    return found.set_axis(["device", "score", "accuracy"], axis=1)


def compare(folder: Path) -> pd.DataFrame:
    """Runs in `folder` minus their namesakes beside this file, where a processor made all seeds.

    A mean over seeds with its 95 % interval (Student's t, not adjusted).
    """
    ours, recorded = read_quantities(folder), read_quantities(HERE)
    rows = []
    for cell, of in recorded.groupby(RUN[:3]):
        if (of.device == "cpu").all():
            for quantity in ("score", "accuracy"):
                found = paired_interval((ours.loc[of.index, quantity] - of[quantity]).to_numpy())
                rows.append((*cell, quantity, *found))
    return pd.DataFrame(rows, columns=[*RUN[:3], "quantity", "estimate", "low", "high", "n"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("processes", type=int, nargs="?", default=1)
    parser.add_argument("--compare", action="store_true")
    options = parser.parse_args()
    if options.compare:
        compare(options.folder).to_csv(options.folder / "devices.csv", index=False)
        raise SystemExit
    configs = load_profile("strength").all_runs(precision="float32")
    runs = make_all(configs, options.folder, options.processes)
    print(len(runs), "runs, made on", *sorted({run.provenance["device"] for run in runs}))
