"""Models of one family that differ in size: how alike are their layers?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from shrink_utils.geometry import similarity_grid
from shrink_utils.models import Encoder, hidden_states, load_encoder, random_encoder, trunk_of
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.language_models import language_model
from shrink_utils.study.runs.measured import measured
from shrink_utils.study.runs.progress import progress_bar
from shrink_utils.study.runs.scratch import scratch_encoder, train_or_load
from shrink_utils.text import load_pairs
from shrink_utils.training import ScratchConfig, new_model, scratch_tokenizer

__all__ = ["FamilyModel", "family_models", "measure_family"]

MEASURE = "cka_debiased"
MAX_LENGTH = 128


@dataclass(frozen=True)
class FamilyModel:
    """One model of the family, not yet in memory.

    Attributes
    ----------
    member : str
        Its size, or the last part of its name on a hub.
    seed : int
        Which of the member's models; 0 is the only one of a member of a hub.
    weights : {"trained", "untrained"}
    load : callable
        Gives the `Encoder`.
    """

    member: str
    seed: int
    weights: str
    load: Callable[[], Encoder]


def family_models(profile: Profile) -> list[FamilyModel]:
    """The members in order of size, trained and untrained; nothing is loaded yet.

    Members of a hub (``profile.family.members``) are taken as they are. Without any, causal
    language models of the profile's widths and depths are trained here, one for each of its seeds.
    """
    family = profile.family
    if family.members:
        return [
            FamilyModel(name.rstrip("/").rsplit("/", 1)[-1], 0, weights, partial(load, name))
            for name in family.members
            for weights, load in (("trained", _load), ("untrained", random_encoder))
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
        One value a row: ``relation``, ``weights``, ``member``, ``other``, ``seed``, ``other_seed``,
        ``layer`` (of the first), ``other_layer`` and ``cka``. By ``relation``:

        - "within": a model against itself, all pairs of layers;
        - "members": two members of equal seed number, the smaller first; all pairs of layers of
          trained models, layers of equal relative depth of untrained ones;
        - "seeds": two trained models of one member that differ in their seed alone, equal layers.

    Notes
    -----
    One model is in memory at a time: the states of each are written to a temporary folder, and
    compared from there. Only they, never two models, meet.

    References
    ----------
    Brown et al. 2023, section 5 (Pythia); block structure: Nguyen, Raghu & Kornblith 2021.
    """
    torch.set_num_threads(profile.threads)
    models = family_models(profile)
    source = load_pairs(profile.pretraining.source, n=profile.pretraining.sentences)
    texts = source["held_out"]["text"][: profile.family.sentences]
    with tempfile.TemporaryDirectory(prefix="shrink-family-") as folder:
        files = [Path(folder) / f"{i}.safetensors" for i in range(len(models))]
        with progress_bar(total=len(models), unit="model", description="reading") as bar:
            for model, file in zip(models, files, strict=True):
                _write_states(model, texts, file)
                bar.update()
        pairs = list(_compared(models))
        frames = []
        with progress_bar(total=len(pairs), unit="pair", description="comparing") as bar:
            for relation, i, j in pairs:
                grid = _grid(relation, models[i], files[i], files[j])
                frames.append(_frame(relation, models[i], models[j], grid))
                bar.update()
    return pd.concat(frames, ignore_index=True)


def _load(name: str) -> Encoder:
    return load_encoder(name, device="auto")


def _load_scratch(profile: Profile, config: ScratchConfig) -> Encoder:
    return scratch_encoder(train_or_load(config, profile.folder / "runs"))


def _new_scratch(profile: Profile, config: ScratchConfig) -> Encoder:
    tokenizer = scratch_tokenizer(config)
    return Encoder(config.label, trunk_of(new_model(config, tokenizer)), tokenizer)


def _write_states(model: FamilyModel, texts: Sequence[str], file: Path) -> None:
    """Each layer's (sentences, d); the encoder is gone when this returns."""
    encoder = model.load()
    length = min(MAX_LENGTH, encoder.max_length)
    states = hidden_states(encoder, texts, pooling="mean", max_length=length)
    save_file({str(layer): x.contiguous() for layer, x in enumerate(states)}, file)


def _compared(models: Sequence[FamilyModel]) -> Iterator[tuple[str, int, int]]:
    for i in range(len(models)):
        yield "within", i, i
    for i, j in combinations(range(len(models)), 2):
        a, b = models[i], models[j]
        if a.weights == b.weights and a.seed == b.seed and a.member != b.member:
            yield "members", i, j
        if a.weights == b.weights == "trained" and a.member == b.member:
            yield "seeds", i, j


Entry = tuple[int, int, float]  # layer, other layer, CKA


def _grid(relation: str, model: FamilyModel, file: Path, other: Path) -> list[Entry]:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    xs = _read_states(file, device)
    ys = None if other == file else _read_states(other, device)
    if relation == "seeds" or (relation == "members" and model.weights == "untrained"):
        return [
            (i, j, similarity_grid(MEASURE, [xs[i]], [ys[j]]).item())
            for i, j in _equal_depth(len(xs) - 1, len(ys) - 1)
        ]
    values = similarity_grid(MEASURE, xs, ys).tolist()
    return [(i, j, value) for i, row in enumerate(values) for j, value in enumerate(row)]


def _read_states(file: Path, device: str) -> list[Tensor]:
    layers = load_file(file, device=device)
    return [layers[str(layer)] for layer in range(len(layers))]


def _equal_depth(depth: int, other: int) -> list[tuple[int, int]]:
    """Every layer of the first with the layer of the other at the same relative depth."""
    return [(layer, round(layer * other / depth)) for layer in range(depth + 1)]


def _frame(
    relation: str, model: FamilyModel, other: FamilyModel, grid: Sequence[Entry]
) -> pd.DataFrame:
    keys = {
        "relation": relation,
        "weights": model.weights,
        "member": model.member,
        "other": other.member,
        "seed": model.seed,
        "other_seed": other.seed,
    }
    frame = pd.DataFrame(grid, columns=["layer", "other_layer", "cka"])
    return frame.assign(**keys)[[*keys, *frame.columns]]
