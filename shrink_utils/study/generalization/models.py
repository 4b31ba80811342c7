"""Models that generalize and models that follow a heuristic: where in their layers do they part?"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import pandas as pd
import torch
from datasets import Dataset
from torch import Tensor
from torch.nn.functional import nll_loss
from transformers import PreTrainedModel

from shrink_utils.geometry import cka
from shrink_utils.models import Reading, entailment_output, read_layers, stitched_logits
from shrink_utils.study.generalization.pair_groups import Member, load_groups, pairs_by_name
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.measured import measured
from shrink_utils.study.runs.progress import progress_bar
from shrink_utils.training import pair_batches

__all__ = ["COMPARED", "measure_generalization"]

COMPARED = ("dev", "overlap")  # pairs on which layers are compared and models stitched
COLUMNS = {
    "quantity": "",
    "group": "",
    "number": -1,
    "other": "",
    "other_number": -1,
    "data": "",
    "heuristic": "",
    "label": "",
    "template": "",
    "layer": -1,
    "value": float("nan"),
}


@measured("generalization")
def measure_generalization(profile: Profile) -> pd.DataFrame:
    """Accuracies of both groups of models and, by layer, how alike any two models are.

    The groups are those of `pair_groups.load_groups`: models that read pairs in which overlap
    always means entailment ("heuristic"), and models that read counter-examples as well
    ("generalizing"). Within a group they differ in the seed of head and data order alone.

    Returns
    -------
    DataFrame
        One value a row, with the columns of `COLUMNS`, which are empty where they say nothing:

        - quantity "accuracy" of model ``number`` of ``group`` on ``data`` ("dev", "overlap", "new
          words": see `pairs_by_name`), by ``heuristic``, ``label`` and ``template``;
        - "cka": debiased CKA of ``layer`` with that of model ``other_number`` of ``other``, on
          means over the tokens of each pair in ``data``; every two models once;
        - "penalty": the model below ``layer`` and the other above, stitched by identity: loss on
          ``data`` (nats a pair) less that of the other by itself;
        - "stitched": that stitched model's accuracy on the pairs of ``data`` not entailed.

    Notes
    -----
    Models with three outputs answer entailment where that output is the largest (McCoy et al.);
    their loss is that of the probabilities of entailment and of the other two together.
    """
    torch.set_num_threads(profile.threads)
    loaders, tokenizer = load_groups(profile)
    pairs = pairs_by_name(profile)
    batches = {name: pair_batches(rows, tokenizer) for name, rows in pairs.items()}
    rows, means, alone = [], {}, {}
    with progress_bar(total=len(loaders) ** 2, unit="pair", description="stitching") as bar:
        for member, load in loaders.items():
            model = load()
            readings = {name: read_layers(model, batches[name]) for name in pairs}
            means[member] = {name: _token_means(readings[name]) for name in COMPARED}
            for name, reading in readings.items():
                alone[member, name], right = _judged(reading, model, reading.depth)
                rows += _accuracies(right, pairs[name], name, member)
            bar.update()
            for other, load_other in loaders.items():
                if other != member:
                    rows += _stitches(readings, load_other(), member, other)
                    bar.update()
    for row in rows:
        if row["quantity"] == "penalty":
            row["value"] -= alone[Member(row["other"], row["other_number"]), row["data"]]
    rows += _ckas(means)
    return pd.DataFrame([{**COLUMNS, **row} for row in rows], columns=list(COLUMNS))


def _judged(front: Reading, model: PreTrainedModel, layer: int) -> tuple[float, Tensor]:
    """Loss of `model` on what the front's layer gives it, and which of its answers are right."""
    back = replace(front, model=model)  # of a back, a stitch looks at the model alone
    logits = stitched_logits(front, back, front_layer=layer, back_layer=layer).float()
    labels = torch.cat([batch["labels"] for batch in front.batches]).to(logits.device)
    entailment = entailment_output(model)
    log_p = logits.log_softmax(dim=1)  # (n, classes)
    others = [output for output in range(log_p.shape[1]) if output != entailment]
    both = torch.stack([log_p[:, entailment], log_p[:, others].logsumexp(dim=1)], dim=1)
    answers = (logits.argmax(dim=1) != entailment).long()
    return float(nll_loss(both, labels)), (answers == labels).cpu()


def _accuracies(right: Tensor, pairs: Dataset, data: str, member: Member) -> list[dict]:
    """Share of right answers, by template and label where pairs have a template."""
    table = pairs.to_pandas()[["heuristic", "label", "template"]].assign(value=right.numpy())
    table["label"] = table.label.map(pairs.features["label"].int2str)
    if data == "dev":
        table[["heuristic", "label", "template"]] = ""
    cells = table.groupby(["heuristic", "label", "template"], sort=False).value.mean()
    about = {"quantity": "accuracy", "data": data, **member._asdict()}
    return [{**about, **row} for row in cells.reset_index().to_dict("records")]


def _stitches(
    readings: dict[str, Reading], back: PreTrainedModel, member: Member, other: Member
) -> list[dict]:
    """Loss and accuracy of one model below every layer and another above it."""
    keys = {**member._asdict(), "other": other.group, "other_number": other.number}
    rows = []
    for data in COMPARED:
        front = readings[data]
        not_entailed = torch.cat([batch["labels"] for batch in front.batches]) == 1
        for layer in range(front.depth + 1):
            loss, right = _judged(front, back, layer)
            cell = {**keys, "data": data, "layer": layer}
            accuracy = float(right[not_entailed].float().mean())
            rows += [
                {**cell, "quantity": "penalty", "value": loss},
                {**cell, "quantity": "stitched", "value": accuracy},
            ]
    return rows


def _token_means(reading: Reading) -> list[Tensor]:
    """Mean over the tokens of each pair, layer by layer, (n, d) each."""
    means = []
    for layer in range(reading.depth + 1):
        parts = []
        for states, batch in zip(reading.states, reading.batches, strict=True):
            mask = batch["attention_mask"].to(states[layer].device).unsqueeze(-1)  # (b, t, 1)
            parts.append(((states[layer] * mask).sum(dim=1) / mask.sum(dim=1)).cpu())
        means.append(torch.cat(parts))
    return means


def _ckas(means: dict[Member, dict[str, list[Tensor]]]) -> list[dict]:
    """Of equal layers of every two models."""
    return [
        {
            **member._asdict(),
            "other": other.group,
            "other_number": other.number,
            "quantity": "cka",
            "data": data,
            "layer": layer,
            "value": cka(x, y, debiased=True),
        }
        for member, other in combinations(means, 2)
        for data in COMPARED
        for layer, (x, y) in enumerate(zip(means[member][data], means[other][data], strict=True))
    ]
