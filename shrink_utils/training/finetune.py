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
)

from shrink_utils.geometry import anisotropy
from shrink_utils.models import Encoder, hidden_states, load_classifier
from shrink_utils.text import load_task, task_spec
from shrink_utils.training.arguments import fine_tuning_arguments
from shrink_utils.training.config import RunConfig
from shrink_utils.training.metrics import task_metrics
from shrink_utils.training.recorder import N_SCORES, StepRecorder
from shrink_utils.training.rows import second_texts, tokenized
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
            args=fine_tuning_arguments(
                config,
                folder,
                num_train_epochs=config.epochs,
                eval_strategy="epoch",
                eval_on_start=True,
            ),
            train_dataset=tokenized(rows["train"], tokenizer, max_length=config.max_length),
            eval_dataset=tokenized(rows["validation"], tokenizer, max_length=config.max_length),
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


def _embed(model, tokenizer, rows: Dataset, config: RunConfig) -> Tensor:
    """Vectors of the rows as the regularizer would see them, without dropout, (n, d)."""
    return hidden_states(
        Encoder(name=config.model, model=model.base_model, tokenizer=tokenizer),
        list(rows["text"]),
        text_pairs=second_texts(rows),
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
