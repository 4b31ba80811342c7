"""Loss change allocation of short trainings, after Vázquez et al. 2022."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader
from transformers import DataCollatorWithPadding, TrainerCallback

from shrink_utils.models import OBJECTIVES, load_classifier
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import measured, progress_bar
from shrink_utils.study.scratch import scratch_config
from shrink_utils.text import load_task, task_spec
from shrink_utils.training import (
    RegularizedTrainer,
    RunConfig,
    ScratchConfig,
    StepRecorder,
    examples,
    held_out_batches,
    make_regularizer,
    new_model,
    pretrain,
    scratch_tokenizer,
)
from shrink_utils.training.arguments import torch_threads
from shrink_utils.training.dynamics import (
    RULES,
    AllocationRecorder,
    Allocator,
    FixedSetLoss,
    LossChanges,
)
from shrink_utils.training.finetune import fine_tuning_arguments
from shrink_utils.training.rows import fixed_batches, tokenized
from shrink_utils.training.scratch import collator

CHEAP = ("euler", "trapezoid")  # one gradient per step; Simpson's rule takes a second one
MOMENTUM = 0.9
TOLERANCE = 2e-4  # per step, so that the errors of all steps stay small beside ΔL

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
        Of `record_table`, with ``objective`` and ``seed`` in front. Simpson's rule is recorded for
        the first seed. Further quantities, without a place:

        - "seconds": wall-clock of a training, by ``rule``: "simpson" (all rules recorded, first
          seed), "trapezoid" (without Simpson's, last seed), "plain" (nothing recorded, last seed);
        - "held out": the loss of all held-out sentences after the last two of these.
    """
    seeds, sizes = profile.pretraining.seeds, profile.dynamics
    total, frames = len(OBJECTIVES) * len(seeds) * sizes.steps, []
    with progress_bar(total=total, unit="step", description="loss change allocation") as bar:
        for objective in OBJECTIVES:
            for seed in seeds:
                config = dynamics_config(profile, objective, seed=seed)
                rules = (*CHEAP, "simpson") if seed == seeds[0] else CHEAP
                changes, held_out, seconds = follow(
                    config,
                    sentences=sizes.sentences,
                    rules=rules,
                    batch_gradient=True,
                    on_step=bar.update,
                )
                numbers = [("seconds", rules[-1], seconds)]
                if seed == seeds[-1]:
                    plain, plain_seconds = _train(config)  # with nothing recorded
                    numbers += [("held out", "trapezoid", held_out)]
                    numbers += [("seconds", "plain", plain_seconds), ("held out", "plain", plain)]
                whole = pd.DataFrame(numbers, columns=["quantity", "rule", "value"])
                for table in (record_table(changes), whole.assign(step=0, **NOWHERE)):
                    frames.append(table.assign(objective=objective, seed=seed))
    return _in_front(["objective", "seed"], frames)


@measured("dynamics_sgd")
def measure_sgd(profile: Profile) -> pd.DataFrame:
    """Allocate a causal language model's loss along momentum SGD, in a plain loop.

    The learning rate of ``profile.dynamics`` overshoots: there Euler's rule fails.

    Returns
    -------
    DataFrame
        Of `record_table`, with every rule, and with the quantity "pieces": into how many pieces
        the adaptive rule split each step.
    """
    sizes = profile.dynamics
    config = dynamics_config(profile, "clm", seed=profile.pretraining.seeds[0])
    tokenizer = scratch_tokenizer(config)
    loss = FixedSetLoss(held_out_batches(config, tokenizer, n=max(1, sizes.sentences // 2)))
    batches = DataLoader(
        examples(config, tokenizer)[0],
        batch_size=config.batch_size,
        shuffle=True,
        collate_fn=collator(config, tokenizer),
        generator=torch.Generator().manual_seed(config.data_seed),
    )
    with torch_threads(config.threads), torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)  # dropout
        model = new_model(config, tokenizer).train()
        optimizer = torch.optim.SGD(model.parameters(), lr=sizes.sgd_rate, momentum=MOMENTUM)
        allocator = Allocator(model, loss, rules=RULES, tolerance=TOLERANCE)
        with progress_bar(total=sizes.sgd_steps, unit="step", description="momentum SGD") as bar:
            for batch, _ in zip(batches, range(sizes.sgd_steps), strict=False):
                optimizer.zero_grad()
                model(**batch).loss.backward()
                allocator.start()
                optimizer.step()
                allocator.finish()
                bar.update()
    changes = allocator.changes()
    return _with_steps(record_table(changes), "pieces", changes.pieces.astype(float))


@measured("dynamics_arms")
def measure_arms(profile: Profile) -> pd.DataFrame:
    """Allocate the task's loss while the first model is fine-tuned on the first task.

    Hyper-parameters are the grid's, with fewer steps on shorter texts. The fixed set are validation
    rows. The loss that is allocated is the task's, without the regularizer that trains along.

    Returns
    -------
    DataFrame
        Of `record_table` (trapezoid), with ``arm`` and ``seed`` in front (the arms of
        ``profile.dynamics``, and the first seed), and with the quantity "entropy", of all bars of
        the batch at each step.
    """
    first, sizes = profile.runs()[0], profile.dynamics
    total, frames = len(sizes.arms) * sizes.arm_steps, []
    with progress_bar(total=total, unit="step", description="arms of the regularizer") as bar:
        for arm in sizes.arms:
            config = replace(first, arm=arm, max_length=sizes.arm_length)
            table = _fine_tuned(config, profile, bar.update)
            frames.append(table.assign(arm=arm, seed=config.seed))
    return _in_front(["arm", "seed"], frames)


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


def _with_steps(record: pd.DataFrame, quantity: str, values: np.ndarray) -> pd.DataFrame:
    """A record with one more number per step."""
    losses = record[(record.quantity == "loss") & (record.step > 0)]
    return pd.concat([record, losses.assign(quantity=quantity, value=values)], ignore_index=True)


def _in_front(keys: list[str], frames: list[pd.DataFrame]) -> pd.DataFrame:
    table = pd.concat(frames, ignore_index=True)
    return table[[*keys, *table.columns.drop(keys)]]


def _fine_tuned(config: RunConfig, profile: Profile, on_step: Callable[[], None]) -> pd.DataFrame:
    """The record of one arm."""
    spec, sizes = task_spec(config.task), profile.dynamics
    rows = load_task(
        config.task, max_train=config.train_rows, max_eval=sizes.arm_rows, seed=config.seed
    )
    with (
        torch_threads(config.threads),
        torch.random.fork_rng(devices=[]),
        tempfile.TemporaryDirectory(prefix="shrink-arm-") as scratch,
    ):
        model, tokenizer = load_classifier(
            config.model, n_labels=spec.n_labels, seed=config.seed, is_regression=spec.is_regression
        )
        pad = DataCollatorWithPadding(tokenizer)
        train, fixed = (
            tokenized(rows[side], tokenizer, max_length=config.max_length)
            for side in ("train", "validation")
        )
        loss = FixedSetLoss(fixed_batches(fixed, pad, batch_size=config.batch_size))
        watch, told = AllocationRecorder(loss, on_step=on_step), StepRecorder()
        trainer = RegularizedTrainer(
            model=model,
            args=fine_tuning_arguments(config, scratch, max_steps=sizes.arm_steps),
            train_dataset=train,
            data_collator=pad,
            regularizer=make_regularizer(config.arm, weight=config.weight),
            recorder=told,
            pooling=config.pooling,
            per_class=not spec.is_regression,
        )
        trainer.add_callback(watch)
        trainer.train()
    entropies = told.history().entropy_all.to_numpy()
    return _with_steps(record_table(watch.changes()), "entropy", entropies)
