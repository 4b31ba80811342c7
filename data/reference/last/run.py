"""The runs of docs/preregistration_last.md: a seed at a time, whole or not at all.

    python data/reference/last/run.py FOLDER [--seeds 500 501 ...]
    python data/reference/last/run.py FOLDER --collect

The first line makes the blocks that FOLDER lacks, in the order of the page; start it as often as
there are cores, and again after a stop: ``--seeds 9000 --trial`` makes a short one. `--collect`
merges the blocks into the tables beside this file, and prints how many there are, but no outcome.
"""

from __future__ import annotations

import argparse
import math
import platform
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import uses
from filelock import FileLock, Timeout
from uses import TASK, Texts

import shrink_utils
from shrink_utils.geometry import anisotropy
from shrink_utils.study.results import provenance
from shrink_utils.text.corpora import hash_order
from shrink_utils.training import RunConfig, StepRecorder, finetune

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = "docs/preregistration_last.md"
SEEDS = range(500, 516)
# In the order of the page; uses are read of those that are marked.
CONDITIONS = (
    ("none", 1.0, True),
    ("prominent", 1.0, True),
    ("all", 4.0, True),
    ("isoscore", 0.3, True),
    ("all", 8.0, False),
    ("all", 32.0, False),
)
LAST = 0.3  # of the epochs, and of the steps
TABLES = ("runs", "evaluations", "rows", "uses", "verses")
MACHINE = ("processor", "capability", "device", "torch", "precision")


def config(arm: str, weight: float, seed: int) -> RunConfig:
    """One run: products, ten epochs, as the third analysis but for the precision."""
    return RunConfig(
        model="minilm",
        task=TASK,
        arm=arm,
        weight=weight,
        seed=seed,
        train_rows=None,
        eval_rows=None,
        epochs=10,
        learning_rate=8e-5,
        weight_decay=8e-6,
        max_length=16,
        batch_size=64,
        precision="bfloat16",
        threads=1,
    )


def choosing_half(labels: np.ndarray) -> np.ndarray:
    """Which validation rows (n,) choose the epoch of least loss; the others are measured there.

    Half of each class, drawn once.
    """
    order = np.array(hash_order(len(labels), "last", "half"))
    chosen = np.zeros(len(labels), dtype=bool)
    for label in np.unique(labels):
        of_class = order[labels[order] == label]
        chosen[of_class[: len(of_class) // 2]] = True
    return chosen


def losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy in nats of each row (..., n), of logits (..., n, classes)."""
    log_p = logits.double().log_softmax(-1)
    index = labels.expand(log_p.shape[:-1])[..., None]
    return -log_p.gather(-1, index).squeeze(-1)


class LeastLoss(StepRecorder):
    """Also keeps, in memory, the weights of the epoch whose loss on the choosing half is least."""

    def __init__(self, labels: torch.Tensor) -> None:
        super().__init__()
        self.labels, self.chosen = labels, torch.tensor(choosing_half(labels.numpy()))
        self.least, self.weights, self.epoch = math.inf, {}, 0

    def on_evaluate(self, args, state, control, model=None, **kwargs) -> None:
        """After the validation rows; those before the first step do not count."""
        loss = losses(self.evaluated[-1].outputs, self.labels)[self.chosen].mean().item()
        if state.global_step and loss < self.least:
            self.least, self.epoch = loss, len(self.evaluated) - 1
            self.weights = {k: v.detach().clone() for k, v in model.state_dict().items()}


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


def make_run(of: RunConfig, labels: torch.Tensor, texts: Texts | None) -> dict[str, pd.DataFrame]:
    """The tables of one run; its model is dropped."""
    since, recorder = time.perf_counter(), LeastLoss(labels)
    result = finetune(of, recorder=recorder)
    if not torch.equal(result.embeddings["labels"], labels):
        raise RuntimeError("validation rows are not in the order of the choosing half")
    trained = time.perf_counter()
    keys = {"arm": of.arm, "weight": of.weight, "seed": of.seed}
    tables = {
        "evaluations": pd.DataFrame(result.evaluations).assign(**keys),
        "rows": validation_rows(recorder).assign(**keys),
    }
    values, verses = [], []
    for moment, weights in (("end", None), ("least", recorder.weights)):
        if texts is not None:
            if weights is not None:
                result.model.load_state_dict(weights)
            of_model = uses.measure(result.model, result.tokenizer, texts, seed=of.seed)
            values += [keys | {"moment": moment} | row for row in of_model[0]]
            verses += [keys | {"moment": moment} | row for row in of_model[1]]
    if texts is not None:
        hits = (
            pd.DataFrame(verses).explode("hits", ignore_index=True).rename(columns={"hits": "hit"})
        )
        hits["row"] = hits.groupby([*keys, "moment", "treatment", "use"]).cumcount()
        tables |= {"uses": pd.DataFrame(values), "verses": hits}
    other = ~recorder.chosen
    full = result.history[result.history.rows == result.history.rows.max()]
    at_least = recorder.evaluated[recorder.epoch].embeddings[other]
    of_run = keys | {
        "epochs": of.epochs,
        "epoch_least": recorder.epoch,
        "share_least": float(anisotropy(at_least, k=1, center=True)[0]),
        "train_share": full.centred_1.tail(math.ceil(LAST * len(full))).mean(),
        "seconds": round(trained - since, 1),
        "seconds_uses": round(time.perf_counter() - trained, 1),
    }
    return tables | {"runs": pd.DataFrame([of_run | stamp()])}


def validation_rows(recorder: LeastLoss) -> pd.DataFrame:
    """Correctness and loss of every validation row: late, and at the least loss of the other half.

    Late: the mean over the last 30 % of the epochs. Rows of the half that chooses have no value at
    the least loss.
    """
    logits = torch.stack([seen.outputs for seen in recorder.evaluated])  # (epochs + 1, n, classes)
    loss = losses(logits, recorder.labels)  # (epochs + 1, n)
    right = (logits.argmax(-1) == recorder.labels).double()
    last, epoch = math.ceil(LAST * (len(logits) - 1)), recorder.epoch
    table = pd.DataFrame(
        {
            "row": np.arange(loss.shape[1], dtype="int16"),
            "chooses": recorder.chosen.numpy(),
            "correct": right[-last:].mean(dim=0).numpy(),
            "loss": loss[-last:].mean(dim=0).numpy(),
            "correct_least": right[epoch].numpy(),
            "loss_least": loss[epoch].numpy(),
        }
    )
    table.loc[table.chooses, ["correct_least", "loss_least"]] = np.nan
    return table


def validation_labels() -> torch.Tensor:
    """Labels (n,) of the validation rows, in the order in which runs evaluate them."""
    from shrink_utils.text import load_task

    return torch.tensor(list(load_task(TASK, max_train=None)["validation"]["label"]))


def make_block(
    seed: int, target: Path, *, texts: Texts, conditions=CONDITIONS, epochs: int = 10
) -> None:
    """Make the runs of a seed, one after another, and write their tables at once.

    A run that fails is made once more; a second failure ends the block, of which nothing stays.
    """
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    labels = validation_labels()
    for arm, weight, read in conditions:
        of = replace(config(arm, weight, seed), epochs=epochs)
        try:
            tables = make_run(of, labels, texts if read else None)
        except Exception as error:
            print(f"{of.label}: {error}; once more", flush=True)
            tables = make_run(of, labels, texts if read else None)
        print(f"{of.label}: {tables['runs'].seconds.item():.0f} s", flush=True)
        for name, table in tables.items():
            parts[name].append(table)
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a process that was stopped
    part.mkdir(parents=True)
    for name, tables in parts.items():
        compact(pd.concat(tables, ignore_index=True)).to_parquet(
            part / f"{name}.parquet", index=False, compression="zstd"
        )
    part.rename(target)


def compact(table: pd.DataFrame) -> pd.DataFrame:
    """Names as categories, single precision: what is committed is to be small."""
    kinds = {"str": "category", "object": "category", "float64": "float32", "int64": "int32"}
    table = table.infer_objects()
    return table.astype({c: kinds[str(t)] for c, t in table.dtypes.items() if str(t) in kinds})


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
    """Refuse a processor that only emulates bfloat16, and blocks of another commit."""
    if not torch.cuda.is_available():
        native = torch.cpu.get_capabilities()
        if not (native.get("avx512_bf16") or native.get("amx_bf16")):
            raise RuntimeError("this processor has no bfloat16: the page fixes that precision")
    here = stamp()["commit"]
    for path in sorted(folder.glob("*/runs.parquet")):
        if strange := set(pd.read_parquet(path, columns=["commit"]).commit) - {here}:
            raise RuntimeError(f"commit: {here}, but {path.parent.name} is of {strange}")


def make_all(folder: Path, seeds: Sequence[int]) -> None:
    """Make every block that is not there and that no other process is making."""
    check_code()
    folder.mkdir(parents=True, exist_ok=True)
    check_machine(folder)
    torch.set_num_threads(1)
    texts = uses.read_texts()
    for seed in seeds:
        since = time.perf_counter()
        try:
            with FileLock(folder / f".{seed}.lock", timeout=0):
                if not (folder / str(seed)).exists():
                    make_block(seed, folder / str(seed), texts=texts)
                    print(f"{seed}: {time.perf_counter() - since:.0f} s", flush=True)
        except Timeout:
            print(f"{seed}: another process makes it", flush=True)


def collect(folder: Path, target: Path = HERE) -> dict[str, int]:
    """Merge the whole blocks of a folder into tables in `target`; how many there are.

    Raises
    ------
    FileNotFoundError
        There is no block.
    ValueError
        Blocks of several commits, or a block of several kinds of machine.
    """
    there = [folder / str(seed) for seed in SEEDS if (folder / str(seed)).is_dir()]
    if not there:
        raise FileNotFoundError(f"{folder} has no block; make some first")
    tables = {
        name: pd.concat([pd.read_parquet(block / f"{name}.parquet") for block in there])
        for name in TABLES
    }
    runs = tables["runs"]
    if runs.commit.nunique() > 1:
        raise ValueError(f"commit: runs are of {sorted(runs.commit.unique())}, expected one")
    if (runs.groupby("seed")[list(MACHINE)].nunique() > 1).any(axis=None):
        raise ValueError("a seed's runs were made on several kinds of machine")
    for name, table in tables.items():
        plain = table.astype({c: str for c, t in table.dtypes.items() if t == "category"})
        compact(plain.reset_index(drop=True)).to_parquet(
            target / f"{name}.parquet", index=False, compression="zstd"
        )
    return {"blocks": len(there), "of": len(SEEDS), "runs": len(runs)}


def trial(folder: Path, seed: int) -> None:
    """A short block of a seed from 9000 on, in the working tree as it is."""
    if seed < 9000:
        raise SystemExit(f"--trial: seed {seed}, expected one from 9000 on")
    torch.set_num_threads(1)
    texts = uses.read_texts(most=200)
    make_block(seed, folder / str(seed), texts=texts, conditions=CONDITIONS[1:3], epochs=2)


def main(arguments: Sequence[str] | None = None) -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    parser.add_argument("--collect", action="store_true")
    parser.add_argument("--trial", action="store_true", help="a short block, of seeds from 9000 on")
    given = parser.parse_args(arguments)
    if given.trial:
        for seed in given.seeds:
            trial(given.folder, seed)
    elif given.collect:
        print(collect(given.folder))
    else:
        make_all(given.folder, given.seeds)


if __name__ == "__main__":
    main()
