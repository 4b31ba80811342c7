"""Models that generalize and models that follow a heuristic: where in their layers do they part?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import NamedTuple

import pandas as pd
import torch
from datasets import Dataset
from torch import Tensor
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from shrink_utils.geometry import cka
from shrink_utils.models import (
    Reading,
    Trunk,
    read_layers,
    stitched_logits,
)
from shrink_utils.study.profiles import SEED_STEP, Profile
from shrink_utils.study.results import measured, progress_bar
from shrink_utils.study.statistics import paired_interval, pseudo_values
from shrink_utils.text import heuristic_pairs, training_pairs
from shrink_utils.training import EntailmentTraining, common_start, entailment_model, pair_batches

GROUPS = ("heuristic", "generalizing")
RELATIONS = (*GROUPS, "between")
CROSSINGS = ("heuristic below generalizing", "generalizing below heuristic")
START_ROWS = 4  # times those of a model: the pairs of the common start have no label
COMPARED = ("dev", "overlap")  # pairs on which layers are compared and models stitched
TEXTS = {"heuristic": "", "label": "", "template": ""}
ONE, OTHER = {"group": "", "number": -1}, {"other": "", "other_number": -1}
# The columns of the table, and what they hold where they say nothing.
COLUMNS = {"quantity": "", **ONE, **OTHER, "data": "", **TEXTS, "layer": -1, "value": float("nan")}


class Member(NamedTuple):
    """One of the models: its group, and its number within the group."""

    group: str
    number: int


def pairs_by_name(profile: Profile) -> dict[str, Dataset]:
    """What the models are judged on: "dev", "overlap" and "new words".

    "dev" is of the kind that the heuristic group was trained on, the others are `heuristic_pairs`.
    """
    n, seed = profile.heuristics.test_rows, profile.base_seed
    return {
        "dev": training_pairs(n, counter_examples=0, split="test", seed=seed),
        "overlap": heuristic_pairs(n, seed=seed),
        "new words": heuristic_pairs(n, lexicon="new", seed=seed),
    }


@measured("generalization")
def measure_generalization(profile: Profile) -> pd.DataFrame:
    """Accuracies of both groups of models and, by layer, how alike any two models are.

    The groups are trained here: models that read pairs in which overlap always means
    entailment ("heuristic"), and models that read counter-examples as well ("generalizing"). Within
    a group they differ in the seed of head and data order alone.

    Returns
    -------
    DataFrame
        One value per row, with the columns of `COLUMNS`, which are empty where they say nothing:

        - quantity "accuracy" of model ``number`` of ``group`` on ``data`` ("dev", "overlap", "new
          words": see `pairs_by_name`), by ``heuristic``, ``label`` and ``template``;
        - "cka": debiased CKA of ``layer`` with that of model ``other_number`` of ``other``, on
          means over the tokens of each pair in ``data``; every two models once;
        - "penalty": the model below ``layer`` and the other above, stitched by identity: loss on
          ``data`` (nats per pair) less that of the other by itself;
        - "stitched": that stitched model's accuracy on the pairs of ``data`` not entailed.
    """
    torch.set_num_threads(profile.threads)
    models, tokenizer = _trained(profile)
    pairs = pairs_by_name(profile)
    batches = {name: pair_batches(rows, tokenizer) for name, rows in pairs.items()}
    rows, means, alone = [], {}, {}
    with progress_bar(total=len(models) ** 2, unit="pair", description="stitching") as bar:
        for member, model in models.items():
            readings = {name: read_layers(model, batches[name]) for name in pairs}
            means[member] = {name: _token_means(readings[name]) for name in COMPARED}
            for name, reading in readings.items():
                alone[member, name], right = _judged(reading, model, reading.depth)
                rows += _accuracies(right, pairs[name], name, member)
            bar.update()
            for other, back in models.items():
                if other != member:
                    rows += _stitches(readings, back, _keys(member, other))
                    bar.update()
    for row in rows:
        if row["quantity"] == "penalty":
            row["value"] -= alone[Member(row["other"], row["other_number"]), row["data"]]
    rows += _ckas(means)
    return pd.DataFrame([{**COLUMNS, **row} for row in rows], columns=list(COLUMNS))


def _trained(profile: Profile) -> tuple[dict[Member, PreTrainedModel], PreTrainedTokenizerBase]:
    """The models of both groups, and their tokenizer."""
    sizes, shift = profile.heuristics, SEED_STEP * profile.base_seed
    rows, rate, threads = sizes.train_rows, sizes.learning_rate, profile.threads
    training = EntailmentTraining(rows=rows, steps=sizes.steps, learning_rate=rate, threads=threads)
    first = replace(
        training, rows=START_ROWS * rows, steps=sizes.start_steps, learning_rate=2 * rate
    )
    shape = {name: getattr(profile.pretraining, name) for name in ("width", "depth", "heads")}
    trunk = Trunk(**shape, dropout=0.0)  # models this small, trained this briefly, do not overfit
    members = [Member(group, n) for n in range(sizes.models) for group in GROUPS]
    total, models = sizes.start_steps + len(members) * sizes.steps, {}
    with progress_bar(total=total, unit="step", description="classifiers of pairs") as bar:
        start, tokenizer = common_start(trunk, first, seed=shift, on_step=bar.update)
        for place, member in enumerate(members):
            models[member] = entailment_model(
                start,
                tokenizer,
                training,
                counter_examples=sizes.counter_examples if member.group == GROUPS[1] else 0.0,
                seed=shift + place,
                data_seed=shift,
                on_step=bar.update,
            )
    return models, tokenizer


def _judged(front: Reading, model: PreTrainedModel, layer: int) -> tuple[float, Tensor]:
    """Loss of `model` on what the front's layer gives it, and which of its answers are right."""
    back = replace(front, model=model)  # of a back, a stitch looks at the model alone
    logits = stitched_logits(front, back, front_layer=layer, back_layer=layer).double()
    labels = _labels(front).to(logits.device)
    return float(cross_entropy(logits, labels)), (logits.argmax(dim=1) == labels).cpu()


def _labels(reading: Reading) -> Tensor:
    return torch.cat([batch["labels"] for batch in reading.batches])


def _accuracies(right: Tensor, pairs: Dataset, data: str, member: Member) -> list[dict]:
    """Share of right answers, by template and label where pairs have a template."""
    table = pairs.to_pandas()[[*TEXTS]].assign(value=right.numpy())
    table["label"] = table.label.map(pairs.features["label"].int2str)
    if data == "dev":
        table[[*TEXTS]] = ""
    cells = table.groupby([*TEXTS], sort=False).value.mean()
    about = {"quantity": "accuracy", "data": data, **member._asdict()}
    return [{**about, **row} for row in cells.reset_index().to_dict("records")]


def _keys(member: Member, other: Member) -> dict:
    return {**member._asdict(), "other": other.group, "other_number": other.number}


def _stitches(readings: dict[str, Reading], back: PreTrainedModel, keys: dict) -> list[dict]:
    """Loss and accuracy of one model below every layer and another above it."""
    rows = []
    for data in COMPARED:
        front = readings[data]
        not_entailed = _labels(front) == 1
        for layer in range(front.depth + 1):
            loss, right = _judged(front, back, layer)
            cell = {**keys, "data": data, "layer": layer}
            accuracy = float(right[not_entailed].float().mean())
            rows.append({**cell, "quantity": "penalty", "value": loss})
            rows.append({**cell, "quantity": "stitched", "value": accuracy})
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
    rows = []
    for member, other in combinations(means, 2):
        for data in COMPARED:
            cell = {**_keys(member, other), "quantity": "cka", "data": data}
            layers = zip(means[member][data], means[other][data], strict=True)
            for layer, (x, y) in enumerate(layers):
                rows.append({**cell, "layer": layer, "value": cka(x, y, debiased=True)})
    return rows


def pairs_of(table: pd.DataFrame, quantity: str, data: str) -> pd.DataFrame:
    """Rows of `measure_generalization` between models, with their ``relation`` and ``crossing``.

    ``relation`` is the group that both models are of, or "between"; ``crossing`` says which group
    is below where there are two, and is empty where there is one.
    """
    rows = table[(table.quantity == quantity) & (table.data == data)].copy()
    two = rows.group != rows.other
    rows["relation"] = rows.group.where(~two, "between")
    rows["crossing"] = (rows.group + " below " + rows.other).where(two, "")
    return rows


def numbers_of(rows: pd.DataFrame) -> list[int]:
    """The numbers of the models; each names one model per group."""
    return sorted(set(rows.number) | set(rows.other_number) - {-1})


def relation_intervals(rows: pd.DataFrame, *, by: str = "relation") -> pd.DataFrame:
    """Mean over pairs for each layer and relation, with a jackknife's interval over models.

    Of `pairs_of`, by "relation" or by "crossing": columns `by`, ``layer``, ``estimate``, ``low``,
    ``high``, ``n`` (models per group).
    """
    found = []
    for (name, layer), cell in rows[rows[by] != ""].groupby([by, "layer"], sort=False):
        values = pseudo_values(partial(_mean, cell), numbers_of(rows))
        found.append({by: name, "layer": layer, **paired_interval(values)._asdict()})
    return pd.DataFrame(found)


def gap(rows: pd.DataFrame, numbers: Collection[int], layer: int) -> float:
    """Mean of pairs within the groups less that of pairs between them, at one layer.

    `rows` are of `pairs_of`; only models of these `numbers` count.
    """
    cell = rows[rows.layer == layer]
    within, other = (_mean(cell[cell.relation == group], numbers) for group in GROUPS)
    return (within + other) / 2 - _mean(cell[cell.relation == "between"], numbers)


def crossed(rows: pd.DataFrame, numbers: Collection[int], layer: int) -> float:
    """Mean with a generalizing model below less that with one above; arguments as of `gap`."""
    cell = rows[rows.layer == layer]
    above, below = (_mean(cell[cell.crossing == crossing], numbers) for crossing in CROSSINGS)
    return below - above


def _mean(rows: pd.DataFrame, numbers: Collection[int]) -> float:
    return float(rows[rows.number.isin(numbers) & rows.other_number.isin(numbers)].value.mean())
