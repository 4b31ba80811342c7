"""Small language models stitched together, and families of them compared by CKA."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations

import pandas as pd
import torch
from torch import Tensor
from transformers import PreTrainedModel

from shrink_utils.geometry import similarity_grid
from shrink_utils.models import (
    MAPS,
    Encoder,
    MapTraining,
    hidden_states,
    load_encoder,
    random_encoder,
    read_layers,
    stitch_grid,
    trunk_of,
)
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import measured, progress_bar
from shrink_utils.study.scratch import ScratchRun, language_model, scratch_encoder, train_or_load
from shrink_utils.text import load_pairs
from shrink_utils.training import (
    ScratchConfig,
    examples,
    held_out_batches,
    new_model,
    scratch_tokenizer,
)
from shrink_utils.training.scratch import collator

ACTIVATIONS = ("gelu", "solu")
# Equal seeds give equal initial weights: no SoLU model may begin where a GeLU model begins.
SOLU_SEEDS, UNTRAINED_SEEDS = 100, 200
MAX_LENGTH = 128  # tokens of a text that the members of a family read

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


@dataclass(frozen=True)
class FamilyModel:
    """One model of a family, not yet in memory."""

    member: str  # its size, or the last part of its name on a hub
    seed: int  # which of the member's models; 0 is the only one of a member of a hub
    weights: str  # "trained" or "untrained"
    load: Callable[[], Encoder]


def family_models(profile: Profile) -> list[FamilyModel]:
    """The members in order of size, trained and untrained; nothing is loaded yet.

    Members of a hub (``profile.family.members``) are taken as they are. Without any, causal
    language models of the profile's widths and depths are trained here, one per seed.
    """
    family, downloaded = profile.family, partial(load_encoder, device="auto")
    if family.members:
        return [
            FamilyModel(name.rstrip("/").rsplit("/", 1)[-1], 0, weights, partial(load, name))
            for name in family.members
            for weights, load in (("trained", downloaded), ("untrained", random_encoder))
        ]
    return [
        FamilyModel(f"{depth} × {width}", number, weights, partial(load, profile, config))
        for width, depth in zip(family.widths, family.depths, strict=True)
        for number, seed in enumerate(profile.pretraining.seeds)
        for config in [language_model(profile, seed=seed, width=width, depth=depth)]
        for weights, load in (("trained", _load_scratch), ("untrained", _new_scratch))
    ]


@measured("family")
def measure_family(profile: Profile) -> pd.DataFrame:
    """Debiased CKA between the layers of the members of a family.

    Rows of the comparison are held-out sentences, each the mean of its tokens.

    Returns
    -------
    DataFrame
        One value per row: ``relation``, ``weights``, ``member``, ``other``, ``seed``,
        ``other_seed``, ``layer`` (of the first), ``other_layer`` and ``cka``. By ``relation``:

        - "within": a model against itself, all pairs of layers;
        - "members": two members of equal seed number, the smaller first; all pairs of layers of
          trained models, layers of equal relative depth of untrained ones;
        - "seeds": two trained models of one member that differ in their seed alone, equal layers.

    Notes
    -----
    One model is in memory at a time; only the states of its layers stay.

    References
    ----------
    Brown et al. 2023, section 5 (Pythia); block structure: Nguyen, Raghu & Kornblith 2021.
    """
    torch.set_num_threads(profile.threads)
    models = family_models(profile)
    source = load_pairs(profile.pretraining.source, n=profile.pretraining.sentences)
    texts = source["held_out"]["text"][: profile.family.sentences]
    pairs, states, rows = list(_compared(models)), [], []
    with progress_bar(total=len(models), unit="model", description="reading") as bar:
        for model in models:
            states.append(_states(model.load(), texts))
            bar.update()
    with progress_bar(total=len(pairs), unit="pair", description="comparing") as bar:
        for relation, i, j in pairs:
            a, b = models[i], models[j]
            keys = (relation, a.weights, a.member, b.member, a.seed, b.seed)
            some = relation == "seeds" or (relation == "members" and a.weights == "untrained")
            rows += [(*keys, *cell) for cell in _ckas(states[i], states[j], equal_depth=some)]
            bar.update()
    columns = "relation weights member other seed other_seed layer other_layer cka".split()
    return pd.DataFrame(rows, columns=columns)


def _load_scratch(profile: Profile, config: ScratchConfig) -> Encoder:
    return scratch_encoder(train_or_load(config, profile.folder / "runs"))


def _new_scratch(profile: Profile, config: ScratchConfig) -> Encoder:
    tokenizer = scratch_tokenizer(config)
    return Encoder(config.label, trunk_of(new_model(config, tokenizer)), tokenizer)


def _states(encoder: Encoder, texts: Sequence[str]) -> Tensor:
    """(layers, sentences, d), on the CPU."""
    length = min(MAX_LENGTH, encoder.max_length)
    return hidden_states(encoder, texts, pooling="mean", max_length=length)


def _compared(models: Sequence[FamilyModel]) -> Iterator[tuple[str, int, int]]:
    for i in range(len(models)):
        yield "within", i, i
    for (i, a), (j, b) in combinations(enumerate(models), 2):
        if a.weights == b.weights and a.seed == b.seed and a.member != b.member:
            yield "members", i, j
        if a.weights == b.weights == "trained" and a.member == b.member:
            yield "seeds", i, j


def _ckas(x: Tensor, y: Tensor, *, equal_depth: bool) -> Iterator[tuple[int, int, float]]:
    """Layer, other layer and CKA, of all pairs of layers or of those at equal relative depth."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    xs, ys = list(x.to(device)), None if y is x else list(y.to(device))
    if equal_depth:
        depth, other_depth = len(xs) - 1, len(ys) - 1
        for i in range(depth + 1):
            j = round(i * other_depth / depth)
            yield i, j, similarity_grid("cka_debiased", [xs[i]], [ys[j]]).item()
    else:
        values = similarity_grid("cka_debiased", xs, ys).tolist()
        yield from ((i, j, value) for i, row in enumerate(values) for j, value in enumerate(row))
