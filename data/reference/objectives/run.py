"""The runs of docs/preregistration_objectives.md: a block at a time, whole or not at all.

    python data/reference/objectives/run.py FOLDER [PART ...]
    python data/reference/objectives/run.py FOLDER --collect

The first line makes the blocks that FOLDER lacks, in the order of the page; start it as often as
there are cores, and again after a stop. `--collect` merges the blocks into the tables beside this
file, and prints how many there are, but no outcome.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from pathlib import Path

import pandas as pd
import torch
from filelock import FileLock, Timeout
from safetensors.torch import load_model, save_model

sys.path.insert(0, str(Path(__file__).parent))
import compare
from train import Training, new_model, tables_of, train

from shrink_utils.study.results import atomic_write as written
from shrink_utils.study.results import provenance
from shrink_utils.training import RunConfig

HERE = Path(__file__).parent
WEIGHTS = "model.safetensors"  # stays in the folder of blocks, for those that compare
SEEDS = (500, 501, 502)
SHIFT = 50  # of the seed of the family's member that differs in nothing else
OBJECTIVES = ("mlm", "mt", "clm")
WINDOWS = ((1, 500), (1501, 1700), (3001, 3200), (4801, 5000))
Tables = Mapping[str, pd.DataFrame]


@dataclass(frozen=True)
class Block:
    """One training, or one comparison of the blocks it needs."""

    part: str
    name: str
    make: Callable[[Mapping[str, torch.nn.Module]], tuple[Tables, torch.nn.Module | None]]
    needs: tuple[str, ...] = ()
    keys: Mapping[str, object] | None = None  # columns of its tables


def trained(training: Training, models: Mapping) -> tuple[Tables, torch.nn.Module]:
    """Make one model."""
    result = train(training)
    of = {name: value for name, value in asdict(training).items() if name != "windows"}
    return {"trainings": pd.DataFrame([of]), "losses": result.losses} | tables_of(
        result.followed
    ), result.model


def compared(measure: Callable, trainings: Mapping[str, Training], models: Mapping):
    """Compare the models of a block's needs, which are named as in `trainings`."""
    named = dict(zip(trainings, models.values(), strict=True))
    return measure(named, trainings), None


def finetuned(config: RunConfig, models: Mapping):
    """Fine-tune a pretrained encoder and read it off."""
    return compare.after_finetuning(config), None


def training_block(part: str, name: str, training: Training, **keys: object) -> Block:
    """The block of one model."""
    keys = {"seed": training.data_seed, **keys}
    return Block(part, name, partial(trained, training), keys=keys)


def objectives(seed: int) -> dict[str, Training]:
    """The three models of one seed, which begin with other weights: none shares its start."""
    options = {"source": "testament", "data_seed": seed, "steps": 5000}
    options |= {"dropout": 0.1, "windows": WINDOWS}
    return {
        name: Training(objective=name, seed=seed + 100 * i, **options)
        for i, name in enumerate(OBJECTIVES)
    }


# Depth and width grow together; the dimension of a head does not.
SIZES = {"s1": (32, 2, 1), "s2": (64, 3, 2), "s3": (96, 4, 3), "s4": (128, 5, 4), "s5": (160, 6, 5)}
TWIN = "s4"  # what the odd members are, but for one thing


def relatives(seed: int) -> dict[str, Training]:
    """Five sizes, one with small heads, and one with another seed."""
    options = {"objective": "clm", "source": "bible", "data_seed": seed, "steps": 2000}
    options |= {"vocabulary": 2000, "rate": 1e-3}
    found = {
        name: Training(seed=seed, width=w, depth=d, heads=h, **options)
        for name, (w, d, h) in SIZES.items()
    }
    found["narrow"] = replace(found[TWIN], heads=16)  # 8 wide, not 32
    found["shifted"] = replace(found[TWIN], seed=seed + SHIFT)
    return found


def stitched(depth: int) -> dict[str, Training]:
    """Models of two activations, three seeds."""
    options = {"objective": "clm", "source": "testament", "steps": 1000, "depth": depth}
    options |= {"vocabulary": 2000}
    return {
        f"{activation}-{seed}": Training(
            activation=activation,
            seed=seed + 100 * (activation == "solu"),
            data_seed=seed,
            **options,
        )
        for seed in SEEDS
        for activation in ("gelu", "solu")
    }


STABLE = ("testament", "half", "gramps", "german", "finnish")


def stable(source: str, seed: int) -> Training:
    """A causal LM whose first steps are followed."""
    options = {"source": source, "seed": seed, "data_seed": seed, "steps": 1500}
    return Training(objective="clm", vocabulary=2000, windows=((1, 500),), **options)


def finetunings() -> list[RunConfig]:
    """MiniLM on two tasks, without reward and with selected bars."""
    options = {"model": "minilm", "train_rows": None, "eval_rows": 600, "epochs": 3}
    options |= {"learning_rate": 8e-5, "weight_decay": 8e-6, "max_length": 16}
    return [
        RunConfig(task=f"sentiment_{task}", arm=arm, seed=seed, **options)
        for seed in SEEDS
        for task in ("products", "movies")
        for arm in ("none", "prominent")
    ]


def blocks() -> list[Block]:
    """All blocks, in the order of the page."""
    found = []
    for seed in SEEDS:
        trainings = objectives(seed)
        names = {name: f"{name}-{seed}" for name in trainings}
        found += [training_block("objectives", names[n], trainings[n], objective=n) for n in names]
        pair = {name: trainings[name] for name in ("mlm", "mt")}
        made, needs = partial(compared, compare.spaces, pair), tuple(names[n] for n in pair)
        found.append(Block("spaces", f"spaces-{seed}", made, needs, {"seed": seed}))
    for seed in SEEDS:
        of = relatives(seed)
        names = {name: f"family-{name}-{seed}" for name in of}
        found += [training_block("family", names[n], of[n], member=n) for n in of]
        made = partial(compared, compare.family, of)
        found.append(Block("family", f"family-{seed}", made, (*names.values(),), {"seed": seed}))
    for depth in (3, 4):
        of = stitched(depth)
        names = {name: f"stitch-{depth}-{name}" for name in of}
        found += [training_block("stitching", names[n], of[n], member=n) for n in of]
        made = partial(compared, compare.stitches, of)
        keys = {"depth": depth}
        found.append(Block("stitching", f"stitch-{depth}", made, (*names.values(),), keys))
    for config in finetunings():
        keys = {name: getattr(config, name) for name in ("task", "arm", "seed")}
        name = "rp-" + "-".join(map(str, keys.values()))
        found.append(Block("finetuning", name, partial(finetuned, config), (), keys))
    for seed in SEEDS:
        for source in STABLE:
            name = f"stable-{source}-{seed}"
            found.append(training_block("stability", name, stable(source, seed), source=source))
    return found


@cache
def processor() -> str:
    """The processor's name."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def stamp() -> dict[str, object]:
    """Where and with what a block is made."""
    found = provenance()
    return {
        "time": found["time"],
        "commit": found["commit"],
        "processor": processor(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
    }


def check_checkout(folder: Path) -> None:
    """Refuse changed code, and another commit than that of the blocks that are there."""
    here = stamp()["commit"]
    if here.endswith("-dirty"):
        raise ValueError(f"commit: {here}, expected a checkout without changes")
    for path in sorted(folder.glob("*/runs.parquet")):
        if strange := set(pd.read_parquet(path).commit) - {here}:
            raise ValueError(f"commit: {here}, but {path.parent.name} is of {strange}")


def make_block(block: Block, folder: Path) -> None:
    """Make a block's tables, and its model, in a folder that is there whole or not at all."""
    since, known = time.perf_counter(), {b.name: b for b in blocks()}
    models = {name: read_model(known[name], folder) for name in block.needs}
    tables, model = block.make(models)
    part = folder / f".{block.name}.part"
    shutil.rmtree(part, ignore_errors=True)  # of a process that was stopped
    part.mkdir(parents=True)
    keys = {"part": block.part, "block": block.name, **(block.keys or {})}
    seconds = round(time.perf_counter() - since, 1)
    own = pd.DataFrame([{"part": block.part, "block": block.name} | stamp() | {"seconds": seconds}])
    for name, table in (("runs", own), *tables.items()):
        more = keys if name != "runs" else {}
        fresh = {key: value for key, value in more.items() if key not in table}
        table.assign(**fresh).to_parquet(part / f"{name}.parquet", index=False, compression="zstd")
    if model is not None:
        save_model(model, str(part / WEIGHTS))
    part.rename(folder / block.name)


def read_model(block: Block, folder: Path) -> torch.nn.Module:
    """The model of a training's block."""
    training = block.make.args[0]
    model = new_model(training)
    load_model(model, folder / block.name / WEIGHTS)
    return model.eval()


def make_all(folder: Path, *, parts: Sequence[str] = (), planned: Sequence[Block] = ()) -> None:
    """Make every block that is not there and that no other process is making.

    A block whose needs another process is making is left until they are there; after each block
    the list is gone through again from its beginning. One that ends with an error is left out by
    this process, and the error is raised when all others are made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    check_checkout(folder)
    torch.set_num_threads(1)
    wanted = [b for b in planned or blocks() if not parts or b.part in parts]
    errors: dict[str, Exception] = {}

    def made(block: Block) -> bool:
        try:
            return block.name not in errors and _with_lock(folder, block)
        except Exception as error:
            traceback.print_exc()
            errors[block.name] = error
            return False

    while any(made(block) for block in wanted):
        pass
    if errors:
        raise RuntimeError(f"not made: {', '.join(errors)}") from next(iter(errors.values()))


def _with_lock(folder: Path, block: Block) -> bool:
    """Make a block, unless it is there, lacks a need, or another process makes it; was it made?"""
    if (folder / block.name).exists() or not all((folder / n).exists() for n in block.needs):
        return False
    try:
        with FileLock(folder / f".{block.name}.lock", timeout=0):
            if (folder / block.name).exists():
                return False
            since = time.perf_counter()
            make_block(block, folder)
            print(f"{block.name}: {time.perf_counter() - since:.0f} s", flush=True)
            return True
    except Timeout:
        return False


def collect(folder: Path, target: Path = HERE) -> dict[str, int]:
    """Merge the blocks of a folder into tables in `target`; how many there are, of how many.

    Raises
    ------
    FileNotFoundError
        No block is there.
    ValueError
        Blocks of several commits.
    """
    names = [block.name for block in blocks()]
    there = [name for name in names if (folder / name / "runs.parquet").is_file()]
    if not there:
        raise FileNotFoundError(f"{folder}: no finished block; make some first")
    found: dict[str, list[pd.DataFrame]] = {}
    for name in there:
        for path in sorted((folder / name).glob("*.parquet")):
            found.setdefault(path.stem, []).append(pd.read_parquet(path))
    tables = {name: pd.concat(parts, ignore_index=True) for name, parts in found.items()}
    if tables["runs"].commit.nunique() > 1:
        raise ValueError(f"commit: blocks are of {sorted(tables['blocks'].commit.unique())}")
    for name, table in tables.items():
        with written(target / f"{name}.parquet") as part:
            _compact(table).to_parquet(part, index=False, compression="zstd")
    return {"blocks": len(there), "of": len(names)}


def _compact(table: pd.DataFrame) -> pd.DataFrame:
    """Names as categories, single precision: what is committed is to be small."""
    kinds = {"str": "category", "object": "category", "float64": "float32"}
    return table.astype({c: kinds[str(t)] for c, t in table.dtypes.items() if str(t) in kinds})


def main(arguments: Sequence[str] | None = None) -> None:
    """As the module says."""
    known = list(dict.fromkeys(block.part for block in blocks()))
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("parts", nargs="*", help=", ".join(known))
    parser.add_argument("--collect", action="store_true")
    given = parser.parse_args(arguments)
    if strange := set(given.parts) - set(known):
        parser.error(f"parts: no {sorted(strange)}")
    if given.collect:
        print(collect(given.folder))
    else:
        make_all(given.folder, parts=given.parts)


if __name__ == "__main__":
    main()
