"""Loss change allocation of short trainings, after Vázquez et al. 2022."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
import pandas as pd
from transformers import TrainerCallback

from shrink_utils.models import OBJECTIVES
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import measured, progress_bar
from shrink_utils.study.scratch import scratch_config
from shrink_utils.training import (
    ScratchConfig,
    held_out_batches,
    pretrain,
    scratch_tokenizer,
)
from shrink_utils.training.dynamics import (
    AllocationRecorder,
    FixedSetLoss,
    LossChanges,
)

CHEAP = ("euler", "trapezoid")  # one gradient per step; Simpson's rule takes a second one

NOWHERE = {"stack": "", "layer": -1, "component": "", "head": -1, "counted": False}
RUN = ["source", "size", "seed"]
CELL = ["layer", "component"]


def dynamics_config(
    profile: Profile, objective: str, *, seed: int = 0, **changes: object
) -> ScratchConfig:
    """The short training that is followed: the profile's trunk, and the sizes of its ``dynamics``.

    `seed` is one of ``profile.pretraining.seeds``; `changes` are fields of `ScratchConfig`.
    """
    names = ("steps", "batch_size", "learning_rate", "max_length", "vocabulary")
    values = {name: getattr(profile.dynamics, name) for name in names} | changes
    return scratch_config(profile, objective, seed=seed, **values)


def follow(
    config: ScratchConfig,
    *,
    sentences: int,
    rules: Sequence[str],
    batch_gradient: bool = False,
    on_step: Callable[[], None] | None = None,
) -> tuple[LossChanges, float, float]:
    """Train, and allocate the loss of `sentences` held-out sentences at every step.

    The other arguments are those of `AllocationRecorder`.

    Returns
    -------
    changes : LossChanges
    held_out : float
        Loss of all held-out sentences after training, nats per token.
    seconds : float
        Of the training, with what was measured in it.
    """
    loss = FixedSetLoss(held_out_batches(config, scratch_tokenizer(config), n=sentences))
    recorder = AllocationRecorder(
        loss,
        rules=rules,
        token_ids=loss.token_ids,
        batch_gradient=batch_gradient,
        on_step=on_step,
    )
    held_out, seconds = _train(config, recorder)
    return recorder.changes(), held_out, seconds


def record_table(changes: LossChanges) -> pd.DataFrame:
    """A record as one tidy table of one value per row.

    Columns ``quantity``, ``rule``, ``step``, ``stack``, ``layer``, ``component``, ``head``,
    ``counted`` and ``value``. By ``quantity``: "allocation", of each rule, weights and biases of a
    place together; "loss" after each step, and before training at step 0.
    """
    frames = []
    for rule in changes.values:
        sums = changes.table(rule).groupby(["step", *NOWHERE], sort=False).value.sum()
        frames.append(sums.reset_index().assign(quantity="allocation", rule=rule))
    losses = [changes.losses[0, 0], *changes.losses[:, 1]]
    loss = pd.DataFrame({"step": np.arange(len(losses)), "value": losses})
    frames.append(loss.assign(quantity="loss", rule="", **NOWHERE))
    return pd.concat(frames, ignore_index=True)[["quantity", "rule", "step", *NOWHERE, "value"]]


def allocations(record: pd.DataFrame, rule: str = "trapezoid") -> pd.DataFrame:
    """The allocation by one rule of a `record_table`, for the functions of `training.dynamics`."""
    return record[(record.quantity == "allocation") & (record.rule == rule)]


@measured("dynamics")
def measure_dynamics(profile: Profile) -> pd.DataFrame:
    """Follow every objective from every seed of ``profile.pretraining``.

    Returns
    -------
    DataFrame
        Of `record_table`, with ``objective`` and ``seed`` in front. Further quantities, without a
        place, of the last seed by ``rule`` ("trapezoid" with, "plain" without a record):
        "seconds", wall-clock of the training, and "held out", the loss of all held-out sentences
        after it.
    """
    seeds, sizes = profile.pretraining.seeds, profile.dynamics
    total, frames = len(OBJECTIVES) * len(seeds) * sizes.steps, []
    with progress_bar(total=total, unit="step", description="loss change allocation") as bar:
        for objective in OBJECTIVES:
            for seed in seeds:
                config = dynamics_config(profile, objective, seed=seed)
                changes, held_out, seconds = follow(
                    config,
                    sentences=sizes.sentences,
                    rules=CHEAP,
                    batch_gradient=True,
                    on_step=bar.update,
                )
                numbers = []
                if seed == seeds[-1]:
                    plain, plain_seconds = _train(config)  # with nothing recorded
                    numbers += [
                        ("seconds", "trapezoid", seconds),
                        ("held out", "trapezoid", held_out),
                    ]
                    numbers += [("seconds", "plain", plain_seconds), ("held out", "plain", plain)]
                whole = pd.DataFrame(numbers, columns=["quantity", "rule", "value"])
                for table in (record_table(changes), whole.assign(step=0, **NOWHERE)):
                    frames.append(table.assign(objective=objective, seed=seed))
    return _in_front(["objective", "seed"], frames)


@measured("dynamics_stability")
def measure_stability(profile: Profile) -> pd.DataFrame:
    """Allocate a causal language model's loss for every corpus, data size and seed.

    A causal model predicts every token: of as many sentences, its loss is the least noisy.

    Returns
    -------
    DataFrame
        Columns ``source``, ``size``, ``seed``, ``layer``, ``component``, ``parameters`` (how many
        scalars) and ``value`` (the contribution over all steps, by the trapezoid), trunk only.
    """
    sizes, seeds = profile.dynamics, profile.pretraining.seeds
    conditions = list(product(sizes.sources, sizes.data_sizes, seeds))
    total, frames = len(conditions) * sizes.stability_steps, []
    with progress_bar(total=total, unit="step", description="sizes and domains") as bar:
        for source, size, seed in conditions:
            changed = {"source": source, "sentences": size, "steps": sizes.stability_steps}
            config = dynamics_config(profile, "clm", seed=seed, **changed)
            changes, *_ = follow(
                config, sentences=sizes.sentences, rules=("trapezoid",), on_step=bar.update
            )
            trunk = allocations(record_table(changes)).query("layer > 0")
            cells = trunk.groupby(CELL, sort=False).value.sum().to_frame()
            cells["parameters"] = changes.blocks.groupby(CELL)["size"].sum()
            frames.append(cells.reset_index().assign(source=source, size=size, seed=seed))
    return pd.concat(frames, ignore_index=True)[[*RUN, *CELL, "parameters", "value"]]


class _Stopwatch(TrainerCallback):
    """Wall-clock of a Trainer's own work, without what comes before and after it."""

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        self._began = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs) -> None:
        self.seconds = time.perf_counter() - self._began


def _train(config: ScratchConfig, *callbacks: TrainerCallback) -> tuple[float, float]:
    """Held-out loss after training, and its seconds."""
    watch = _Stopwatch()
    result = pretrain(config, callbacks=[*callbacks, watch])
    return result.evaluations[-1]["loss"], watch.seconds


def _in_front(keys: list[str], frames: list[pd.DataFrame]) -> pd.DataFrame:
    table = pd.concat(frames, ignore_index=True)
    return table[[*keys, *table.columns.drop(keys)]]
