"""Train a small transformer from nothing: masked LM, causal LM or translation."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor
from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from shrink_utils.models import evaluating, scratch_model
from shrink_utils.text import load_pairs
from shrink_utils.training.arguments import quiet_arguments
from shrink_utils.training.dynamics import FixedSetLoss
from shrink_utils.training.random_state import random_state_kept
from shrink_utils.training.scratch_config import ScratchConfig
from shrink_utils.training.scratch_data import (
    collator,
    held_out_batches,
    scratch_tokenizer,
    training_examples,
)
from shrink_utils.training.threads import torch_threads

__all__ = ["ScratchResult", "held_out_loss", "new_model", "pretrain"]

BETAS = (0.9, 0.98)  # Adam's, as V trains
JUDGES = 512  # held-out sentences that the loss before and after is taken on, at most


@dataclass(frozen=True)
class ScratchResult:
    """What a pretraining leaves behind.

    Attributes
    ----------
    model : PreTrainedModel
        In evaluation mode, on the CPU.
    tokenizer : PreTrainedTokenizerBase
    history : DataFrame
        One row a step: step, loss (of the batch, nats a token), learning_rate.
    evaluations : list of dict
        ``step`` and ``loss`` (nats a token, of at most 512 held-out sentences), before and after.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    history: pd.DataFrame
    evaluations: list[dict]


def pretrain(config: ScratchConfig, *, callbacks: Sequence[TrainerCallback] = ()) -> ScratchResult:
    """Train a model as `config` says.

    Parameters
    ----------
    config : ScratchConfig
        The whole description. Models whose `seed` alone differs read the same batches, with the
        same masks, in the same order.
    callbacks : sequence of TrainerCallback
        Told of every step; they may look at the model and must not change it.

    Returns
    -------
    ScratchResult

    Notes
    -----
    Adam without weight decay, betas (.9, .98), linear warm-up and then the inverse square root of
    the step, gradients clipped at norm 1.

    References
    ----------
    Vázquez et al. 2022, *A Closer Look at Parameter Contributions When Training Neural Language
    and Translation Models* (COLING): one trunk under three objectives.
    """
    tokenizer = scratch_tokenizer(config)
    available = len(load_pairs(config.source, n=config.sentences)["held_out"])
    batches = held_out_batches(config, tokenizer, n=min(JUDGES, available))
    with (
        torch_threads(config.threads),
        random_state_kept(),  # the Trainer seeds the global generators
        tempfile.TemporaryDirectory(prefix="shrink-scratch-") as scratch,
    ):
        model = new_model(config, tokenizer)
        trainer = Trainer(
            model=model,
            args=_arguments(config, scratch),
            train_dataset=training_examples(config, tokenizer),
            data_collator=collator(config, tokenizer),
            callbacks=list(callbacks),
        )
        trainer.remove_callback(PrinterCallback)  # it prints every log line
        before = held_out_loss(model, batches)
        trainer.train()
        after = held_out_loss(model, batches)
    rows = [entry for entry in trainer.state.log_history if "loss" in entry]
    return ScratchResult(
        model=model.eval().cpu(),
        tokenizer=tokenizer,
        history=pd.DataFrame(rows)[["step", "loss", "learning_rate"]],
        evaluations=[{"step": 0, "loss": before}, {"step": config.steps, "loss": after}],
    )


def new_model(config: ScratchConfig, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    """The model that `pretrain` begins with: the weights of `config.seed`, untrained."""
    return scratch_model(
        config.trunk,
        config.objective,
        vocab_size=len(tokenizer),
        max_length=config.max_length,
        pad_id=tokenizer.pad_token_id,
        start_id=tokenizer.cls_token_id,
        end_id=tokenizer.sep_token_id,
        seed=config.seed,
    )


@torch.inference_mode()
def held_out_loss(model: PreTrainedModel, batches: Iterable[dict[str, Tensor]]) -> float:
    """Mean loss of a model over all predicted tokens of the batches, without dropout.

    Parameters
    ----------
    model : PreTrainedModel
        Of any objective; every module is left in the mode it was in.
    batches : iterable of dict
        As `held_out_batches` gives them.

    Returns
    -------
    float
        Nats a token. A batch's mean counts by the tokens that it predicts.
    """
    with evaluating(model):
        return sum(part.item() for part in FixedSetLoss(batches)(model))


def _arguments(config: ScratchConfig, scratch: str) -> TrainingArguments:
    return quiet_arguments(
        scratch,
        max_steps=config.steps,
        per_device_train_batch_size=config.batch_size,
        learning_rate=config.learning_rate,
        adam_beta1=BETAS[0],
        adam_beta2=BETAS[1],
        weight_decay=0.0,
        warmup_steps=config.warmup,  # a value below 1 is a fraction of the steps
        lr_scheduler_type="inverse_sqrt",
        seed=config.seed,
        data_seed=config.data_seed,
    )
