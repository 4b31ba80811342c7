"""Small language models stitched together, and families of them compared by CKA."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pandas as pd
import torch
from transformers import PreTrainedModel

from shrink_utils.models import (
    MAPS,
    MapTraining,
    read_layers,
    stitch_grid,
)
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import measured, progress_bar
from shrink_utils.study.scratch import ScratchRun, language_model, train_or_load
from shrink_utils.training import (
    ScratchConfig,
    examples,
    held_out_batches,
    new_model,
)
from shrink_utils.training.scratch import collator

ACTIVATIONS = ("gelu", "solu")
# Equal seeds give equal initial weights: no SoLU model may begin where a GeLU model begins.
SOLU_SEEDS, UNTRAINED_SEEDS = 100, 200

Name = tuple[str, int]  # activation or "untrained", and which of the models
Pair = tuple[str, Name, Name]  # relation, front, back


def stitching_config(profile: Profile, activation: str, number: int) -> ScratchConfig:
    """The language model number `number` with this activation."""
    seed = profile.pretraining.seeds[number] + (SOLU_SEEDS if activation == "solu" else 0)
    return language_model(profile, seed=seed, activation=activation)


def stitching_runs(profile: Profile) -> dict[Name, ScratchRun]:
    """GeLU and SoLU models, one of each per seed of the profile, trained or loaded."""
    names = [(a, n) for n in range(len(profile.pretraining.seeds)) for a in ACTIVATIONS]
    runs = profile.folder / "runs"
    return {name: train_or_load(stitching_config(profile, *name), runs) for name in names}


@measured("stitched")
def measure_stitched(profile: Profile) -> pd.DataFrame:
    """Penalties of stitches between causal language models that differ in seed or activation.

    Returns
    -------
    DataFrame
        One row per stitch: ``relation``, ``front``, ``front_number``, ``back``, ``back_number``,
        ``kind``, ``front_layer``, ``back_layer``, ``loss`` (nats per token), ``penalty``. By
        ``relation``:

        - "same": model 0 of either activation to itself;
        - "seed": to every model that differs in its seed alone;
        - "activation": GeLU model n to SoLU model n, and back. No two of these pairs share a model;
        - "untrained": an untrained bottom (GeLU) number n to model n of either activation.

        By ``kind`` of map: "affine" between all pairs of layers, "identity" between equal layers,
        "trained" between those equal layers that the profile names.

    Notes
    -----
    Maps are fitted on sentences that the models were trained on. Penalties are of held-out ones,
    the same for all models.
    """
    torch.set_num_threads(profile.threads)
    runs = stitching_runs(profile)
    fitted, judged = _batches(profile, runs["gelu", 0])
    readings = {
        name: (read_layers(model, fitted), read_layers(model, judged))
        for name, model in _models(profile, runs).items()
    }
    training = MapTraining(steps=profile.stitching.steps, warmup=profile.stitching.warmup)
    layers = {kind: _layers(profile, kind) for kind in MAPS}
    pairs = _pairs(len(profile.pretraining.seeds))
    rows, total = [], len(pairs) * sum(map(len, layers.values()))
    with progress_bar(total=total, unit="stitch", description="stitching") as bar:
        for relation, front, back in pairs:
            fitted_on, judged_on = zip(readings[front], readings[back], strict=True)
            for kind in MAPS:
                found = stitch_grid(
                    *judged_on,
                    kind,
                    fitted_on=fitted_on,
                    layers=layers[kind],
                    training=training,
                    on_stitch=bar.update,
                )
                rows += [(relation, *front, *back, kind, *stitch) for stitch in found]
    columns = "relation front front_number back back_number kind front_layer back_layer".split()
    return pd.DataFrame(rows, columns=[*columns, "loss", "penalty"])


def penalty_floors(stitched: pd.DataFrame) -> pd.DataFrame:
    """By how much penalties differ between pairs of models that differ in their seed alone.

    Of a `measure_stitched` table: ``kind``, ``front_layer``, ``back_layer`` and ``floor``, which is
    the standard deviation over pairs of relation "seed", within each activation, in nats per token.
    """
    cell = ["kind", "front_layer", "back_layer"]
    seeds = stitched[stitched.relation == "seed"]
    variance = seeds.groupby([*cell, "back"]).penalty.var()
    return (variance.groupby(cell).mean() ** 0.5).rename("floor").reset_index()


def _models(profile: Profile, runs: dict[Name, ScratchRun]) -> dict[Name, PreTrainedModel]:
    """The trained models, and as many untrained ones."""
    models = {name: run.model for name, run in runs.items()}
    for number, seed in enumerate(profile.pretraining.seeds):
        config = language_model(profile, seed=seed + UNTRAINED_SEEDS)
        models["untrained", number] = new_model(config, runs["gelu", 0].tokenizer)
    return models


def _batches(profile: Profile, run: ScratchRun) -> tuple[list[dict], list[dict]]:
    """What maps are fitted to, and what judges them."""
    config, tokenizer = run.config, run.tokenizer
    rows = examples(config, tokenizer)[0].select(range(profile.stitching.fitted)).to_list()
    pad, size = collator(config, tokenizer), config.batch_size
    fitted = [dict(pad(rows[start : start + size])) for start in range(0, len(rows), size)]
    return fitted, held_out_batches(config, tokenizer, n=profile.stitching.sentences)


def _pairs(n: int) -> list[Pair]:
    pairs: list[Pair] = [("same", (a, 0), (a, 0)) for a in ACTIVATIONS]
    for number in range(n):
        gelu, solu = (("gelu", number), ("solu", number))
        pairs += [("untrained", ("untrained", number), back) for back in (gelu, solu)]
        pairs += [("activation", gelu, solu), ("activation", solu, gelu)]
    for front, back in permutations(range(n), 2):
        pairs += [("seed", (a, front), (a, back)) for a in ACTIVATIONS]
    return pairs


def _layers(profile: Profile, kind: str) -> list[tuple[int, int]]:
    every = range(profile.pretraining.depth + 1)
    if kind == "affine":
        return [(i, j) for i in every for j in every]
    layers: Sequence[int] = profile.stitching.trained_layers if kind == "trained" else every
    return [(layer, layer) for layer in layers]
