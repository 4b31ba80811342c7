"""One run: fine-tune an encoder on a task, with or without the regularizer, and keep its story."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import torch
from datasets import Dataset
from torch import Tensor
from transformers import (
    DataCollatorWithPadding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainingArguments,
)

from shrink_utils.geometry import anisotropy
from shrink_utils.models import Encoder, hidden_states, load_classifier
from shrink_utils.text import load_task, task_spec
from shrink_utils.training.config import SCHEDULES, RunConfig
from shrink_utils.training.metrics import task_metrics
from shrink_utils.training.recorder import N_SCORES, StepRecorder
from shrink_utils.training.threads import torch_threads
from shrink_utils.training.trainer import RegularizedTrainer, make_regularizer

__all__ = ["FinetuneResult", "finetune"]


@dataclass(frozen=True)
class FinetuneResult:
    """What a run leaves behind.

    Attributes
    ----------
    history : DataFrame
        One row a training step.
    evaluations : list of dict
        One a epoch, with the task's metrics on the validation rows; the first is before training.
    geometry : dict
        Anisotropy scores of the validation rows ``before`` and ``after``, ``raw`` and ``centred``.
    embeddings : dict of Tensor
        ``before`` and ``after``, (n, d) each, and ``labels`` (n,), of the validation rows.
    model : PreTrainedModel
        The fine-tuned encoder with its head, in evaluation mode.
    tokenizer : PreTrainedTokenizerBase
    """

    history: pd.DataFrame
    evaluations: list[dict]
    geometry: dict[str, dict[str, list[float]]]
    embeddings: dict[str, Tensor]
    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase


def finetune(config: RunConfig, *, on_row: Callable[[dict], None] | None = None) -> FinetuneResult:
    """Fine-tune as `config` says.

    Parameters
    ----------
    config : RunConfig
        The whole description of the run.
    on_row : callable, optional
        Called after every step with what was recorded of it.

    Returns
    -------
    FinetuneResult

    References
    ----------
    Kudriashov et al. 2025, *Shrink the longest* (arXiv 2501.05502), set-up of section 4.
    """
    spec = task_spec(config.task)
    rows = load_task(
        config.task, max_train=config.train_rows, max_eval=config.eval_rows, seed=config.seed
    )
    with torch_threads(config.threads), tempfile.TemporaryDirectory(prefix="shrink-run-") as folder:
        model, tokenizer = load_classifier(
            config.model, n_labels=spec.n_labels, seed=config.seed, is_regression=spec.is_regression
        )
        recorder = StepRecorder(on_row)
        trainer = RegularizedTrainer(
            model=model,
            args=_arguments(config, folder),
            train_dataset=_tokenize(rows["train"], tokenizer, config.max_length),
            eval_dataset=_tokenize(rows["validation"], tokenizer, config.max_length),
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_metrics=task_metrics(spec),
            regularizer=make_regularizer(config.arm, weight=config.weight),
            recorder=recorder,
            pooling=config.pooling,
            per_class=not spec.is_regression,
        )
        trainer.remove_callback(PrinterCallback)  # it prints every log line
        before = _embed(model, tokenizer, rows["validation"], config)
        trainer.train()
        after = _embed(model, tokenizer, rows["validation"], config)
    return FinetuneResult(
        history=recorder.history(),
        evaluations=_evaluations(trainer.state.log_history),
        geometry={"before": _scores(before), "after": _scores(after)},
        embeddings={
            "before": before,
            "after": after,
            "labels": torch.tensor(rows["validation"]["label"]),
        },
        model=model.eval(),
        tokenizer=tokenizer,
    )


def _arguments(config: RunConfig, folder: str) -> TrainingArguments:
    return TrainingArguments(
        output_dir=folder,
        num_train_epochs=config.epochs,
        per_device_train_batch_size=config.batch_size,
        per_device_eval_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        warmup_steps=config.warmup,  # a value below 1 is a fraction of the steps
        lr_scheduler_type=SCHEDULES[config.schedule],
        seed=config.seed,
        data_seed=config.seed,
        logging_steps=1,
        logging_nan_inf_filter=False,  # a NaN is to be seen, not smoothed over
        eval_strategy="epoch",
        eval_on_start=True,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,  # `on_row` shows the progress of a whole grid instead
        log_level="error",
        dataloader_pin_memory=torch.cuda.is_available(),
    )


def _tokenize(rows: Dataset, tokenizer, max_length: int) -> Dataset:
    tokens = tokenizer(list(rows["text"]), _pairs(rows), truncation=True, max_length=max_length)
    return Dataset.from_dict({**tokens, "labels": list(rows["label"])})


def _pairs(rows: Dataset) -> list[str] | None:
    """Second texts; None for a task of single texts."""
    return None if rows["text_pair"][0] is None else list(rows["text_pair"])


def _embed(model, tokenizer, rows: Dataset, config: RunConfig) -> Tensor:
    """Vectors of the rows as the regularizer would see them, without dropout, (n, d)."""
    return hidden_states(
        Encoder(name=config.model, model=model.base_model, tokenizer=tokenizer),
        list(rows["text"]),
        text_pairs=_pairs(rows),
        layers=[-1],
        pooling=config.pooling,
        batch_size=config.batch_size,
        max_length=config.max_length,
    )[0]


def _scores(x: Tensor) -> dict[str, list[float]]:
    k = min(N_SCORES, *x.shape)
    return {
        "raw": anisotropy(x, k=k).tolist(),
        "centred": anisotropy(x, k=k, center=True).tolist(),
    }


def _evaluations(log: list[dict]) -> list[dict]:
    """The Trainer's evaluation logs, without its timings."""
    timings = ("runtime", "samples_per_second", "steps_per_second", "model_preparation_time")
    return [
        {
            key.removeprefix("eval_"): value
            for key, value in entry.items()
            if not key.endswith(timings)
        }
        for entry in log
        if "eval_loss" in entry
    ]
