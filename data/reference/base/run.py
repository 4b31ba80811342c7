"""The runs of docs/preregistration_base.md: a seed at a time, whole or not at all.

    python data/reference/base/run.py FOLDER [--seeds 600 601 ...]
    python data/reference/base/run.py FOLDER --collect

The first line makes the runs that FOLDER lacks, in the order of the page; start it as often as
there are cores (or, on a GPU, as models fit into it), and again after a stop. `--collect` merges
the runs of whole seeds into the tables beside this file, and prints how many there are, but no
outcome. ``--seeds 9000 --trial`` makes a short seed.
"""

from __future__ import annotations

import argparse
import math
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import torch
from filelock import FileLock, Timeout

import shrink_utils
from shrink_utils.study.config import RunConfig
from shrink_utils.study.finetuning import finetune
from shrink_utils.study.results import provenance
from shrink_utils.training import StepRecorder

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = "docs/preregistration_base.md"
SEEDS = range(600, 608)
CONDITIONS = (("none", 1.0), ("prominent", 1.0), ("all", 1.0), ("all", 4.0))  # in this order
LAST = 0.3  # of the epochs, and of the steps
TABLES = ("runs", "evaluations", "rows")
MACHINE = ["processor", "capability", "device", "torch", "precision"]


def config(arm: str, weight: float, seed: int, epochs: int = 10) -> RunConfig:
    """One run, as parts 1 and 2 make theirs, but of the base-sized encoder."""
    return RunConfig(
        model="mpnet",
        task="sentiment_products",
        arm=arm,
        weight=weight,
        seed=seed,
        train_rows=None,
        eval_rows=None,
        epochs=epochs,
        learning_rate=8e-5,
        weight_decay=8e-6,
        max_length=16,
        batch_size=64,
        precision="bfloat16",
        threads=1,
    )


def stamp() -> dict[str, object]:
    """Where and with what a run is made."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    found = provenance()
    return {
        "time": found["time"],
        "commit": found["commit"],
        "device": found["device"],
        "processor": names[0] if names else platform.machine(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "precision": "bfloat16",
    }


def validation_rows(recorder: StepRecorder, labels: torch.Tensor) -> pd.DataFrame:
    """Correctness and loss in nats of every validation row, means over the late evaluations."""
    logits = torch.stack([seen.outputs for seen in recorder.evaluated])  # (epochs + 1, n, classes)
    log_p = logits.double().log_softmax(-1)
    index = labels.expand(log_p.shape[:-1])[..., None]
    loss = -log_p.gather(-1, index).squeeze(-1)  # (epochs + 1, n)
    right = (logits.argmax(-1) == labels).double()
    last = math.ceil(LAST * (len(logits) - 1))
    return pd.DataFrame(
        {
            "row": np.arange(loss.shape[1], dtype="int16"),
            "correct": right[-last:].mean(dim=0).numpy(),
            "loss": loss[-last:].mean(dim=0).numpy(),
        }
    )


def make_run(of: RunConfig) -> dict[str, pd.DataFrame]:
    """The tables of one run; its model is dropped."""
    since, recorder = perf_counter(), StepRecorder()
    result = finetune(of, recorder=recorder)
    keys = {"arm": of.arm, "weight": of.weight, "seed": of.seed}
    full = result.history[result.history.rows == result.history.rows.max()]
    of_run = keys | {
        "epochs": of.epochs,
        "train_share": full.centred_1.tail(math.ceil(LAST * len(full))).mean(),
        "seconds": round(perf_counter() - since, 1),
    }
    return {
        "runs": pd.DataFrame([of_run | stamp()]),
        "evaluations": pd.DataFrame(result.evaluations).assign(**keys),
        "rows": validation_rows(recorder, result.embeddings["labels"]).assign(**keys),
    }


def compact(table: pd.DataFrame) -> pd.DataFrame:
    """Names as categories, single precision: what is committed is to be small."""
    kinds = {"str": "category", "object": "category", "float64": "float32", "int64": "int32"}
    table = table.infer_objects()
    return table.astype({c: kinds[str(t)] for c, t in table.dtypes.items() if str(t) in kinds})


def keep(of: RunConfig, target: Path) -> None:
    """Make a run, once more if it fails, and write its tables at once."""
    try:
        tables = make_run(of)
    except Exception as error:
        print(f"{of.label}: {error}; once more", flush=True)
        tables = make_run(of)
    print(f"{of.label}: {tables['runs'].seconds.item():.0f} s", flush=True)
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a process that was stopped
    part.mkdir(parents=True)
    for name, table in tables.items():
        compact(table).to_parquet(part / f"{name}.parquet", index=False, compression="zstd")
    part.rename(target)


def check_code() -> str:
    """The commit, which has to be the page's, of a checkout without changes.

    Raises
    ------
    RuntimeError
        Another package, another commit, or changed files.
    """
    if ROOT not in Path(shrink_utils.__file__).resolve().parents:
        raise RuntimeError(f"shrink_utils is {shrink_utils.__file__}, expected that of {ROOT}")

    def git(*what: str) -> str:
        command = ["git", "-C", str(ROOT), *what]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    head, page = git("rev-parse", "HEAD"), git("log", "-1", "--format=%H", "--", PAGE)
    if head != page:
        raise RuntimeError(f"HEAD is {head}, but {PAGE} is of {page}: check that out")
    if changed := git("status", "--porcelain"):
        raise RuntimeError(f"the checkout has changes: {changed.splitlines()[:3]}")
    return head


def check_machine(folder: Path) -> None:
    """Refuse a processor that only emulates bfloat16, and runs of another commit."""
    if not torch.cuda.is_available():
        native = torch.cpu.get_capabilities()
        if not (native.get("avx512_bf16") or native.get("amx_bf16")):
            raise RuntimeError("this processor has no bfloat16: the page fixes that precision")
    here = stamp()["commit"]
    for path in sorted(folder.glob("*/runs.parquet")):
        if strange := set(pd.read_parquet(path, columns=["commit"]).commit) - {here}:
            raise RuntimeError(f"commit: {here}, but {path.parent.name} is of {strange}")


def name_of(arm: str, weight: float, seed: int) -> str:
    """Folder of a run."""
    return f"{seed}-{arm}-{weight:g}"


def make_all(folder: Path, seeds: Sequence[int], epochs: int = 10) -> None:
    """Make every run that is not there and that no other process is making."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for seed in seeds:
        for arm, weight in CONDITIONS:
            target = folder / name_of(arm, weight, seed)
            try:
                with FileLock(folder / f".{target.name}.lock", timeout=0):
                    if not target.exists():
                        keep(config(arm, weight, seed, epochs), target)
            except Timeout:
                pass  # another process makes it


def collect(folder: Path, target: Path = HERE) -> dict[str, int]:
    """Merge the runs of whole seeds into tables in `target`; how many there are.

    Raises
    ------
    FileNotFoundError
        No seed is whole.
    ValueError
        Runs of several commits, or a seed of several kinds of machine.
    """
    there = [
        folder / name_of(arm, weight, seed)
        for seed in SEEDS
        if all((folder / name_of(*of, seed)).is_dir() for of in CONDITIONS)
        for arm, weight in CONDITIONS
    ]
    if not there:
        raise FileNotFoundError(f"{folder} has no whole seed; make some runs first")
    tables = {
        name: pd.concat([pd.read_parquet(run / f"{name}.parquet") for run in there])
        for name in TABLES
    }
    runs = tables["runs"]
    if runs.commit.nunique() > 1:
        raise ValueError(f"commit: runs are of {sorted(runs.commit.unique())}, expected one")
    if (runs.groupby("seed")[MACHINE].nunique() > 1).any(axis=None):
        raise ValueError("a seed's runs were made on several kinds of machine")
    for name, table in tables.items():
        plain = table.astype({c: str for c, t in table.dtypes.items() if t == "category"})
        path = target / f"{name}.parquet"
        compact(plain.reset_index(drop=True)).to_parquet(path, index=False, compression="zstd")
    return {"seeds": runs.seed.nunique(), "of": len(SEEDS), "runs": len(runs)}


def main(arguments: Sequence[str] | None = None) -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    parser.add_argument("--collect", action="store_true")
    parser.add_argument("--trial", action="store_true", help="one epoch, of seeds from 9000 on")
    given = parser.parse_args(arguments)
    if given.collect:
        print(collect(given.folder))
    elif given.trial:
        if min(given.seeds) < 9000:
            raise SystemExit(f"--trial: seeds {given.seeds}, expected such from 9000 on")
        make_all(given.folder, given.seeds, epochs=1)
    else:
        check_code()
        check_machine(given.folder)
        make_all(given.folder, given.seeds)


if __name__ == "__main__":
    main()
