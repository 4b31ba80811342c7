"""Loss change allocation of the regularizer's arms: which layers pay for isotropy?"""

from __future__ import annotations

import tempfile
from dataclasses import replace

import pandas as pd
import torch
from transformers import DataCollatorWithPadding, PrinterCallback

from shrink_utils.models import load_classifier
from shrink_utils.study.dynamics.followed import record_table
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.measured import measured
from shrink_utils.study.runs.progress import progress_bar
from shrink_utils.text import load_task, task_spec
from shrink_utils.training import RegularizedTrainer, RunConfig, StepRecorder, make_regularizer
from shrink_utils.training.arguments import fine_tuning_arguments
from shrink_utils.training.dynamics import AllocationRecorder, FixedSetLoss
from shrink_utils.training.rows import fixed_batches, tokenized
from shrink_utils.training.threads import torch_threads

__all__ = ["measure_arms"]


@measured("dynamics_arms")
def measure_arms(profile: Profile) -> pd.DataFrame:
    """Allocate the task's loss while the first model is fine-tuned on the first task.

    Hyper-parameters are the grid's, with fewer steps on shorter texts. The fixed set are validation
    rows; the loss that is allocated is the task's, without the regularizer that trains along.

    Parameters
    ----------
    profile : Profile
        The arms of ``dynamics``; one seed, the first.

    Returns
    -------
    DataFrame
        Of `followed.record_table` (trapezoid), with ``arm`` and ``seed`` in front, and with the
        quantity "entropy", of all bars of the batch at each step.
    """
    first, length = profile.runs()[0], profile.dynamics.arm_length
    configs = [replace(first, arm=arm, max_length=length) for arm in profile.dynamics.arms]
    total = len(configs) * profile.dynamics.arm_steps
    with progress_bar(total=total, unit="step", description="arms of the regularizer") as bar:
        frames = [
            _followed(config, profile, bar.update).assign(arm=config.arm, seed=config.seed)
            for config in configs
        ]
    table = pd.concat(frames, ignore_index=True)
    return table[["arm", "seed", *table.columns.drop(["arm", "seed"])]]


def _followed(config: RunConfig, profile: Profile, on_step) -> pd.DataFrame:
    spec, steps = task_spec(config.task), profile.dynamics.arm_steps
    rows = load_task(
        config.task,
        max_train=config.train_rows,
        max_eval=profile.dynamics.arm_rows,
        seed=config.seed,
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
            args=fine_tuning_arguments(config, scratch, max_steps=steps),
            train_dataset=train,
            data_collator=pad,
            regularizer=make_regularizer(config.arm, weight=config.weight),
            recorder=told,
            pooling=config.pooling,
            per_class=not spec.is_regression,
        )
        trainer.remove_callback(PrinterCallback)  # it prints every log line
        trainer.add_callback(watch)
        trainer.train()
    record = record_table(watch.changes())
    losses = record[(record.quantity == "loss") & (record.step > 0)]
    entropy = losses.assign(quantity="entropy", value=told.history().entropy_all.to_numpy())
    return pd.concat([record, entropy], ignore_index=True)
