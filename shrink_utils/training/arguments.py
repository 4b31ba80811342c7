"""What every training here asks of transformers' Trainer and of torch, whatever it trains."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from transformers import TrainerCallback, TrainingArguments

from shrink_utils.training.config import SCHEDULES, RunConfig


def quiet_arguments(folder: str, **options: object) -> TrainingArguments:
    """Arguments of a training that logs every step, keeps nothing on disk and prints nothing.

    A process uses one GPU, however many it sees: the Trainer would give a batch to *each* of them,
    so that a step took several times the rows. Several GPUs take part as several processes.

    Parameters
    ----------
    folder : str
        A temporary one: the Trainer wants to have one.
    **options
        Of ``transformers.TrainingArguments``.
    """
    arguments = TrainingArguments(
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
    if arguments.n_gpu > 1:  # looked up once, and then kept
        arguments._n_gpu = 1
    return arguments


def used_precision(config: RunConfig) -> str:
    """``"bfloat16"`` if the run asks for it and the device has it, else ``"float32"``."""
    wanted = config.precision == "bfloat16"
    there = wanted and torch.cuda.is_available() and torch.cuda.is_bf16_supported()
    return "bfloat16" if there else "float32"


def fine_tuning_arguments(config: RunConfig, folder: str, **options: object) -> TrainingArguments:
    """`quiet_arguments` with the hyper-parameters of a run; `options` say how long, at least.

    Raises
    ------
    ValueError
        The rows of a step cannot be shared out equally between the processes of this run.
    """
    processes = int(os.environ.get("WORLD_SIZE", 1))  # as torchrun and accelerate launch say
    parts = config.accumulation * processes
    if config.batch_size % parts:
        raise ValueError(
            f"batch_size: {config.batch_size} rows do not make {config.accumulation} equal part(s) "
            f"for each of {processes} processes; start another number of processes"
        )
    return quiet_arguments(
        folder,
        # Without a GPU, accelerate would let the processes train each for itself.
        use_cpu=processes > 1 and not torch.cuda.is_available(),
        per_device_train_batch_size=config.batch_size // parts,
        gradient_accumulation_steps=config.accumulation,
        per_device_eval_batch_size=config.batch_size,
        bf16=used_precision(config) == "bfloat16",
        learning_rate=config.learning_rate,
        weight_decay=config.weight_decay,
        warmup_steps=config.warmup,  # a value below 1 is a fraction of the steps
        lr_scheduler_type=SCHEDULES[config.schedule],
        seed=config.seed,
        data_seed=config.seed,
        **options,
    )


class EveryStep(TrainerCallback):
    """Call `on_step`, without arguments, after every step: progress bars."""

    def __init__(self, on_step: Callable[[], object]) -> None:
        self._on_step = on_step

    def on_step_end(self, args, state, control, **kwargs) -> None:
        """A step is finished."""
        self._on_step()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Torch's threads within a ``with`` statement; afterwards as many as before."""
    found = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(found)


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Python, NumPy and torch draw afterwards as before: the Trainer seeds their generators."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
