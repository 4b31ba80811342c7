"""A long run survives: checkpoints at the ends of its epochs, read back only if they are whole."""

import json
import shutil
import time
import warnings
from pathlib import Path

import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch.nn import Module
from transformers import TrainerCallback

from shrink_utils.text import sha256_of
from shrink_utils.training.trainer import Evaluation, StepRecorder

CHECKPOINT_SECONDS = 120.0  # work that a run may lose; a run that is shorter writes no checkpoint
PREFIX = "checkpoint-"  # transformers' name of a checkpoint's folder, before its step
ROWS = "rows.json"  # of the recorder
EVALUATED = "evaluated.safetensors"  # the same: "<i>.embeddings" and "<i>.outputs"
REGULARIZER = "regularizer.safetensors"  # its buffers
MANIFEST = "manifest.json"  # sha256 of every other file; written last


class Checkpoints(TrainerCallback):
    """Keep the Trainer's checkpoint of an epoch's end, with what the Trainer does not know of.

    There is one checkpoint at a time, and a next one as soon as the last is `CHECKPOINT_SECONDS`
    old. The one before is removed when the next is whole, so that there always is one. It stands in
    `folder`, the Trainer's, and holds what the recorder has and the regularizer's buffers.
    """

    def __init__(self, folder: Path, recorder: StepRecorder, regularizer: Module | None) -> None:
        self._folder, self._recorder = folder, recorder
        self._regularizer = Module() if regularizer is None else regularizer
        self._last = time.monotonic()

    def restore(self) -> str | None:
        """Restore recorder and buffers from the newest whole checkpoint, and return its folder.

        The folder is for ``Trainer.train``; None if there is none. A checkpoint that is not whole
        is passed over, with a warning.
        """
        for checkpoint in sorted(self._folder.glob(f"{PREFIX}*"), key=_step, reverse=True):
            if fault := _fault(checkpoint):
                warnings.warn(f"{checkpoint} is not used: {fault}.", stacklevel=2)
                continue
            self._recorder.rows = json.loads((checkpoint / ROWS).read_text(encoding="utf-8"))
            self._recorder.evaluated = _read_evaluated(checkpoint / EVALUATED)
            self._regularizer.load_state_dict(load_file(checkpoint / REGULARIZER))
            return str(checkpoint)
        return None

    def on_epoch_end(self, args, state, control, **kwargs):
        """Ask for a checkpoint when the last is old enough and there is more to train."""
        due = [time.monotonic() - self._last >= CHECKPOINT_SECONDS]
        if dist.is_available() and dist.is_initialized():
            dist.broadcast_object_list(due, src=0)  # clocks differ, and all processes have to save
        if due[0] and state.global_step < state.max_steps:
            control.should_save = True
        return control

    def on_save(self, args, state, control, **kwargs) -> None:
        """Complete the Trainer's checkpoint, then remove older ones."""
        self._last = time.monotonic()
        if not args.should_save:  # one process writes
            return
        checkpoint = self._folder / f"{PREFIX}{state.global_step}"
        (checkpoint / ROWS).write_text(json.dumps(self._recorder.rows), encoding="utf-8")
        _write_evaluated(self._recorder.evaluated, checkpoint / EVALUATED)
        save_file(self._regularizer.state_dict(), checkpoint / REGULARIZER)
        # The other processes write ``rng_state_<rank>`` in their own time.
        digests = {
            path.name: sha256_of(path)
            for path in checkpoint.iterdir()
            if path.name != MANIFEST and not path.name.startswith("rng_state_")
        }
        (checkpoint / MANIFEST).write_text(json.dumps(digests), encoding="utf-8")
        for older in self._folder.glob(f"{PREFIX}*"):
            if older != checkpoint:
                shutil.rmtree(older, ignore_errors=True)


def _write_evaluated(evaluated: list[Evaluation], path: Path) -> None:
    parts = {f"{i}.{name}": x for i, e in enumerate(evaluated) for name, x in e._asdict().items()}
    save_file({name: x.contiguous() for name, x in parts.items()}, path)


def _read_evaluated(path: Path) -> list[Evaluation]:
    parts = load_file(path)
    n = len(parts) // len(Evaluation._fields)
    return [Evaluation(*(parts[f"{i}.{name}"] for name in Evaluation._fields)) for i in range(n)]


def _step(checkpoint: Path) -> int:
    number = checkpoint.name.removeprefix(PREFIX)
    return int(number) if number.isdigit() else -1


def _fault(checkpoint: Path) -> str:
    """What a checkpoint lacks; empty for one that is whole."""
    try:
        digests = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
        wrong = [name for name, digest in digests.items() if sha256_of(checkpoint / name) != digest]
    except (OSError, ValueError) as error:
        return f"it was not finished, or lost a file ({error})"
    return f"{', '.join(wrong)} changed on disk" if wrong else ""
