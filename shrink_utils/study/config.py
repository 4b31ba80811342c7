"""One fine-tuning run, described completely: equal configurations give equal results.

To add an arm, add a line to `ARMS`: its name and the options of its regularizer. That is a
`BarcodeRegularizer`, or the penalty that ``"penalty"`` names, one of `penalties.PENALTIES`. An
arm of options that exist leaves finished runs valid; a new penalty is new code, and they are run
again.
"""

import warnings
from dataclasses import asdict, dataclass
from functools import cache

from shrink_utils.names import POOLINGS, known_name, require
from shrink_utils.text.tasks import task_spec

PRECISIONS = ("float32", "bfloat16")
Options = dict[str, str | int | float]

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


# What tells the runs of a study apart: the first columns of every table of runs.
TASK_OF_MODEL = ["model", "task"]
RUN = [*TASK_OF_MODEL, "arm", "weight", "seed"]
KEYS = [*RUN, "epochs"]


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
