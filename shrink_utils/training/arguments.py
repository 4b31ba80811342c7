"""What every training of the study shares: tokens and batches, a quiet Trainer, a closed room."""

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from datasets import Dataset
from torch import Tensor
from transformers import (
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
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
