"""One run: fine-tune an encoder on a task, with or without the regularizer, and keep its story.

Before that stands what every training of the study shares: tokens and batches, a quiet Trainer, a
closed room.
"""

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from scipy.stats import spearmanr
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef, silhouette_score
from torch import Tensor, nn
from transformers import (
    DataCollatorWithPadding,
    EvalPrediction,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from shrink_utils.models import Encoder, load_classifier
from shrink_utils.study.profiles import RunConfig, arm_options, used_precision
from shrink_utils.text import load_task
from shrink_utils.text.tasks import TaskSpec, task_spec
from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training.penalties import PENALTIES
from shrink_utils.training.trainer import (
    BarcodeTrainer,
    StepRecorder,
    _class_scores,
    _Evaluation,
    _scores,
)


def _tokenized(
    rows: Dataset, tokenizer: PreTrainedTokenizerBase, *, max_length: int | None = None
) -> Dataset:
    """Tokens of ``text`` (and ``text_pair``), with the label in ``labels``.

    Longer rows than `max_length` are cut; by default at what the tokenizer says.

    Raises
    ------
    ValueError
        `max_length` leaves no token of a text beside the special ones.
    """
    pairs = _second_texts(rows)
    special = tokenizer.num_special_tokens_to_add(pair=pairs is not None)
    least = special + (1 if pairs is None else 2)
    if max_length is not None and max_length < least:
        raise ValueError(
            f"max_length: {max_length} tokens, expected at least {least}: "
            f"{special} are special tokens, and one per text is to be left"
        )
    tokens = tokenizer(list(rows["text"]), pairs, truncation=True, max_length=max_length)
    return Dataset.from_dict({**tokens, "labels": list(rows["label"])})


def _second_texts(rows: Dataset) -> list[str] | None:
    """Second texts; None for a task of single texts."""
    return None if rows["text_pair"][0] is None else list(rows["text_pair"])


def fixed_batches(rows: Dataset, pad: Callable, *, batch_size: int) -> list[dict[str, Tensor]]:
    """Tokenized rows as batches, in their order, padded by `pad`, a collator of transformers.

    Examples
    --------
    >>> from datasets import Dataset
    >>> from transformers import default_data_collator
    >>> rows = Dataset.from_dict({"input_ids": [[1, 2], [3, 4], [5, 6]]})
    >>> batches = fixed_batches(rows, default_data_collator, batch_size=2)
    >>> [len(batch["input_ids"]) for batch in batches]
    [2, 1]
    """
    examples = rows.to_list()
    return [dict(pad(examples[i : i + batch_size])) for i in range(0, len(examples), batch_size)]


def _quiet_arguments(folder: str, **options: object) -> TrainingArguments:
    """Arguments of a training that logs every step, keeps nothing on disk and prints nothing.

    Parameters
    ----------
    folder : str
        A temporary one: the Trainer wants to have one.
    **options
        Of ``transformers.TrainingArguments``.

    Raises
    ------
    ValueError
        This process sees several GPUs: the Trainer would give a batch to *each* of them, so that a
        step took several times the rows.

    Notes
    -----
    Where the device that the Trainer takes has no float64 (Apple's MPS), in which terms and scores
    are summed, the processor trains.
    """
    make = partial(
        TrainingArguments,
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
    arguments = make()
    if not _has_float64(arguments.device):
        arguments = make(use_cpu=True)
    if arguments.n_gpu > 1:
        raise ValueError(
            f"CUDA_VISIBLE_DEVICES: one GPU per process, found {arguments.n_gpu}; set it to 0, "
            "or let several processes share a run (docs/running.md)"
        )
    return arguments


def _has_float64(device: torch.device) -> bool:
    try:
        torch.zeros(1, dtype=torch.float64, device=device)
    except (TypeError, RuntimeError):
        return False
    return True


class _QuietTrainer(Trainer):
    """transformers' Trainer for `_quiet_arguments`: it prints nothing, and counts no operations.

    To count them it walks over all parameters at every step, a tenth of a small model's training.
    """

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.remove_callback(PrinterCallback)  # it prints every log line

    def floating_point_ops(self, inputs: dict) -> int:
        """None are counted."""
        return 0


class EveryStep(TrainerCallback):
    """Call `on_step`, without arguments, after every step: progress bars.

    Examples
    --------
    >>> steps = []
    >>> EveryStep(lambda: steps.append(1)).on_step_end(None, None, None)
    >>> steps
    [1]
    """

    def __init__(self, on_step: Callable[[], object]) -> None:
        self._on_step = on_step

    def on_step_end(self, args, state, control, **kwargs) -> None:
        """A step is finished."""
        self._on_step()


@contextmanager
def _isolated_training(threads: int) -> Iterator[str]:
    """A temporary folder, and a number of threads for torch, until the training is over.

    Python, NumPy and torch draw afterwards as before: the Trainer seeds their generators.
    """
    found, of_python, of_numpy = torch.get_num_threads(), random.getstate(), np.random.get_state()
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    try:
        torch.set_num_threads(threads)
        with torch.random.fork_rng(devices), tempfile.TemporaryDirectory(prefix="shrink-") as path:
            yield path
    finally:
        torch.set_num_threads(found)
        random.setstate(of_python)
        np.random.set_state(of_numpy)


@dataclass(frozen=True)
class _FinetuneResult:
    """What a run leaves behind."""

    # One row per training step; a class absent from a batch leaves its columns empty.
    history: pd.DataFrame
    # Of the validation rows before training and after every epoch: step, epoch, loss, the task's
    # metrics, and the anisotropy scores ``raw_k`` and ``centred_k`` of their embeddings; of classes
    # also ``within_1`` and ``between`` (`_class_scores`) and their mean ``silhouette``.
    evaluations: list[dict]
    # What the regularizer would see of the validation rows without dropout, "before" and "after"
    # (n, d) and "between", after each epoch but the last, (epochs - 1, n, d); their "labels" (n,);
    # "outputs" of the classifier (evaluations, n, labels) and its "predictions" (evaluations, n).
    embeddings: dict[str, Tensor]
    model: PreTrainedModel  # the fine-tuned encoder with its head, in evaluation mode
    tokenizer: PreTrainedTokenizerBase


def finetune(
    config: RunConfig,
    *,
    on_row: Callable[[dict], None] | None = None,
    recorder: StepRecorder | None = None,
) -> _FinetuneResult:
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
    >>> from shrink_utils.study import RunConfig
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
    return _FinetuneResult(
        history=pd.DataFrame(recorder.rows),
        evaluations=_evaluations(trainer.state.log_history, evaluated, classes),
        embeddings={
            "before": evaluated[0].embeddings,
            "after": evaluated[-1].embeddings,
            "between": torch.stack([seen.embeddings for seen in evaluated])[1:-1].clone(),
            "labels": labels,
            "outputs": torch.stack([seen.outputs for seen in evaluated]),
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

    They are ``accuracy``, ``f1`` (of class 1), ``macro_f1``, ``matthews`` and ``spearman``.
    """
    functions = {
        "accuracy": accuracy_score,
        "f1": partial(f1_score, zero_division=0),
        "macro_f1": partial(f1_score, average="macro", zero_division=0),
        "matthews": matthews_corrcoef,
        # One prediction for all rows has no rank correlation: 0, as Matthews' is.
        "spearman": lambda y, p: spearmanr(y, p).statistic if np.ptp(p) else 0.0,
    }

    def compute(prediction: EvalPrediction) -> dict[str, float]:
        given = prediction.predictions  # of several outputs the first is judged
        outputs = torch.as_tensor(given[0] if isinstance(given, tuple) else given)
        p, y = _predicted(outputs).numpy(), np.asarray(prediction.label_ids)
        return {name: float(functions[name](y, p)) for name in spec.metrics}

    return compute
