"""What trainings here ask of transformers' Trainer, whatever they train."""

from __future__ import annotations

import torch
from transformers import TrainingArguments

from shrink_utils.training.config import SCHEDULES, RunConfig

__all__ = ["fine_tuning_arguments", "quiet_arguments"]


def quiet_arguments(folder: str, **options: object) -> TrainingArguments:
    """Arguments of a training that logs every step, keeps nothing on disk and prints nothing.

    Parameters
    ----------
    folder : str
        A temporary one: the Trainer wants to have one.
    **options
        Of ``transformers.TrainingArguments``.
    """
    return TrainingArguments(
        output_dir=folder,
        logging_steps=1,
        logging_nan_inf_filter=False,  # a NaN is to be seen, not smoothed over
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,  # the study's own bars show the progress
        log_level="error",
        dataloader_pin_memory=torch.cuda.is_available(),
        **options,
    )


def fine_tuning_arguments(config: RunConfig, folder: str, **options: object) -> TrainingArguments:
    """`quiet_arguments` with the hyper-parameters of a run; `options` say how long, at least."""
    return quiet_arguments(
        folder,
        per_device_train_batch_size=config.batch_size,
        per_device_eval_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        warmup_steps=config.warmup,  # a value below 1 is a fraction of the steps
        lr_scheduler_type=SCHEDULES[config.schedule],
        seed=config.seed,
        data_seed=config.seed,
        **options,
    )
