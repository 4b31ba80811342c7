"""The runs of docs/preregistration_heldout.md: a task and seed at a time, whole or not at all.

    python data/reference/heldout/run.py FOLDER [PART ...] [--seeds 400 401 ...]
    python data/reference/heldout/run.py FOLDER --collect

The first line makes the blocks that FOLDER lacks, in the order of the page; start it as often as
there are cores, and again after a stop. `--collect` merges the blocks into the tables beside this
file, and prints how many there are, but no outcome.
"""

from __future__ import annotations

import argparse
import math
import platform
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from filelock import FileLock, Timeout

sys.path.insert(0, str(Path(__file__).parent))
import uses
from uses import BY_ROW, Found, Texts

from shrink_utils.models import load_classifier
from shrink_utils.study.profiles import load_profile
from shrink_utils.study.results import atomic_write as written
from shrink_utils.study.results import provenance
from shrink_utils.training import RunConfig, StepRecorder, finetune

HERE = Path(__file__).parent
LAST = 0.3  # of the epochs, and of the steps
PRODUCTS = "sentiment_products"
Cells = tuple[tuple[str, float], ...]
FIRST: Cells = (("none", 1.0), ("prominent", 1.0), ("all", 4.0))
MORE: Cells = (("all", 2.0), ("isoscore", 0.3))
# Uses are read off these arms of products.
READ: Cells = (*FIRST, ("isoscore", 0.3))
EARLY, LATE = range(400, 405), range(405, 408)


@dataclass(frozen=True)
class Part:
    """Blocks of one task, one per seed: arms (and weights), run one after another."""

    name: str
    task: str
    cells: Cells
    seeds: Sequence[int]


PARTS = (  # in the order of the page
    Part("products", PRODUCTS, (*FIRST, ("all", 6.0), ("all", 8.0), ("isoscore", 0.3)),
         range(400, 408)),
    Part("mrpc", "mrpc", FIRST, EARLY),
    Part("cola", "cola", FIRST, EARLY),
    Part("products_more", PRODUCTS, (("prominent", 0.5), ("prominent", 2.0), ("all", 2.0)),
         range(400, 408)),
    Part("mrpc_more", "mrpc", MORE, EARLY),
    Part("cola_more", "cola", MORE, EARLY),
    Part("mrpc", "mrpc", FIRST, LATE),
    Part("cola", "cola", FIRST, LATE),
    Part("mrpc_more", "mrpc", MORE, LATE),
    Part("cola_more", "cola", MORE, LATE),
)  # fmt: skip
UNTRAINED = "untrained-0"
MACHINE = ("processor", "capability", "device", "torch", "precision")
TABLES = ("runs", "evaluations", "rows", "uses", "use_rows")
KEYS = ["task", "arm", "weight", "seed"]


class LeastLoss(StepRecorder):
    """Also keeps, in memory, the weights of the epoch with the least validation loss."""

    least, weights = math.inf, None

    def on_evaluate(self, args, state, control, metrics=None, model=None, **kwargs) -> None:
        """After the validation rows; those before the first step do not count."""
        if state.global_step and metrics["eval_loss"] < self.least:
            self.least = metrics["eval_loss"]
            self.weights = {k: v.detach().clone() for k, v in model.state_dict().items()}


@cache
def processor() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def stamp() -> dict[str, object]:
    """Where and with what a run is made."""
    found = provenance()
    return {
        "time": found["time"],
        "commit": found["commit"],
        "device": found["device"],
        "processor": processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
    }


def blocks(parts: Sequence[Part] = PARTS) -> Iterator[tuple[Part, int, str]]:
    """Part, seed and name of every block, in order."""
    for part in parts:
        for seed in part.seeds:
            yield part, seed, f"{part.name}-{seed}"


def configs(part: Part, seed: int) -> list[RunConfig]:
    """The runs of a block, in order, of profile ``heldout``."""
    profile = load_profile("heldout")
    known = {(c.task, c.arm, c.weight, c.seed): c for c in profile.all_runs(precision="float32")}
    return [known[part.task, arm, weight, seed] for arm, weight in part.cells]


def make_block(
    runs: Sequence[RunConfig], target: Path, *, texts: Texts | None, read: Cells = READ
) -> None:
    """Make the runs and write their tables to the folder `target`, at once.

    Uses are read off where there are `texts`, of the arms (and weights) in `read`.
    """
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for config in runs:
        for name, table in make_run(config, texts if (config.arm, config.weight) in read else None):
            parts[name].append(table)
    write_block(parts, target)


def write_block(parts: dict[str, list[pd.DataFrame]], target: Path) -> None:
    """A folder of parquet files that is there whole or not at all."""
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)  # of a process that was stopped
    part.mkdir(parents=True)
    for name, tables in parts.items():
        if tables:
            table = pd.concat(tables, ignore_index=True)
            table.to_parquet(part / f"{name}.parquet", index=False, compression="zstd")
    part.rename(target)


def make_run(config: RunConfig, texts: Texts | None) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables of one run, with their names; the model is dropped."""
    since, recorder = time.perf_counter(), LeastLoss()
    result = finetune(config, recorder=recorder)
    trained = time.perf_counter()
    keys = {name: getattr(config, name) for name in KEYS}
    evaluations = pd.DataFrame(result.evaluations)
    yield "evaluations", evaluations.assign(**keys)
    logits = torch.stack([seen.outputs for seen in recorder.evaluated])  # (epochs + 1, n, classes)
    yield "rows", validation_rows(logits, result.embeddings["labels"]).assign(**keys)
    if texts is not None:
        for moment, weights in (("end", None), ("least", recorder.weights)):
            if weights is not None:
                result.model.load_state_dict(weights)
            again = {"head": True, "made_round": config.arm == "none" and moment == "end"}
            found = uses.measure(result.model, result.tokenizer, texts, seed=config.seed, **again)
            yield from tables_of_uses(found, keys | {"moment": moment})
    full = result.history[result.history.rows == result.history.rows.max()]
    of_run = keys | {"epochs": config.epochs, "max_length": config.max_length} | stamp()
    of_run |= {"precision": config.precision, "threads": config.threads}
    of_run |= {"train_centred_1": full.centred_1.tail(math.ceil(LAST * len(full))).mean()}
    of_run |= {"seconds": round(trained - since, 1)}
    of_run |= {"seconds_uses": round(time.perf_counter() - trained, 1)}
    yield "runs", pd.DataFrame([of_run])


def validation_rows(logits: torch.Tensor, labels: torch.Tensor) -> pd.DataFrame:
    """Correctness and loss of every validation row, late and at the epoch of least loss.

    Late: the mean over the last 30 % of the epochs.

    Parameters
    ----------
    logits : Tensor, shape (epochs + 1, n, classes)
        The first are of the untrained model.
    labels : Tensor, shape (n,)
    """
    trained = logits[1:].double()
    right = (trained.argmax(-1) == labels).double()  # (epochs, n)
    log_p = trained.log_softmax(-1)
    loss = -log_p.gather(-1, labels.expand(len(trained), -1)[..., None]).squeeze(-1)
    last, least = math.ceil(LAST * len(trained)), int(loss.mean(dim=1).argmin())
    found = {
        "correct": right[-last:].mean(dim=0),
        "loss": loss[-last:].mean(dim=0),
        "correct_least": right[least],
        "loss_least": loss[least],
    }
    table = pd.DataFrame({name: of.numpy().astype("float32") for name, of in found.items()})
    table.insert(0, "row", np.arange(len(table), dtype="int16"))
    return table


def tables_of_uses(
    found: dict[str, Found], keys: dict[str, object]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Uses by treatment; at the end also the numbers of rows that hypotheses are about."""
    for treatment, of in found.items():
        keyed = keys | {"treatment": treatment}
        values = pd.DataFrame({"use": list(of.values), "value": list(of.values.values())})
        yield "uses", values.assign(**keyed)
        for use in BY_ROW:
            if use in of.rows and keys["moment"] == "end":
                rows = of.rows[use].astype("float32")
                table = pd.DataFrame({"row": np.arange(len(rows), dtype="int16"), "value": rows})
                yield "use_rows", table.assign(use=use, **keyed)


def untrained_block(target: Path, texts: Texts, *, model: str = "minilm") -> None:
    """Uses of the encoder before any fine-tuning, pooled as the runs are and as its authors do."""
    encoder, tokenizer = load_classifier(model, n_labels=2, seed=0)
    parts: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    for pooling, arm in (("cls", "untrained"), ("mean", "untrained_mean")):
        keys = {"task": PRODUCTS, "arm": arm, "weight": 0.0, "seed": 0, "moment": "end"}
        how = {"pooling": pooling, "head": False, "made_round": True}
        found = uses.measure(encoder, tokenizer, texts, seed=0, **how)
        for name, table in tables_of_uses(found, keys):
            parts[name].append(table)
    write_block(parts, target)


def check_machine(folder: Path, part: Part, seed: int) -> None:
    """Refuse another commit than the other blocks', and another machine for one task and seed."""
    here = stamp() | {"precision": "float32"}
    if here["commit"].endswith("-dirty"):
        raise ValueError(f"commit: {here['commit']}, expected a checkout without changes")
    for path in sorted(folder.glob("*/runs.parquet")):
        made = pd.read_parquet(path, columns=[*KEYS, "commit", *MACHINE])
        if strange := set(made.commit) - {here["commit"]}:
            raise ValueError(f"commit: {here['commit']}, but {path.parent.name} is of {strange}")
        same = made[(made.task == part.task) & (made.seed == seed)]
        for name in MACHINE:
            if strange := set(same[name]) - {here[name]}:
                raise ValueError(
                    f"{name}: {here[name]}, but {path.parent.name} was made with {strange}; arms "
                    "of a task and seed are made on one kind of machine"
                )


def make_all(folder: Path, *, parts: Sequence[str] = (), seeds: Sequence[int] = ()) -> None:
    """Make every block that is not there and that no other process is making."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    texts = uses.read_texts()
    if not (folder / UNTRAINED).exists():
        _with_lock(folder, UNTRAINED, lambda target: untrained_block(target, texts))
    for part, seed, name in blocks():
        if (parts and part.name not in parts) or (seeds and seed not in seeds):
            continue

        def made(target: Path, part: Part = part, seed: int = seed) -> None:
            check_machine(folder, part, seed)
            read = texts if part.name == "products" else None
            make_block(configs(part, seed), target, texts=read)

        _with_lock(folder, name, made)


def _with_lock(folder: Path, name: str, make) -> None:
    """Call `make` with the block's folder, unless it is there or another process makes it."""
    try:
        with FileLock(folder / f".{name}.lock", timeout=0):
            if not (folder / name).exists():
                since = time.perf_counter()
                make(folder / name)
                print(f"{name}: {time.perf_counter() - since:.0f} s", flush=True)
    except Timeout:
        print(f"{name}: another process makes it", flush=True)


def collect(folder: Path, target: Path = HERE) -> dict[str, int]:
    """Merge the blocks of a folder into tables in `target`; how many blocks and runs there are.

    Raises
    ------
    ValueError
        Blocks of several commits, or of several kinds of device for one task.
    """
    names = [UNTRAINED, *dict.fromkeys(name for _, _, name in blocks())]
    there = [name for name in names if (folder / name).is_dir()]
    tables = {}
    for table in TABLES:
        paths = [folder / name / f"{table}.parquet" for name in there]
        parts = [pd.read_parquet(path) for path in paths if path.is_file()]
        if not parts:
            raise FileNotFoundError(f"{folder}: no block has {table}.parquet; make some first")
        tables[table] = pd.concat(parts, ignore_index=True)
    runs = tables["runs"]
    if runs.commit.nunique() > 1:
        raise ValueError(f"commit: runs are of {sorted(runs.commit.unique())}, expected one")
    for task, of_task in runs.groupby("task"):
        if of_task.device.nunique() > 1:
            raise ValueError(f"device: {task} was run on {sorted(of_task.device.unique())}")
    for name, table in tables.items():
        with written(target / f"{name}.parquet") as part:
            _compact(table).to_parquet(part, index=False, compression="zstd")
    return {"blocks": len(there), "of": len(names), "runs": len(runs)}


def _compact(table: pd.DataFrame) -> pd.DataFrame:
    """Names as categories, single precision: what is committed is to be small."""
    kinds = {"str": "category", "object": "category", "float64": "float32"}
    return table.astype({c: kinds[str(t)] for c, t in table.dtypes.items() if str(t) in kinds})


def smoke(folder: Path) -> None:
    """Two short runs of seed 9000 with all that is read off: seconds per step and for the uses."""
    torch.set_num_threads(1)
    runs = [replace(c, seed=9000, train_rows=640, epochs=2) for c in configs(PARTS[0], 400)[:2]]
    make_block(runs, folder / "smoke", texts=uses.read_texts())
    print(pd.read_parquet(folder / "smoke" / "runs.parquet")[["arm", "seconds", "seconds_uses"]])


def main(arguments: Sequence[str] | None = None) -> None:
    """As the module says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", help=", ".join(dict.fromkeys(p.name for p in PARTS)))
    parser.add_argument("--seeds", nargs="*", type=int, default=())
    parser.add_argument("--collect", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="seed 9000, to time it")
    given = parser.parse_args(arguments)
    if strange := set(given.parts) - {part.name for part in PARTS}:
        parser.error(f"parts: no {sorted(strange)}")
    if given.smoke:
        smoke(given.folder)
    elif given.collect:
        print(collect(given.folder))
    else:
        make_all(given.folder, parts=given.parts, seeds=given.seeds)


if __name__ == "__main__":
    main()
