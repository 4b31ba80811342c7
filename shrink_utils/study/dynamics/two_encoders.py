"""The two encoders of Vázquez et al. 2021, trained here: a masked LM and a translation model."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import permutations, product
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor

from shrink_utils.geometry import affine, intra_sim, procrustes, self_sim, similarity_grid
from shrink_utils.models import WordBatch, word_states
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import measured, progress_bar
from shrink_utils.study.scratch import ScratchRun, scratch_config, scratch_encoder, train_or_load
from shrink_utils.study.similarity.layers import Layers, matched_layers
from shrink_utils.text import load_pairs

ENCODERS = ("mlm", "mt")
SIMILARITIES = ("rsa", "pwcca", "cka_debiased")
MIN_COUNT = 5  # sentences that a word stands in, for its SelfSim
KEYS = ["quantity", "front", "front_seed", "back", "back_seed", "map", "layer", "value"]


class Trained(NamedTuple):
    """One encoder: its objective and its seed."""

    objective: str
    seed: int


def encoder_runs(profile: Profile) -> dict[Trained, ScratchRun]:
    """Both encoders for every seed of the profile, trained or loaded."""
    names = [Trained(*name) for name in product(ENCODERS, profile.pretraining.seeds)]
    runs = profile.folder / "runs"
    return {
        name: train_or_load(scratch_config(profile, name.objective, seed=name.seed), runs)
        for name in names
    }


@measured("two_encoders")
def measure_two_encoders(profile: Profile) -> pd.DataFrame:
    """Compare the encoders trained here as Vázquez et al. 2021 compare BERT with a translator.

    All is of the words of sentences that no model was trained on; equal seeds begin with equal
    weights.

    Returns
    -------
    DataFrame
        Columns ``quantity``, ``front``, ``front_seed``, ``back``, ``back_seed``, ``map``,
        ``layer`` and ``value``. Of one encoder (``back`` and ``map`` are empty):

        - "avg_sim"; "self_sim" and "intra_sim", with what words dealt at random would have as
          "self_sim_null" (it is AvgSim) and "intra_sim_null".

        Of two, equal layers, where front and back differ in objective (front is "mlm") or in seed
        alone: "rsa", "pwcca" (weights of the front) and "cka_debiased" of the back with the front
        as it is (``map`` "none"), or carried over by the "orthogonal" map or by the "affine" one.
        Maps are fitted on the words of every second sentence; similarities are of the others.
    """
    torch.set_num_threads(profile.threads)
    n = max(8, profile.diagnostic_sentences)
    sizes = profile.pretraining
    texts = load_pairs(sizes.source, n=sizes.sentences)["held_out"]["text"][:n]
    words = {
        name: word_states(scratch_encoder(run), texts, max_length=sizes.max_length)
        for name, run in encoder_runs(profile).items()
    }
    layers = dict(zip(words, matched_layers(*words.values()), strict=True))
    pairs = [
        (front, back)
        for front, back in permutations(words, 2)
        if front.objective == back.objective or front.objective == ENCODERS[0]
    ]
    rows = [
        (quantity, *name, "", -1, "", layer, value)
        for name, states in words.items()
        for quantity, layer, value in _contextuality(states)
    ]
    with progress_bar(total=len(pairs), unit="pair", description="comparing encoders") as bar:
        for front, back in pairs:
            for measure, *place, value in _similarities(layers[front], layers[back]):
                rows.append((measure, *front, *back, *place, value))
            bar.update()
    return pd.DataFrame(rows, columns=KEYS)


def _contextuality(states: WordBatch) -> Iterator[tuple[str, int, float]]:
    """SelfSim's null is AvgSim over pairs of words from different sentences: it is both."""
    for layer, x in enumerate(states.vectors):
        of_words = self_sim(x, states.word, sentences=states.sentence, min_count=MIN_COUNT)
        of_sentences = intra_sim(x, states.sentence)
        yield "avg_sim", layer, of_words.null
        yield "self_sim", layer, of_words.value
        yield "self_sim_null", layer, of_words.null
        yield "intra_sim", layer, of_sentences.value
        yield "intra_sim_null", layer, of_sentences.null


def _similarities(x: Layers, y: Layers) -> Iterator[tuple[str, str, int, float]]:
    """By measure, map and layer."""
    fit = x.sentence % 2 == 0
    for layer, (a, b) in enumerate(zip(x.words, y.words, strict=True)):
        target = Layers(b[None, ~fit], y.sentence[~fit])
        p, q = a[fit], b[fit]
        maps = {"none": Tensor.double, "orthogonal": procrustes(p, q), "affine": affine(p, q)}
        for name, carry in maps.items():
            carried = Layers(carry(a[~fit])[None], x.sentence[~fit])
            for measure in SIMILARITIES:
                with warnings.catch_warnings():
                    # A LayerNorm as it begins leaves one direction out: CCA is of the others.
                    warnings.filterwarnings("ignore", message=".*linearly independent")
                    grid = similarity_grid(measure, carried.rows(measure), target.rows(measure))
                yield measure, name, layer, grid.item()
