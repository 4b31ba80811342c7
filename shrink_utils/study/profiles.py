"""Profiles: how large the study is run. One TOML file each in the folder beside this module."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path

from shrink_utils.names import unknown_name
from shrink_utils.paths import results_dir
from shrink_utils.study.grid_entries import GridEntry, SweepEntry
from shrink_utils.study.sizes import SIZES, Dynamics, Family, Heuristics, Pretraining, Stitching
from shrink_utils.study.typed_values import build
from shrink_utils.training import RunConfig

__all__ = ["Profile", "load_profile", "profile_names"]

FOLDER = Path(__file__).with_suffix("")
SEED_STEP = 1000  # studies of different base seeds share no seed
WITHOUT_EFFECT = ("description", "workers")  # on any number of the study


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Everything that sizes a study.

    Attributes
    ----------
    name, description : str
    models : tuple of str
        Encoders; the first is the one that the diagnostic notebooks look at.
    seeds : tuple of int
        Runs of each (model, task, arm); intervals are over them.
    grid : tuple of GridEntry
        Tasks, each with its arms.
    sweep : tuple of SweepEntry
        Arms that are run at several weights, for the trade-off between task and anisotropy.
    epochs, batch_size, accumulation, precision, warmup, schedule, pooling, weight, threads
        As in `RunConfig`.
    workers : int
        Processes that share the runs, each with `threads` threads; also notebooks run at once.
    diagnostic_sentences : int
        Sentences that the geometry notebooks measure.
    corpus_sentences : int or None
        Sentences of the one pass over the corpus in notebook 02; None reads them all.
    partner : str
        A second encoder that notebook 03 compares the first one with; empty for none.
    pretraining, stitching, heuristics, family, dynamics
        What notebooks 09 and 10 train and measure: see `shrink_utils.study.sizes`.
    base_seed : int
        1,000 times this is added to every seed: ``SEED=`` of make. 0 is the committed study.
    """

    name: str
    description: str
    models: tuple[str, ...]
    seeds: tuple[int, ...]
    grid: tuple[GridEntry, ...]
    epochs: int
    batch_size: int
    warmup: float
    schedule: str
    pooling: str
    weight: float
    threads: int
    diagnostic_sentences: int
    pretraining: Pretraining
    stitching: Stitching
    heuristics: Heuristics
    family: Family
    dynamics: Dynamics
    sweep: tuple[SweepEntry, ...] = ()
    accumulation: int = 1
    precision: str = "float32"
    workers: int = 1
    corpus_sentences: int | None = None
    partner: str = ""
    base_seed: int = 0

    def __post_init__(self) -> None:
        for name in ("models", "seeds", "grid"):
            if not getattr(self, name):
                raise ValueError(f"{name}: a profile needs at least one, found none")
        if len(set(self.seeds)) < len(self.seeds) or max(self.seeds) >= SEED_STEP:
            raise ValueError(
                f"seeds: each may stand once and be below {SEED_STEP}, found {list(self.seeds)}"
            )
        for name in ("diagnostic_sentences", "corpus_sentences"):
            count = getattr(self, name)
            if count is not None and count < 2:
                raise ValueError(f"{name}: must be at least 2, found {count}")
        if self.workers < 1:
            raise ValueError(f"workers: must be at least 1, found {self.workers}")
        self.runs(), self.sweep_runs()  # a RunConfig refuses what cannot be run

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the grid's tasks, in order."""
        return tuple(entry.task for entry in self.grid)

    @property
    def folder(self) -> Path:
        """Where the results of this profile (and base seed) live."""
        suffix = f"-seed{self.base_seed}" if self.base_seed else ""
        return results_dir() / f"{self.name}{suffix}"

    @property
    def hash(self) -> str:
        """Sixteen hex digits that change when a value does that has an effect on numbers."""
        values = {key: v for key, v in asdict(self).items() if key not in WITHOUT_EFFECT}
        text = json.dumps(values, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def runs(self) -> list[RunConfig]:
        """The ablation grid: seeds outermost, so that early results already compare the arms."""
        return [
            self._run(model, entry, arm, seed, self.weight)
            for seed in self.seeds
            for model in self.models
            for entry in self.grid
            for arm in entry.arms
        ]

    def sweep_runs(self) -> list[RunConfig]:
        """The weight sweep; a run that the grid holds too is the same run."""
        entries = {entry.task: entry for entry in self.grid}
        if missing := [swept.task for swept in self.sweep if swept.task not in entries]:
            raise ValueError(f"sweep: its task {missing[0]!r} is none of the grid's")
        return [
            self._run(model, entries[swept.task], swept.arm, seed, weight)
            for seed in self.seeds
            for model in self.models
            for swept in self.sweep
            for weight in swept.weights
        ]

    def _run(self, model: str, entry: GridEntry, arm: str, seed: int, weight: float) -> RunConfig:
        return RunConfig(
            model=model,
            task=entry.task,
            arm=arm,
            seed=SEED_STEP * self.base_seed + seed,
            train_rows=entry.train_rows,
            eval_rows=entry.eval_rows,
            epochs=self.epochs,
            learning_rate=entry.learning_rate,
            weight_decay=entry.weight_decay,
            max_length=entry.max_length,
            batch_size=self.batch_size,
            warmup=self.warmup,
            schedule=self.schedule,
            pooling=self.pooling,
            weight=float(weight),
            accumulation=self.accumulation,
            precision=self.precision,
            threads=self.threads,
        )


def profile_names() -> list[str]:
    """Names of the profiles that ship with the package."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load_profile(name: str | Path, *, seed: int = 0) -> Profile:
    """Read a profile.

    Parameters
    ----------
    name : str or Path
        A shipped profile's name, or the path of a TOML file of one's own.
    seed : int
        Base seed: 0 is the committed study, any other one a study whose seeds are all new.

    Raises
    ------
    ValueError
        If no profile has that name, a key is unknown or missing, or a value is impossible.
    """
    path = Path(name) if str(name).endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        raise unknown_name("profile", "profile", str(name), profile_names())
    if not (isinstance(seed, int) and seed >= 0):
        raise ValueError(f"seed: must be 0 or a positive integer, found {seed!r}")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        grid = tuple(build(GridEntry, entry) for entry in values.pop("grid", []))
        sweep = tuple(build(SweepEntry, entry) for entry in values.pop("sweep", []))
        for key, kind in SIZES.items():
            if isinstance(values.get(key), dict):
                values[key] = build(kind, values[key])
        named = {"name": path.stem, "base_seed": seed, "grid": grid, "sweep": sweep}
        return build(Profile, {**values, **named})
    except (TypeError, ValueError) as error:
        raise ValueError(f"profile {path.name}: {error}") from error
