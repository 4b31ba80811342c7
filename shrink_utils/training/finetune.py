"""One run: fine-tune an encoder on a task, with or without the regularizer, and keep its story."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import torch
from datasets import DatasetDict
from torch import Tensor
from transformers import (
    DataCollatorWithPadding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
)

from shrink_utils.geometry import anisotropy
from shrink_utils.models import Encoder, load_classifier, quiet
from shrink_utils.text import load_task, task_spec
from shrink_utils.training.arguments import fine_tuning_arguments
from shrink_utils.training.checkpoints import Checkpoints
from shrink_utils.training.config import RunConfig
from shrink_utils.training.metrics import task_metrics
from shrink_utils.training.random_state import random_state_kept
from shrink_utils.training.recorder import N_SCORES, StepRecorder
from shrink_utils.training.rows import tokenized
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
        Two, with the task's metrics on the validation rows: before training and after it.
    geometry : dict
        Anisotropy scores of the validation rows ``before`` and ``after``, ``raw`` and ``centred``.
    embeddings : dict of Tensor
        ``before`` and ``after``, (n, d) each, and ``labels`` (n,), of the validation rows, from the
        passes of the first and the last evaluation: as the regularizer would see them, no dropout.
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


def finetune(
    config: RunConfig,
    *,
    on_row: Callable[[dict], None] | None = None,
    checkpoints: Path | None = None,
) -> FinetuneResult:
    """Fine-tune as `config` says.

    Parameters
    ----------
    config : RunConfig
        The whole description of the run.
    on_row : callable, optional
        Called after every step that is made with what was recorded of it.
    checkpoints : Path, optional
        Folder of this run's checkpoints, kept while the run is long (see `Checkpoints`): a run that
        was ended goes on from there, and its numbers are those of a run that was not. It is left
        for the caller to remove, when the result is safe.

    Returns
    -------
    FinetuneResult

    Raises
    ------
    ValueError
        ``max_length`` is beyond what the encoder reads, or leaves no token of a text.

    References
    ----------
    Kudriashov et al. 2025, *Shrink the longest* (arXiv 2501.05502), set-up of section 4.
    """
    spec = task_spec(config.task)
    rows = load_task(
        config.task, max_train=config.train_rows, max_eval=config.eval_rows, seed=config.seed
    )
    with (
        torch_threads(config.threads),
        random_state_kept(),  # the Trainer seeds the global generators
        _folder(checkpoints) as folder,
    ):
        model, tokenizer = load_classifier(
            config.model, n_labels=spec.n_labels, seed=config.seed, is_regression=spec.is_regression
        )
        recorder = StepRecorder(on_row)
        keep = checkpoints is not None
        trainer, reached = _trainer(config, model, tokenizer, rows, recorder, folder, keep=keep)
        with quiet():  # a checkpoint is written with a bar of its own
            if reached:  # the model is as yet that of the start, whose scores the log has
                trainer.predict(trainer.eval_dataset)
            trainer.train(resume_from_checkpoint=reached)
            trainer.evaluate()
        before, after = trainer.evaluated
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


@contextmanager
def _folder(checkpoints: Path | None) -> Iterator[Path]:
    """The Trainer's folder: a temporary one, or that of the checkpoints, gone if it is empty."""
    if checkpoints is None:
        with tempfile.TemporaryDirectory(prefix="shrink-run-") as scratch:
            yield Path(scratch)
        return
    checkpoints.mkdir(parents=True, exist_ok=True)
    try:
        yield checkpoints
    finally:
        with suppress(OSError):
            checkpoints.rmdir()


def _trainer(
    config: RunConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    rows: DatasetDict,
    recorder: StepRecorder,
    folder: Path,
    *,
    keep: bool,
) -> tuple[RegularizedTrainer, str | None]:
    """The Trainer of a run, and the checkpoint that it is to go on from, if any.

    `folder` is the Trainer's; `keep` tells whether checkpoints are kept there.
    """
    spec = task_spec(config.task)
    _check_length(config, model, tokenizer)
    regularizer = make_regularizer(config.arm, weight=config.weight)
    keeper = Checkpoints(folder, recorder, regularizer)
    reached = keeper.restore()
    trainer = RegularizedTrainer(
        model=model,
        args=fine_tuning_arguments(
            config,
            str(folder),
            num_train_epochs=config.epochs,
            eval_on_start=reached is None,
        ),
        train_dataset=tokenized(rows["train"], tokenizer, max_length=config.max_length),
        eval_dataset=tokenized(rows["validation"], tokenizer, max_length=config.max_length),
        data_collator=DataCollatorWithPadding(tokenizer),
        compute_metrics=task_metrics(spec),
        regularizer=regularizer,
        recorder=recorder,
        pooling=config.pooling,
        per_class=not spec.is_regression,
    )
    trainer.remove_callback(PrinterCallback)  # it prints every log line
    if keep:
        trainer.add_callback(keeper)
    return trainer, reached


def _check_length(
    config: RunConfig, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase
) -> None:
    limit = Encoder(config.model, model, tokenizer).max_length
    if config.max_length > limit:
        raise ValueError(
            f"max_length: {config.max_length} tokens, but {config.model} reads at most {limit}"
        )


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
