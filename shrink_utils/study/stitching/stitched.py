"""What it costs to stitch small language models together: the table behind notebook 09."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

import pandas as pd
import torch

from shrink_utils.models import MAPS, MapTraining, Reading, read_layers, stitch_grid
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.language_models import language_model
from shrink_utils.study.runs.measured import measured
from shrink_utils.study.runs.progress import progress_bar
from shrink_utils.study.runs.scratch import ScratchRun, train_or_load
from shrink_utils.training import ScratchConfig, examples, held_out_batches, new_model
from shrink_utils.training.scratch_data import collator

__all__ = ["measure_stitched", "penalty_floors", "stitching_config", "stitching_runs"]

ACTIVATIONS = ("gelu", "solu")
# Equal seeds give equal initial weights: no SoLU model may begin where a GeLU model begins.
SOLU_SEEDS, UNTRAINED_SEEDS = 100, 200

Name = tuple[str, int]  # activation or "untrained", and which of the models


class _Pair(NamedTuple):
    relation: str
    front: Name
    back: Name


class _Bench(NamedTuple):
    """One model on the sentences that maps are fitted to, and on those that judge them."""

    fitted: Reading
    judged: Reading


def stitching_config(profile: Profile, activation: str, number: int) -> ScratchConfig:
    """The language model number `number` with this activation."""
    seed = profile.pretraining.seeds[number] + (SOLU_SEEDS if activation == "solu" else 0)
    return language_model(profile, seed=seed, activation=activation)


def stitching_runs(profile: Profile) -> dict[Name, ScratchRun]:
    """GeLU and SoLU models, one of each for every seed of the profile, trained or loaded."""
    names = [(a, n) for n in range(len(profile.pretraining.seeds)) for a in ACTIVATIONS]
    runs = profile.folder / "runs"
    return {name: train_or_load(stitching_config(profile, *name), runs) for name in names}


@measured("stitched")
def measure_stitched(profile: Profile) -> pd.DataFrame:
    """Penalties of stitches between causal language models that differ in seed or activation.

    Returns
    -------
    DataFrame
        One stitch a row: ``relation``, ``front``, ``front_number``, ``back``, ``back_number``,
        ``kind``, ``front_layer``, ``back_layer``, ``loss`` (nats a token), ``penalty``. By
        ``relation``:

        - "same": model 0 of either activation to itself;
        - "seed": to every model that differs in its seed alone;
        - "activation": GeLU model n to SoLU model n, and back. No two of these pairs share a model;
        - "untrained": an untrained bottom (GeLU) number n to model n of either activation.

        By ``kind`` of map: "affine" between all pairs of layers, "identity" between equal layers,
        "trained" between those equal layers that the profile names.

    Notes
    -----
    Maps are fitted on sentences that the models were trained on, penalties are of held-out ones,
    the same for all.
    """
    torch.set_num_threads(profile.threads)
    benches = _benches(profile)
    grids = [
        (pair, kind, _layers(profile, kind))
        for pair in _pairs(len(profile.pretraining.seeds))
        for kind in MAPS
    ]
    frames = []
    total = sum(len(layers) for *_, layers in grids)
    with progress_bar(total=total, unit="stitch", description="stitching") as bar:
        for pair, kind, layers in grids:
            front, back = benches[pair.front], benches[pair.back]
            found = stitch_grid(
                front.judged,
                back.judged,
                kind,
                fitted_on=(front.fitted, back.fitted),
                layers=layers,
                training=MapTraining(
                    steps=profile.stitching.steps, warmup=profile.stitching.warmup
                ),
                on_stitch=bar.update,
            )
            frames.append(_frame(pair, kind, found))
    return pd.concat(frames, ignore_index=True)


def penalty_floors(stitched: pd.DataFrame) -> pd.DataFrame:
    """By how much penalties differ between pairs of models that differ in their seed alone.

    Parameters
    ----------
    stitched : DataFrame
        Of `measure_stitched`.

    Returns
    -------
    DataFrame
        ``kind``, ``front_layer``, ``back_layer`` and ``floor``: the standard deviation of the
        penalty over the pairs of relation "seed", within each activation, in nats a token.
    """
    cell = ["kind", "front_layer", "back_layer"]
    seeds = stitched[stitched.relation == "seed"]
    variance = seeds.groupby([*cell, "back"]).penalty.var()
    return (variance.groupby(cell).mean() ** 0.5).rename("floor").reset_index()


def _benches(profile: Profile) -> dict[Name, _Bench]:
    runs = stitching_runs(profile)
    some = runs["gelu", 0]
    judged = held_out_batches(some.config, some.tokenizer, n=profile.stitching.sentences)
    rows = examples(some.config, some.tokenizer)[0].select(range(profile.stitching.fitted))
    pad, size = collator(some.config, some.tokenizer), some.config.batch_size
    rows = rows.to_list()
    fitted = [dict(pad(rows[start : start + size])) for start in range(0, len(rows), size)]
    models = {name: run.model for name, run in runs.items()}
    for number, seed in enumerate(profile.pretraining.seeds):
        config = language_model(profile, seed=seed + UNTRAINED_SEEDS)
        models["untrained", number] = new_model(config, some.tokenizer)
    return {
        name: _Bench(read_layers(model, fitted), read_layers(model, judged))
        for name, model in models.items()
    }


def _pairs(n: int) -> Iterator[_Pair]:
    for activation in ACTIVATIONS:
        yield _Pair("same", (activation, 0), (activation, 0))
    for number in range(n):
        for activation in ACTIVATIONS:
            yield _Pair("untrained", ("untrained", number), (activation, number))
        yield _Pair("activation", ("gelu", number), ("solu", number))
        yield _Pair("activation", ("solu", number), ("gelu", number))
    for front, back in permutations(range(n), 2):
        for activation in ACTIVATIONS:
            yield _Pair("seed", (activation, front), (activation, back))


def _layers(profile: Profile, kind: str) -> list[tuple[int, int]]:
    every = range(profile.pretraining.depth + 1)
    if kind == "affine":
        return [(i, j) for i in every for j in every]
    layers: Sequence[int] = profile.stitching.trained_layers if kind == "trained" else every
    return [(layer, layer) for layer in layers]


def _frame(pair: _Pair, kind: str, found: Sequence[tuple]) -> pd.DataFrame:
    columns = ["front_layer", "back_layer", "loss", "penalty"]
    keys = {
        "relation": pair.relation,
        "front": pair.front[0],
        "front_number": pair.front[1],
        "back": pair.back[0],
        "back_number": pair.back[1],
        "kind": kind,
    }
    return pd.DataFrame([cell._asdict() for cell in found]).assign(**keys)[[*keys, *columns]]
