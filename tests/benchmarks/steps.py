"""A training step in float32 and in bfloat16, side by side.

    python tests/benchmarks/steps.py [--lengths 20 84]

The same batch and model take both in turn, so that whatever else the machine does weighs on both.
A step is a whole one: forward and backward pass, regularizer, record, clipping and optimizer.
"""

import argparse
import tempfile
import time
from dataclasses import replace

import torch
from torch import Tensor

from shrink_utils.models import load_classifier
from shrink_utils.study.profiles import load_profile
from shrink_utils.training import RunConfig, native_precision
from shrink_utils.training.arguments import torch_threads
from shrink_utils.training.config import PRECISIONS
from shrink_utils.training.finetune import fine_tuning_arguments
from shrink_utils.training.regularizers import make_regularizer
from shrink_utils.training.trainer import RegularizedTrainer, StepRecorder

LEAST = {20: 2.3, 84: 2.2}  # times as fast in bfloat16, where the device has it


def new_trainer(config: RunConfig, folder: str) -> RegularizedTrainer:
    """A Trainer as `finetune` makes it, with an optimizer and without rows."""
    model, _ = load_classifier(config.model, n_labels=2, seed=config.seed)
    trainer = RegularizedTrainer(
        model=model,
        args=fine_tuning_arguments(config, folder, num_train_epochs=1),
        regularizer=make_regularizer(config.arm, weight=config.weight),
        recorder=StepRecorder(),
        pooling=config.pooling,
        per_class=True,
    )
    trainer.create_optimizer()
    return trainer


def new_batch(trainer: RegularizedTrainer, rows: int, length: int) -> dict[str, Tensor]:
    """Random tokens (rows, length) of two classes."""
    tokens = torch.randint(trainer.model.config.vocab_size, (rows, length))
    labels = torch.arange(rows) % 2
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": labels}


def step(trainer: RegularizedTrainer, batch: dict[str, Tensor], precision: str) -> float:
    """Make one training step; the seconds that it takes."""
    trainer.precision = precision
    begun = time.perf_counter()
    trainer.training_step(trainer.model, batch)
    torch.nn.utils.clip_grad_norm_(trainer.model.parameters(), trainer.args.max_grad_norm)
    trainer.optimizer.step()
    trainer.optimizer.zero_grad()
    return time.perf_counter() - begun


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark and print its numbers."""
    parser = argparse.ArgumentParser(description="a training step in float32 and in bfloat16")
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LEAST), help="in tokens")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--profile", default="quick", help="whose first run with bars is timed")
    parser.add_argument("--threads", type=int, default=1, help="quick has 1")
    arguments = parser.parse_args(argv)

    runs = load_profile(arguments.profile).runs(precision="float32")
    config = replace(next(run for run in runs if run.arm != "none"), threads=arguments.threads)
    print(f"a training step of {config.model}: {config.batch_size} rows, arm {config.arm}")
    print(f"{config.threads} thread(s); the device has {native_precision()}")
    print(f"{'tokens':>8}{'float32':>12}{'bfloat16':>12}{'ratio':>8}")
    with torch_threads(config.threads), tempfile.TemporaryDirectory() as folder:
        trainer = new_trainer(config, folder)
        for length in arguments.lengths:
            batch = new_batch(trainer, config.batch_size, length)
            seconds = {precision: [] for precision in PRECISIONS}
            for _ in range(arguments.repeats + 1):  # the first one prepares
                for precision in PRECISIONS:
                    seconds[precision].append(step(trainer, batch, precision))
            exact, rounded = (min(seconds[precision][1:]) for precision in PRECISIONS)
            bar = f"  at least {LEAST[length]}" if length in LEAST else ""
            print(f"{length:8}{exact:10.3f} s{rounded:10.3f} s{exact / rounded:8.2f}{bar}")


if __name__ == "__main__":
    main()
