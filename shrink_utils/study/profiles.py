"""What is run: one fine-tuning run, described completely, and profiles, how large a study is.

Equal configurations give equal results. A profile is a TOML file in the folder beside this module.
"""

import gc
import hashlib
import json
import os
import tomllib
import warnings
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic import dataclasses as validated

from shrink_utils.names import POOLINGS, known_name, require, unknown_name
from shrink_utils.sources import _same_checkout, results_dir
from shrink_utils.text.tasks import task_spec

PRECISIONS = ("float32", "bfloat16")
Options = dict[str, str | int | float]

# To add an arm, add a line: its name and the options of its regularizer. That is a
# `BarcodeRegularizer`, or the penalty that "penalty" names, one of `penalties.PENALTIES`. An arm of
# options that exist leaves finished runs valid; a new penalty is new code, and they are run again.
ARMS: dict[str, Options | None] = {
    "none": None,
    "prominent": {"selection": "prominent", "rule": "ratio"},  # the paper's prose
    "published": {"selection": "prominent", "rule": "published"},  # the paper's code
    "all": {"selection": "all"},
    # Beyond the paper: is topology what helps?
    "random": {"selection": "random", "rule": "ratio"},  # as many bars as prominent keeps
    "cosine": {"penalty": "cosine"},
    "isoscore": {"penalty": "isoscore"},
    "spectral": {"penalty": "spectral"},
    "sigreg": {"penalty": "sigreg"},
    # One ingredient of `prominent` replaced: the groups of rows, or the choice of bars.
    "whole_batch": {"penalty": "regrouped", "groups": "batch"},
    "shuffled_classes": {"penalty": "regrouped", "groups": "shuffled"},
    "longest": {"penalty": "ranked", "keep": "longest"},
    "shortest": {"penalty": "ranked", "keep": "shortest"},
}


def arm_options(arm: str) -> Options | None:
    """Options of an arm's regularizer; None for the arm without one.

    Raises
    ------
    ValueError
        No arm has that name.

    Examples
    --------
    >>> arm_options("sigreg")
    {'penalty': 'sigreg'}
    """
    return ARMS[known_name("arm", "arm", arm, ARMS)]


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """(model, task, arm, seed, hyper-parameters) of a run; raises ValueError for what cannot be.

    Examples
    --------
    >>> config = RunConfig(
    ...     model="tiny-random", task="sentiment_movies", arm="all", seed=0, epochs=1, max_length=8,
    ...     train_rows=16, eval_rows=8, batch_size=8, learning_rate=1e-3, weight_decay=0.0,
    ... )
    >>> config.label
    'tiny-random · sentiment_movies · all · 1 epochs · seed 0'
    """

    model: str  # as `load_classifier` knows it; `task` and `arm` likewise in `load_task` and `ARMS`
    task: str
    arm: str
    seed: int  # classifier head, order and choice of the training rows, dropout
    train_rows: int | None  # at most so many; None takes all
    eval_rows: int | None
    epochs: int
    learning_rate: float  # of AdamW
    weight_decay: float
    max_length: int  # tokens kept of a text
    batch_size: int = 64  # rows per step: the regularizer's point clouds come from one batch
    precision: str = "float32"  # of the passes that train; the others are always float32
    # Fraction of the steps, linear; then the rate is constant. STL's text names the warm-up alone;
    # its published notebook uses a cosine.
    warmup: float = 0.1
    pooling: str = "cls"  # what the regularizer sees; also "mean" and "first_last"
    weight: float = 1.0  # factor of the regularizer in the loss
    threads: int = 1  # of torch; they change the last digits of sums

    def __post_init__(self) -> None:
        task_spec(self.task)  # raises on an unknown name
        arm_options(self.arm)
        known_name("pooling", "pooling", self.pooling, POOLINGS)
        known_name("precision", "precision", self.precision, PRECISIONS)
        require(self, "epochs batch_size max_length threads", lambda v: v >= 1, "at least 1")
        require(self, "train_rows eval_rows", lambda v: v is None or v >= 2, "at least 2")
        require(self, "weight_decay weight seed", lambda v: v >= 0, "0 or more")
        require(self, "learning_rate", lambda v: 0 < v < 1, "between 0 and 1")
        require(self, "warmup", lambda v: 0 <= v < 1, "at least 0 and below 1")

    @property
    def label(self) -> str:
        """How a person names the run."""
        weight = "" if self.weight == 1 or self.arm == "none" else f" × {self.weight:g}"
        arm = f"{self.arm}{weight}"
        return f"{self.model} · {self.task} · {arm} · {self.epochs} epochs · seed {self.seed}"

    def as_dict(self) -> dict[str, object]:
        """Plain values, in the order of the fields."""
        return asdict(self)


def _native_precision() -> str:
    """``"bfloat16"`` if the device that trains multiplies it natively, else ``"float32"``.

    That is a GPU with bfloat16, or a processor with AVX512-BF16 or AMX, as torch finds them.
    """
    import torch  # a configuration is read without it

    if torch.cuda.is_available():
        native = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        found = torch.cpu.get_capabilities()
        native = found.get("avx512_bf16", False) or found.get("amx_bf16", False)
    return "bfloat16" if native else "float32"


@cache  # one note per process
def used_precision(precision: str) -> str:
    """The precision in which this machine trains when ``"auto"`` or a precision is asked for.

    Where bfloat16 is asked for and the device would only emulate it, slowly, that is float32, with
    a warning.

    Examples
    --------
    >>> used_precision("float32")
    'float32'
    """
    if precision == "float32":
        return precision
    native = _native_precision()
    if precision != "auto" and native != precision:
        warnings.warn(f"precision: no {precision} on this device, taking {native}", stacklevel=2)
    return native


# --- profiles -------------------------------------------------------------------------------------

FOLDER = Path(__file__).with_suffix("")
# What the environment says takes the place of what the file says.
GIVEN = {"precision": "SHRINK_PRECISION", "models_kept": "SHRINK_MODELS_KEPT"}
SEED_STEP = 1000  # studies of different base seeds share no seed
LARGEST_SEED = 2**32 // SEED_STEP - 1  # NumPy's generators and torch's take 32 bits
# Without effect on any number of the study; the precision that was used is named beside the hash.
WITHOUT_EFFECT = ("description", "workers", "precision", "models_kept")

Integers = tuple[int, ...]
Names = tuple[str, ...]
# Strict: 3.0 is no integer and true no number; keys that no field has are refused.
STRICT = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
configuration = validated.dataclass(frozen=True, kw_only=True, config=STRICT)


@configuration
class _GridEntry:
    """One task of the ablation: its arms, its size and its hyper-parameters, as in `RunConfig`."""

    task: str
    arms: Names
    max_length: int
    learning_rate: float
    weight_decay: float
    train_rows: int | None = None  # None takes every row
    eval_rows: int | None = None
    seeds: Integers = ()  # out of the profile's; none named takes all


@configuration
class _SweepEntry:
    """One arm of the weight sweep, on a task of the grid and with its hyper-parameters."""

    task: str
    arm: str
    weights: tuple[float, ...]


@configuration
class _LongEntry:
    """Runs of many epochs on a task of the grid: lower level, or only a later rise?"""

    task: str
    arms: Names
    epochs: int
    seeds: Integers  # out of the profile's
    train_rows: int | None = None  # None takes every row
    weight: float = 1.0


@configuration
class _Pretraining:
    """The trunk that every objective trains here, and what it is trained on."""

    sentences: int | None = None  # at most so many to train on; None takes all
    vocabulary: int  # word-pieces of the tokenizer, trained on the sentences
    width: int  # of the trunk; its feed-forward layers are four times as wide
    depth: int
    heads: int
    dropout: float  # none where a few hundred steps see each sentence once
    max_length: int  # tokens; longer sentences are cut
    steps: int
    batch_size: int
    learning_rate: float  # of Adam
    warmup: float  # share of the steps
    seeds: Integers  # models that differ only in initial weights (and dropout, if any)


@configuration
class _Stitching:
    """What stitches are judged on and fitted to."""

    sentences: int  # held out, to judge a stitch
    fitted: int  # training sentences that maps are fitted to
    vocabulary: int | None = None  # of notebook 09's language models; None: as in `_Pretraining`
    model_steps: int | None = None  # their training; None: as in `_Pretraining`


@configuration
class _Heuristics:
    """Models of pairs of sentences that follow the overlap heuristic, and that do not."""

    # Of either group, trained here on the trunk of `_Pretraining`; an interval leaves one out.
    models: Annotated[int, Field(ge=3)]
    train_rows: int  # pairs that a model learns from
    test_rows: int  # pairs of each kind that judge it
    start_steps: int  # of the start that all models share; batches are of 64 pairs
    steps: int  # of each model after the start
    # Of the start and the models. The start waits on a plateau until it finds that words are
    # shared: at 2e-3 the thirteenth digit decides how it leaves, at 5e-4 processors leave alike.
    learning_rate = 5e-4
    counter_examples = 0.5  # share of the pairs not entailed that refutes the heuristic


@configuration
class _Dynamics:
    """What loss change allocation follows: a short run of the trunk of `_Pretraining`.

    An allocation costs several times what a step does; its rules are the more exact the shorter
    the steps are.
    """

    sentences: int  # held out: the fixed set whose loss is allocated
    steps: int
    batch_size: int
    learning_rate: float
    max_length: int
    vocabulary: int


@configuration
class Profile:
    """Everything that sizes a study; fields without a comment are as in `RunConfig`."""

    name: str
    description: str
    models: Annotated[Names, Field(min_length=1)]  # the diagnostic notebooks look at the first
    seeds: Annotated[Integers, Field(min_length=1)]  # of each (model, task, arm)
    grid: Annotated[tuple[_GridEntry, ...], Field(min_length=1)]
    epochs: int
    batch_size: int
    threads: int
    weight = 1.0  # of the regularizer, outside of sweep and long runs: `RunConfig`'s own
    diagnostic_sentences: Annotated[int, Field(ge=2)]  # that the geometry notebooks measure
    pretraining: _Pretraining
    stitching: _Stitching
    heuristics: _Heuristics
    dynamics: _Dynamics
    sweep: tuple[_SweepEntry, ...] = ()  # arms at several weights: task against anisotropy
    long: tuple[_LongEntry, ...] = ()
    # Of fine-tuning; "auto" takes bfloat16 where the device has it. See `used_precision`.
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    # Which fine-tuned models stay on disk when the study is finished (90 MB each of MiniLM).
    models_kept: Literal["none", "first seed", "all"] = "first seed"
    workers: Annotated[int, Field(ge=1)] = 1  # processes that share the runs, `threads` each
    corpus_sentences: Annotated[int, Field(ge=2)] | None = None  # notebook 02; None reads all
    partner: str = ""  # a second encoder for notebook 08b; empty for none
    diagnosed: Names = ()  # models whose contextuality is claimed too, but which nobody fine-tunes
    base_seed: Annotated[int, Field(ge=0)] = 0  # 1,000 times this is added to every seed

    def __post_init__(self) -> None:
        seeds = list(self.seeds)
        if len({*seeds}) < len(seeds) or max(seeds) >= SEED_STEP:
            raise ValueError(f"seeds: each may stand once and be below {SEED_STEP}, found {seeds}")
        named = {seed for entry in (*self.grid, *self.long) for seed in entry.seeds}
        if strange := named - {*seeds}:
            raise ValueError(f"seeds: {sorted(strange)} of an entry are none of the profile's")
        self.all_runs(precision="float32")  # a RunConfig refuses what cannot be run

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

    @property
    def arms(self) -> dict[str, object]:
        """The options of every arm that the study fine-tunes with, by name."""
        named = {run.arm for run in self.all_runs(precision="float32")}
        return {arm: arm_options(arm) for arm in sorted(named)}

    @property
    def used_precision(self) -> str:
        """What `precision` means on this machine: "float32" or "bfloat16"."""
        return used_precision(self.precision)

    def runs(self, *, precision: str | None = None) -> list[RunConfig]:
        """The ablation grid: seeds outermost, so that early results already compare the arms.

        Runs of another machine may have another `precision` than `used_precision`.
        """
        parts = [(entry, entry.seeds, {"arm": arm}) for entry in self.grid for arm in entry.arms]
        return self._runs(parts, precision)

    def sweep_runs(self, *, precision: str | None = None) -> list[RunConfig]:
        """The weight sweep, as `runs`; a run that the grid holds too is the same run."""
        parts = []
        for swept in self.sweep:
            entry = self._entry("sweep", swept.task)
            parts += [(entry, (), {"arm": swept.arm, "weight": w}) for w in swept.weights]
        return self._runs(parts, precision)

    def long_runs(self, *, precision: str | None = None) -> list[RunConfig]:
        """The long runs, as `runs`."""
        names, parts = ("epochs", "train_rows", "weight"), []
        for long in self.long:
            entry, own = self._entry("long", long.task), {n: getattr(long, n) for n in names}
            parts += [(entry, long.seeds, own | {"arm": arm}) for arm in long.arms]
        return self._runs(parts, precision)

    def all_runs(self, *, precision: str | None = None) -> list[RunConfig]:
        """Grid, sweep and long runs, each once, seeds outermost."""
        parts = (self.runs, self.sweep_runs, self.long_runs)
        every = dict.fromkeys(run for part in parts for run in part(precision=precision))
        return sorted(every, key=lambda run: self.seeds.index(run.seed % SEED_STEP))

    def _entry(self, part: str, task: str) -> _GridEntry:
        entries = {entry.task: entry for entry in self.grid}
        return entries[known_name(part, "task of the grid", task, entries)]

    def _runs(
        self, parts: list[tuple[_GridEntry, Integers, dict]], precision: str | None
    ) -> list[RunConfig]:
        """Runs of entries with these seeds (none: all) and values of their own."""
        shared = {name: getattr(self, name) for name in ("epochs", "batch_size", "threads")}
        shared["precision"] = precision or self.used_precision
        runs = []
        for seed, model in product(self.seeds, self.models):
            keys = {"seed": seed + SEED_STEP * self.base_seed, "model": model}
            for entry, seeds, own in parts:
                if not seeds or seed in seeds:
                    of_task = asdict(entry)
                    del of_task["arms"], of_task["seeds"]
                    runs.append(RunConfig(**of_task | shared | keys | own))
        return runs


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
        Base seed: 0 is the committed study; any other one, up to 4,294,966, shifts every seed.

    Notes
    -----
    ``SHRINK_PRECISION`` and ``SHRINK_MODELS_KEPT`` take the place of the file's `precision` and
    `models_kept`.

    Raises
    ------
    ValueError
        If no profile has that name, a key is unknown or missing, or a value is impossible.
    """
    path = Path(name) if str(name).endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        raise unknown_name("profile", "profile", str(name), profile_names())
    if type(seed) is not int or not 0 <= seed <= LARGEST_SEED:  # nor is True a seed
        raise ValueError(f"seed: {seed!r}, expected a whole number from 0 to {LARGEST_SEED}")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
        values |= {key: os.environ[v] for key, v in GIVEN.items() if os.environ.get(v)}
        values |= {"name": path.stem, "base_seed": seed}
        text = json.dumps(values, default=lambda date: {"date or time": str(date)})  # not a text
        return TypeAdapter(Profile).validate_json(text)  # JSON: a list stands for a tuple
    except ValidationError as error:
        faults = [": ".join(map(str, (*fault["loc"], fault["msg"]))) for fault in error.errors()]
        raise ValueError(f"profile {path.name}: {'; '.join(faults)}") from error
    except ValueError as error:  # of TOML
        raise ValueError(f"profile {path.name}: {error}") from error


def setup_notebook(profile: str, *, seed: int = 0) -> Profile:
    """Load a profile and set this process up as it says.

    Threads are set because they change the last digits of sums; the seed is torch's global one,
    for what a notebook draws itself (runs and samplers take their own); `seed` is the study's.
    Raises RuntimeError if the package is not that of the checkout that holds the notebook.
    """
    import torch  # a profile is read without all these
    from threadpoolctl import threadpool_limits

    from shrink_utils.study.course import check_in_sentences
    from shrink_utils.study.figures import use_house_style

    _same_checkout(Path.cwd())
    loaded = load_profile(profile, seed=seed)
    torch.set_num_threads(loaded.threads)
    threadpool_limits(loaded.threads, user_api="blas")  # NumPy's, which torch does not know
    torch.manual_seed(seed)
    use_house_style()
    check_in_sentences()
    # What is imported by now stays. The Trainer collects garbage after every training, and would
    # look through all of it, for .3 s.
    gc.freeze()
    return loaded
