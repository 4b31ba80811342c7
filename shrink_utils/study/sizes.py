"""Sizes of what notebooks 09 and 10 train and measure: one table each in a profile's TOML file."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SIZES", "Dynamics", "Family", "Heuristics", "Pretraining", "Stitching"]


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """The trunk that every objective trains here, and what it is trained on.

    Attributes
    ----------
    source : str
        A corpus of `text.load_sentences`, translated by rule, or sentence pairs of the hub, as
        `text.load_pairs` reads them.
    sentences : int or None
        At most so many of it to train on; None takes all.
    vocabulary : int
        Word-pieces of the tokenizer, which is trained on the sentences and their translations.
    width, depth, heads : int
        Of the trunk; its feed-forward layers are four times as wide.
    dropout : float
        Of the trunk. None in a few hundred steps, which see each sentence once.
    max_length : int
        Tokens; longer sentences are cut.
    steps, batch_size, learning_rate, warmup
        Of Adam; warm-up as a share of the steps.
    masked : float
        Share of the tokens that a masked LM has to predict.
    seeds : tuple of int
        Models that differ in nothing but their initial weights (and dropout, where there is any).
    """

    source: str
    sentences: int | None = None
    vocabulary: int
    width: int
    depth: int
    heads: int
    dropout: float
    max_length: int
    steps: int
    batch_size: int
    learning_rate: float
    warmup: float
    masked: float
    seeds: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Stitching:
    """What stitches are judged on and fitted to, and how long one is trained.

    Attributes
    ----------
    vocabulary, model_steps : int or None
        Of the language models of notebook 09; None takes those of `Pretraining`.
    sentences, fitted : int
        Held-out sentences that judge a stitch, and training sentences that maps are fitted to.
    steps, warmup : int
        Of a trained map.
    trained_layers : tuple of int
        Layers at which maps are trained, to the same layer of the other model.
    """

    sentences: int
    fitted: int
    steps: int
    warmup: int
    trained_layers: tuple[int, ...]
    vocabulary: int | None = None
    model_steps: int | None = None


@dataclass(frozen=True, kw_only=True)
class Heuristics:
    """Models of pairs of sentences that follow the overlap heuristic, and that do not.

    Attributes
    ----------
    models : int
        Of either group that are trained here, on the trunk of `Pretraining`; at least 3.
    train_rows, test_rows : int
        Pairs that a model learns from, and of each kind that judge it.
    start_steps, steps : int
        Of the start that all models share, and of each model after it; batches are of 64 pairs.
    learning_rate : float
        Of the models; the start takes twice as much.
    counter_examples : float
        Share, of the pairs not entailed, that refutes the heuristic to the generalizing models.
    heuristic, generalizing : tuple of str
        Ids on a hub, or folders; where there are any, nothing is trained.
    """

    models: int
    train_rows: int
    test_rows: int
    start_steps: int
    steps: int
    learning_rate: float
    counter_examples: float
    heuristic: tuple[str, ...] = ()
    generalizing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, other = len(self.heuristic), len(self.generalizing)
        if n != other or (n or self.models) < 3:
            raise ValueError(
                "models: both groups need as many, 3 at least (an interval leaves one out), found "
                f"{self.models}, {n} named heuristic and {other} generalizing"
            )


@dataclass(frozen=True, kw_only=True)
class Family:
    """Models of one family, the smallest first: trained here, or of a hub.

    Attributes
    ----------
    widths, depths : tuple of int
        Of members that are trained here; member i has width i and depth i.
    members : tuple of str
        Ids on a hub, or folders; where there are any, nothing is trained.
    sentences : int
        Held-out sentences on which the members are compared.
    """

    widths: tuple[int, ...] = ()
    depths: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    sentences: int

    def __post_init__(self) -> None:
        if len(self.widths) != len(self.depths):
            raise ValueError(
                f"widths and depths: one of each a member, found {list(self.widths)} and "
                f"{list(self.depths)}"
            )


@dataclass(frozen=True, kw_only=True)
class Dynamics:
    """What loss change allocation follows: short runs of the trunk of `Pretraining`.

    Attributes
    ----------
    sentences : int
        Held-out sentences of the fixed set whose loss is allocated.
    steps, batch_size, learning_rate, max_length, vocabulary
        Of the runs: an allocation costs several times what a step does, and its rules are the more
        exact the shorter the steps are.
    data_sizes, sources, stability_steps
        Between which allocations are compared, and the steps of those runs.
    sgd_steps, sgd_rate
        Steps and learning rate of the run with momentum SGD.
    arms : tuple of str
        Of the fine-tuning that is followed, on the first task of the grid.
    arm_steps, arm_rows, arm_length
        Its steps, the validation rows of its fixed set, and the tokens kept of a text.
    """

    sentences: int
    steps: int
    batch_size: int
    learning_rate: float
    max_length: int
    vocabulary: int
    data_sizes: tuple[int, ...]
    sources: tuple[str, ...]
    stability_steps: int
    sgd_steps: int
    sgd_rate: float
    arms: tuple[str, ...]
    arm_steps: int
    arm_rows: int
    arm_length: int


SIZES = {
    "pretraining": Pretraining,
    "stitching": Stitching,
    "heuristics": Heuristics,
    "family": Family,
    "dynamics": Dynamics,
}
