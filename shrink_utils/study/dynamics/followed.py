"""Follow a training from nothing by loss change allocation, and keep the record as a table."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from transformers import TrainerCallback

from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.scratch import scratch_config
from shrink_utils.training import ScratchConfig, held_out_batches, pretrain, scratch_tokenizer
from shrink_utils.training.dynamics import AllocationRecorder, FixedSetLoss, LossChanges

__all__ = [
    "Followed",
    "Stopwatch",
    "allocations",
    "closure_errors",
    "dynamics_config",
    "follow",
    "record_table",
]

PLACE = ["stack", "layer", "component", "head", "counted"]


@dataclass(frozen=True)
class Followed:
    """A training and its allocation.

    Attributes
    ----------
    changes : LossChanges
    held_out : float
        Loss of all held-out sentences after training, nats a token.
    seconds : float
        Of the training, with what was measured in it.
    """

    changes: LossChanges
    held_out: float
    seconds: float


class Stopwatch(TrainerCallback):
    """Wall-clock of a Trainer's own work, without what comes before and after it."""

    def on_train_begin(self, args, state, control, **kwargs) -> None:
        """Start."""
        self._began = time.perf_counter()

    def on_train_end(self, args, state, control, **kwargs) -> None:
        """Stop: ``seconds`` is there from now on."""
        self.seconds = time.perf_counter() - self._began


def dynamics_config(
    profile: Profile, objective: str, *, seed: int = 0, **changes: object
) -> ScratchConfig:
    """The short training that is followed: the profile's trunk, and the sizes of `Dynamics`.

    Parameters
    ----------
    profile : Profile
    objective : str
    seed : int
        One of ``profile.pretraining.seeds``.
    **changes
        Fields of `ScratchConfig` that are to differ.
    """
    sizes = profile.dynamics
    names = ("steps", "batch_size", "learning_rate", "max_length", "vocabulary")
    values = {name: getattr(sizes, name) for name in names} | changes
    return scratch_config(profile, objective, seed=seed, **values)


def follow(
    config: ScratchConfig,
    *,
    sentences: int,
    rules: Sequence[str],
    batch_gradient: bool = False,
    on_step: Callable[[], None] | None = None,
) -> Followed:
    """Train, and allocate the loss of `sentences` held-out sentences at every step.

    Parameters
    ----------
    config : ScratchConfig
    sentences : int
    rules, batch_gradient, on_step
        As in `AllocationRecorder`.
    """
    batches = held_out_batches(config, scratch_tokenizer(config), n=sentences)
    loss = FixedSetLoss(batches)
    recorder = AllocationRecorder(
        loss,
        rules=rules,
        token_ids=loss.token_ids,
        batch_gradient=batch_gradient,
        on_step=on_step,
    )
    watch = Stopwatch()
    result = pretrain(config, callbacks=[recorder, watch])
    return Followed(recorder.changes(), result.evaluations[-1]["loss"], watch.seconds)


def record_table(changes: LossChanges) -> pd.DataFrame:
    """A record as one tidy table.

    Parameters
    ----------
    changes : LossChanges

    Returns
    -------
    DataFrame
        One value a row, with columns ``quantity``, ``rule``, ``step``, ``stack``, ``layer``,
        ``component``, ``head``, ``counted`` and ``value``. By ``quantity``: "allocation", of each
        rule, weights and biases of a place together; "loss" after each step, and before training
        at step 0.
    """
    frames = []
    for rule in changes.values:
        table = changes.table(rule)
        sums = table.groupby(["step", *PLACE], sort=False).value.sum().reset_index()
        frames.append(sums.assign(quantity="allocation", rule=rule))
    losses = [changes.losses[0, 0], *changes.losses[:, 1]]
    nowhere = {"stack": "", "layer": -1, "component": "", "head": -1, "counted": False, "rule": ""}
    loss = pd.DataFrame({"step": np.arange(len(losses)), "value": losses})
    frames.append(loss.assign(quantity="loss", **nowhere))
    return pd.concat(frames, ignore_index=True)[["quantity", "rule", "step", *PLACE, "value"]]


def allocations(record: pd.DataFrame, rule: str = "trapezoid") -> pd.DataFrame:
    """The allocation by one rule, for the functions of `training.dynamics`.

    Parameters
    ----------
    record : DataFrame
        Of `record_table`; columns in front of its own are kept.
    rule : str
    """
    return record[(record.quantity == "allocation") & (record.rule == rule)]


def closure_errors(record: pd.DataFrame) -> pd.Series:
    """|ΣA − ΔL| / |ΔL| of one run, by rule.

    Parameters
    ----------
    record : DataFrame
        Of `record_table`.

    Returns
    -------
    Series
        Of the rules that integrate along the step; not of "batch", whose sum is no loss change.
    """
    loss = record[record.quantity == "loss"].set_index("step").value
    change = loss.iloc[-1] - loss.iloc[0]
    found = record[(record.quantity == "allocation") & (record.rule != "batch")]
    return (found.groupby("rule").value.sum() - change).abs() / abs(change)
