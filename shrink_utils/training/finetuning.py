"""One run: fine-tune an encoder on a task, with or without the regularizer, and keep its story."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from sklearn.metrics import silhouette_score
from torch import Tensor, nn
from torchmetrics.functional import matthews_corrcoef, spearman_corrcoef
from torchmetrics.functional.classification import binary_f1_score, multiclass_accuracy
from transformers import (
    DataCollatorWithPadding,
    EvalPrediction,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainingArguments,
)
from transformers.trainer_utils import EvalLoopOutput

from shrink_utils.models import Encoder, load_classifier
from shrink_utils.models.products import OneDNN
from shrink_utils.text import TaskSpec, load_task, task_spec
from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training.arguments import (
    _isolated_training,
    _quiet_arguments,
    _QuietTrainer,
    _tokenized,
)
from shrink_utils.training.arms import arm_options
from shrink_utils.training.config import RunConfig, used_precision
from shrink_utils.training.penalties import PENALTIES
from shrink_utils.training.trainer import (
    BarcodeTrainer,
    StepRecorder,
    _class_scores,
    _Evaluation,
    _scores,
)


@dataclass(frozen=True)
class FinetuneResult:
    """What a run leaves behind.

    Examples
    --------
    >>> from shrink_utils.training import RunConfig
    >>> config = RunConfig(
    ...     model="tiny-random", task="sentiment_movies", arm="all", seed=0, epochs=1, max_length=8,
    ...     train_rows=16, eval_rows=8, batch_size=8, learning_rate=1e-3, weight_decay=0.0,
    ... )
    >>> finetune(config).embeddings["after"].shape
    torch.Size([8, 32])
    """

    # One row per training step; a class absent from a batch leaves its columns empty.
    history: pd.DataFrame
    # Of the validation rows before training and after every epoch: step, epoch, loss, the task's
    # metrics, and the anisotropy scores ``raw_k`` and ``centred_k`` of their embeddings; of classes
    # also ``within_1`` and ``between`` (`_class_scores`) and their mean ``silhouette``.
    evaluations: list[dict]
    # "before" and "after" (n, d), "labels" (n,) and "predictions" (evaluations, n): what the
    # regularizer would see of the validation rows without dropout, and what the classifier says.
    embeddings: dict[str, Tensor]
    model: PreTrainedModel  # the fine-tuned encoder with its head, in evaluation mode
    tokenizer: PreTrainedTokenizerBase


def finetune(
    config: RunConfig,
    *,
    on_row: Callable[[dict], None] | None = None,
    recorder: StepRecorder | None = None,
) -> FinetuneResult:
    """Fine-tune as `config` says.

    Parameters
    ----------
    config : RunConfig
    on_row : callable, optional
        Called after every step that is made with what was recorded of it.
    recorder : StepRecorder, optional
        A new one of one's own, whose class may note more at the Trainer's events; it calls its own
        ``on_row``.

    Raises
    ------
    ValueError
        ``max_length`` is beyond what the encoder reads, or leaves no token of a text.

    Notes
    -----
    In bfloat16 the matrix products of a training pass are rounded (autocast); weights, optimizer,
    regularizer and evaluations stay in float32, as geometry is measured on these.

    References
    ----------
    Kudriashov et al. 2025, *Shrink the longest* (arXiv 2501.05502), set-up of section 4.

    Examples
    --------
    >>> from shrink_utils.training import RunConfig
    >>> config = RunConfig(
    ...     model="tiny-random", task="sentiment_movies", arm="all", seed=0, epochs=1, max_length=8,
    ...     train_rows=16, eval_rows=8, batch_size=8, learning_rate=1e-3, weight_decay=0.0,
    ... )
    >>> result = finetune(config)
    >>> len(result.history), [row["step"] for row in result.evaluations]
    (2, [0, 2])
    """
    spec, length = task_spec(config.task), config.max_length
    rows = load_task(
        config.task, max_train=config.train_rows, max_eval=config.eval_rows, seed=config.seed
    )
    recorder = StepRecorder(on_row) if recorder is None else recorder
    with _isolated_training(config.threads) as folder:
        model, tokenizer = load_classifier(config.model, n_labels=spec.n_labels, seed=config.seed)
        if length > (limit := Encoder(config.model, model, tokenizer).max_length):
            raise ValueError(f"max_length: {length}, but {config.model} reads at most {limit}")
        tokens = {side: _tokenized(rows[side], tokenizer, max_length=length) for side in rows}
        # Bars of an arm without a regularizer are noted as well.
        regularizer = make_regularizer(config.arm, weight=config.weight)
        trainer = _FinetuneTrainer(
            model=model,
            args=_fine_tuning_arguments(config, folder),
            train_dataset=tokens["train"],
            eval_dataset=tokens["validation"],
            data_collator=DataCollatorWithPadding(tokenizer),
            compute_metrics=_task_metrics(spec),
            regularizer=regularizer or BarcodeRegularizer(weight=0.0),
            recorder=recorder,
            pooling=config.pooling,
            precision=used_precision(config.precision),
        )
        trainer.train()
    labels, evaluated = torch.tensor(rows["validation"]["label"]), recorder.evaluated
    classes = None if spec.is_regression else labels
    return FinetuneResult(
        history=pd.DataFrame(recorder.rows),
        evaluations=_evaluations(trainer.state.log_history, evaluated, classes),
        embeddings={
            "before": evaluated[0].embeddings,
            "after": evaluated[-1].embeddings,
            "labels": labels,
            "predictions": torch.stack([_predicted(seen.outputs) for seen in evaluated]),
        },
        model=model.eval(),
        tokenizer=tokenizer,
    )


class _FinetuneTrainer(_QuietTrainer, BarcodeTrainer):
    """`BarcodeTrainer` as the study runs it: bfloat16 in the passes that train and in no others."""

    def __init__(self, *, precision: str, **options: Any) -> None:
        super().__init__(**options)
        self.model_accepts_loss_kwargs = False  # the Trainer need not count the rows of a step
        self.precision = precision

    def autocast_smart_context_manager(self, cache_enabled: bool | None = True) -> torch.autocast:
        """Around every computation of the loss; float64, as of the reward, is left alone."""
        rounded = self.model.training and self.precision == "bfloat16"
        return torch.autocast(self.args.device.type, torch.bfloat16, enabled=rounded)

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> EvalLoopOutput:
        """By the products that layers are read with."""
        with OneDNN():
            return super().evaluation_loop(*args, **kwargs)


def _fine_tuning_arguments(config: RunConfig, folder: str) -> TrainingArguments:
    """`_quiet_arguments` with the hyper-parameters of a run, evaluated at first and every epoch.

    Raises
    ------
    ValueError
        The rows of a step cannot be shared out equally between the processes of this run.
    """
    processes = int(os.environ.get("WORLD_SIZE", 1))  # as torchrun and accelerate launch say
    if config.batch_size % processes:
        raise ValueError(
            f"batch_size: {config.batch_size} rows cannot be shared out equally between "
            f"{processes} processes; start another number of processes"
        )
    return _quiet_arguments(
        folder,
        # Without a GPU, accelerate would let the processes train each for itself.
        use_cpu=processes > 1 and not torch.cuda.is_available(),
        per_device_train_batch_size=config.batch_size // processes,
        per_device_eval_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        warmup_steps=config.warmup,  # a value below 1 is a fraction of the steps
        lr_scheduler_type="constant_with_warmup",
        seed=config.seed,
        data_seed=config.seed,
        num_train_epochs=config.epochs,
        eval_on_start=True,
        eval_strategy="epoch",
    )


def make_regularizer(arm: str, *, weight: float = 1.0) -> nn.Module | None:
    """Regularizer of an arm of `ARMS`, None for the arm without one; `weight` is its factor.

    Examples
    --------
    >>> make_regularizer("all", weight=0.5).weight
    0.5
    """
    if (options := arm_options(arm)) is None:
        return None
    kind = {"penalty": "barcodes"} | options
    return PENALTIES[kind.pop("penalty")](**kind, weight=weight)


def _evaluations(
    log: list[dict], evaluated: list[_Evaluation], labels: Tensor | None
) -> list[dict]:
    """The Trainer's evaluation logs without its timings, and the scores of the embeddings.

    Of two classes or more also `_class_scores` and the mean silhouette (Rousseeuw 1987).
    """
    timings = ("runtime", "samples_per_second", "steps_per_second", "model_preparation_time")
    found = []
    for entry, seen in zip((e for e in log if "eval_loss" in e), evaluated, strict=True):
        kept = {k.removeprefix("eval_"): v for k, v in entry.items() if not k.endswith(timings)}
        kept |= _scores(seen.embeddings)
        if labels is not None and len(labels.unique()) > 1:
            kept |= _class_scores(seen.embeddings, labels)
            kept["silhouette"] = float(silhouette_score(seen.embeddings, labels))
        found.append(kept)
    return found


def _predicted(outputs: Tensor) -> Tensor:
    """Classes (n,) of logits (n, labels); of a regression (n, 1) the values."""
    return outputs.squeeze(-1) if outputs.shape[-1] == 1 else outputs.argmax(-1)


def _task_metrics(spec: TaskSpec) -> Callable[[EvalPrediction], dict[str, float]]:
    """Function from predictions to the scores that `spec` names, for transformers' Trainer.

    They are ``accuracy``, ``f1`` (of class 1), ``matthews`` and ``spearman``.
    """
    n = spec.n_labels
    functions = {
        "accuracy": lambda p, y: multiclass_accuracy(p, y, num_classes=n, average="micro"),
        "f1": binary_f1_score,
        "matthews": lambda p, y: _matthews(p, y, n),
        "spearman": spearman_corrcoef,
    }

    def compute(prediction: EvalPrediction) -> dict[str, float]:
        given = prediction.predictions  # of several outputs the first is judged
        outputs = torch.as_tensor(given[0] if isinstance(given, tuple) else given)
        p, y = _predicted(outputs), torch.as_tensor(prediction.label_ids)
        return {name: functions[name](p, y).item() for name in spec.metrics}

    return compute


def _matthews(p: Tensor, y: Tensor, n_classes: int) -> Tensor:
    """0 where either side has one class alone, as GLUE's scorer; torchmetrics rounds that 0/0."""
    if len(p.unique()) < 2 or len(y.unique()) < 2:
        return torch.tensor(0.0)
    return matthews_corrcoef(p, y, task="multiclass", num_classes=n_classes)
