"""Trainings of profile objectives: small models from nothing, some with their loss change followed.

They are trained in float32, unlike the study's: records of finished runs are kept, and nobody has
to make the same model again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import text
import torch
from torch import Tensor
from transformers import DataCollatorForLanguageModeling, DataCollatorForSeq2Seq

from shrink_utils.models import Trunk, scratch_model
from shrink_utils.study.loss_changes import record_table
from shrink_utils.text import train_tokenizer
from shrink_utils.training import held_out_loss
from shrink_utils.training.dynamics import AllocationRecorder, FixedSetLoss, LossChanges

VOCABULARY, MAX_LENGTH, BATCH = 4000, 48, 16
BETAS, WARMUP, CLIP = (0.9, 0.98), 0.1, 1.0
MASKED = 0.15
FIXED = 64  # training texts on which the loss change is followed
JUDGED = 256  # held-out texts that losses are taken on
POOL = 16  # batches whose texts are sorted by length, so that little is padding
RULES = ("euler", "trapezoid")
MIXES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)  # shares of what a copy takes from the source
TIED = {"half": "testament", "german": "gramps", "finnish": "gramps"}  # texts of one tokenizer


@dataclass(frozen=True, kw_only=True)
class Training:
    """One model, described completely."""

    objective: str
    source: str
    seed: int  # of weights and dropout
    data_seed: int  # of the order of the texts and of the masks
    steps: int
    width: int = 64
    depth: int = 4
    heads: int = 4
    activation: str = "gelu"
    dropout: float = 0.0
    rate: float = 2e-3
    vocabulary: int = VOCABULARY
    windows: tuple[tuple[int, int], ...] = ()  # first and last step that is followed
    fixed: int = FIXED

    def trunk(self) -> Trunk:
        """Its sizes."""
        names = ("width", "depth", "heads", "activation", "dropout")
        return Trunk(**{name: getattr(self, name) for name in names})


@cache
def tokenizer_of(source: str, vocabulary: int):
    """One tokenizer for the Testament (both languages), one for the Bible, one for Gramps."""
    if source == "gramps":
        both = [*text.texts("german").train, *text.texts("finnish").train]
        read = [*text.texts("gramps").train, *both]
    else:
        read = text.texts(source).train
    texts = [part for pair in read for part in pair if part]
    tokenizer = train_tokenizer(texts, vocab_size=vocabulary)
    tokenizer.model_max_length = MAX_LENGTH
    return tokenizer


def tokenizer_for(training: Training):
    """The tokenizer of a training."""
    return tokenizer_of(TIED.get(training.source, training.source), training.vocabulary)


def new_model(training: Training):
    """The model that a training begins with."""
    sizes = {"vocab_size": len(tokenizer_for(training)), "max_length": MAX_LENGTH}
    model = scratch_model(training.trunk(), training.objective, seed=training.seed, **sizes)
    return model.float()


def encoded(training: Training, side: str, n: int | None = None) -> list[dict[str, list[int]]]:
    """Tokens of the texts of ``train`` or ``held_out``, with labels but for a masked LM's."""
    tokenizer, pairs = tokenizer_for(training), getattr(text.texts(training.source), side)[:n]
    options = {"truncation": True, "max_length": MAX_LENGTH}
    ids = tokenizer([first for first, _ in pairs], **options)["input_ids"]
    if training.objective == "mlm":
        return [{"input_ids": row} for row in ids]
    if training.objective == "clm":
        return [{"input_ids": row, "labels": row} for row in ids]
    targets = tokenizer([second for _, second in pairs], **options)["input_ids"]
    return [{"input_ids": a, "labels": b[1:]} for a, b in zip(ids, targets, strict=True)]


def collator(training: Training, seed: int):
    """Pads a batch; of a masked LM it also masks, by `seed`."""
    tokenizer = tokenizer_for(training)
    if training.objective == "mlm":
        return DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKED, seed=seed)
    return DataCollatorForSeq2Seq(tokenizer)


def batches(training: Training, rows: Sequence[dict]) -> Iterator[dict[str, Tensor]]:
    """Training batches without end: texts in a new order each time round, lengths together."""
    rng, pad = np.random.default_rng(training.data_seed), collator(training, training.data_seed)
    size = min(BATCH, len(rows))
    while True:
        order = rng.permutation(len(rows))
        for start in range(0, len(order), POOL * size):
            pool = sorted(
                order[start : start + POOL * size], key=lambda i: len(rows[i]["input_ids"])
            )
            cuts = [pool[i : i + size] for i in range(0, len(pool) - size + 1, size)]
            for i in rng.permutation(len(cuts)):
                yield dict(pad([rows[j] for j in cuts[i]]))


def fixed_batches(training: Training, rows: Sequence[dict]) -> list[dict[str, Tensor]]:
    """Padded batches, with masks that are the same for every seed."""
    pad = collator(training, 0)
    ordered = sorted(rows, key=lambda row: len(row["input_ids"]))
    parts = [ordered[i : i + BATCH] for i in range(0, len(ordered), BATCH)]
    return [dict(pad(part)) for part in parts]


def spread(rows: Sequence, n: int) -> list:
    """At most n rows, evenly over all of them."""
    n = min(n, len(rows))
    return [rows[i * len(rows) // n] for i in range(n)]


@dataclass(frozen=True)
class Trained:
    """A model and what was noted while it was trained."""

    model: torch.nn.Module
    losses: pd.DataFrame  # held out: model, untrained model, unigram and, for translation, copy
    followed: list[tuple[int, LossChanges]]  # by first step


def train(training: Training) -> Trained:
    """Adam, linear warm-up over a tenth of the steps, then the inverse root of the step."""
    model, rows = new_model(training), encoded(training, "train")
    judged = fixed_batches(training, encoded(training, "held_out", JUDGED))
    losses = {"untrained": held_out_loss(model, judged)}
    recorder = AllocationRecorder(
        FixedSetLoss(fixed_batches(training, spread(rows, training.fixed))),
        rules=RULES,
    )
    warm = max(1, round(WARMUP * training.steps))
    optimizer = torch.optim.Adam(model.parameters(), lr=training.rate, betas=BETAS)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min((done + 1) / warm, math.sqrt(warm / (done + 1)))
    )
    firsts = {first: last for first, last in training.windows}
    followed, begun, last = [], 0, 0
    torch.manual_seed(training.seed)  # of dropout
    model.train()
    for step, batch in zip(range(1, training.steps + 1), batches(training, rows), strict=False):
        model(**batch).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        if step in firsts:
            recorder.begin(model)
            begun, last = step, firsts[step]
        if begun <= step <= last:
            recorder.on_pre_optimizer_step()
        optimizer.step()
        if begun <= step <= last:
            recorder.on_optimizer_step()
            if step == last:
                followed.append((begun, recorder.changes()))
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
    losses["trained"] = held_out_loss(model.eval(), judged)
    losses |= baselines(training, judged)
    table = pd.DataFrame({"what": list(losses), "loss": list(losses.values())})
    return Trained(model, table, followed)


def baselines(training: Training, judged: Sequence[dict[str, Tensor]]) -> dict[str, float]:
    """Held-out losses of word frequencies alone and, for translation, of copying the source.

    Frequencies are the training targets', with one added to each. A copy gives a share of its
    probability to the pieces of the source sentence; of some shares, the best on training rows.
    """
    rows = encoded(training, "train")
    targets = [row.get("labels", row["input_ids"]) for row in rows]
    skip = 0 if training.objective == "mt" else 1  # [CLS] is never predicted
    counted = Counter(piece for row in targets for piece in row[skip:])
    p = np.ones(len(tokenizer_for(training)))
    for piece, count in counted.items():
        p[piece] += count
    p /= p.sum()

    def loss(pairs: Sequence[tuple[list[int], list[int]]], mix: float) -> float:
        logs = []
        for source, wanted in pairs:
            copied, n = Counter(source), max(1, len(source))
            logs += [math.log(mix * copied[w] / n + (1 - mix) * p[w]) for w in wanted]
        return -float(np.mean(logs))

    pairs = []
    for batch in judged:
        labels = batch["labels"][:, 1:] if training.objective == "clm" else batch["labels"]
        for source, wanted in zip(batch["input_ids"], labels, strict=True):
            pairs.append((source[source > 4].tolist(), wanted[wanted >= 0].tolist()))
    found = {"unigram": loss(pairs, 0.0)}
    if training.objective == "mt":
        some = [([i for i in r["input_ids"] if i > 4], r["labels"]) for r in rows[:JUDGED]]
        found["copy"] = loss(pairs, min(MIXES, key=lambda mix: loss(some, mix)))
    return found


GROUPS = {"query": "queries and keys", "key": "queries and keys", "value": "values and out",
          "out": "values and out", "W1": "W1 and W2", "W2": "W1 and W2"}  # fmt: skip
PLACE = ["stack", "layer", "component"]


def tables_of(followed: Sequence[tuple[int, LossChanges]]) -> dict[str, pd.DataFrame]:
    """What is kept of the followed windows.

    ``places``: by window, rule, stack, layer and component, the sum of the contributions, and of
    what is counted the steps, how many hurt (a contribution above 0), the last that did and the
    largest. ``heads``: sums by attention head. ``moments``: the trapezoid's
    sums by step and group of components. ``closure``: by window and rule the sum of the parts, the
    change, and the means over steps of the error and of the size of a change.
    """
    names = ("places", "heads", "moments", "closure")
    found: dict[str, list[pd.DataFrame]] = {name: [] for name in names}
    for window, (first, changes) in enumerate(followed):
        record = record_table(changes)
        of = record[record.quantity == "allocation"]
        of = of.assign(step=of.step + first - 1)
        for rule, rows in of.groupby("rule"):
            keys = {"window": window, "first": first, "rule": rule}
            sums = rows.groupby(PLACE).value.sum().rename("value")
            signs = rows[rows.counted].groupby([*PLACE, "step"]).value.sum().reset_index()
            hurts = signs[signs.value > 0].groupby(PLACE)
            counted = pd.DataFrame(
                {
                    "steps": signs.groupby(PLACE).step.nunique(),
                    "hurts": hurts.size(),
                    "last": hurts.step.max(),
                    "largest": signs.groupby(PLACE).value.max(),
                }
            )
            found["places"].append(pd.concat([sums, counted], axis=1).reset_index().assign(**keys))
            of_heads = rows[rows["head"] >= 0].groupby(["stack", "layer", "head"]).value.sum()
            found["heads"].append(of_heads.reset_index().assign(**keys))
            name = rows.component.str.removeprefix("cross ").map(GROUPS)
            groups = name.fillna(rows.component).rename("group")
            if rule == "trapezoid":
                moments = rows.groupby(["step", groups]).value.sum().reset_index()
                found["moments"].append(moments.assign(**keys))
            of_steps = changes.losses[:, 1] - changes.losses[:, 0]
            missed = np.abs(changes.values[rule].sum(axis=1) - of_steps)
            closure = keys | {"parts": changes.values[rule].sum(), "change": of_steps.sum()}
            closure |= {"missed": missed.mean(), "moved": np.abs(of_steps).mean()}
            found["closure"].append(pd.DataFrame([closure]))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in found.items() if parts}
