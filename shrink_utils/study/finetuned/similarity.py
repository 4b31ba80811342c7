"""How alike are layers: of one encoder, of encoders, before and after fine-tuning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from shrink_utils.geometry import affine, bootstrap_interval, procrustes, similarity_grid
from shrink_utils.models import Encoder, WordBatch, load_encoder, random_encoder, word_states
from shrink_utils.study.encoders.layers import Layers, matched_layers
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.ablation import run_grid
from shrink_utils.study.runs.folder import Run
from shrink_utils.study.runs.measured import measured
from shrink_utils.study.runs.run_or_load import run_encoder
from shrink_utils.text import load_sentences

__all__ = ["ALIGNMENTS", "SIMILARITIES", "measure_similarity", "similarity_texts"]

SIMILARITIES = ("cka", "cka_debiased", "svcca", "pwcca", "rsa")
TRACKED = ("cka_debiased", "rsa")  # what is followed through every run
ALIGNMENTS = ("identity", "procrustes", "affine")

KEYS = ["pair", "task", "arm", "seed"]
Entry = tuple[str, int, int, float]  # measure, layer, other layer, value


def similarity_texts(profile: Profile) -> list[str]:
    """The sentences whose words are compared: a third of the diagnostic ones, of all corpora."""
    n = max(8, profile.diagnostic_sentences // 3)
    return load_sentences("all", n=n, seed=profile.base_seed)["text"][:]


@measured("similarity")
def measure_similarity(profile: Profile) -> pd.DataFrame:
    """Similarity of the layers of the profile's first encoder with those of other encoders.

    Vectors are of the words of `similarity_texts`; for RSA, of the sentences, as means of their
    words. Fine-tuned encoders are the runs of the grid's first task.

    Returns
    -------
    DataFrame
        One value a row, with columns ``pair``, ``task``, ``arm``, ``seed``, ``measure``, ``layer``
        (of the first encoder), ``other`` (of the second) and ``value``. By ``pair``:

        - "itself", "random", "partner": the pretrained encoder against itself, against its random
          initialization, and against the profile's partner if it has one; all pairs of layers;
        - "null": the encoder against itself with the rows shuffled, first, middle and last layer;
        - "finetuned": against a run; all pairs of layers for the first seed (of arm none by every
          measure), else equal ones;
        - "low", "high": 95 % bounds of the former for arm none, the first seed and equal layers,
          resampling sentences;
        - "within": a run against itself, ``cka_debiased``;
        - "arms": the run without regularizer against that of another arm and the same seed.

        Of "finetuned" with the first seed, and of "partner", also the alignments: the share of the
        second encoder's variance that the first explains on sentences that were not fitted: shifted
        to the same mean ("identity"), rotated and scaled as well ("procrustes"), and under the best
        affine map ("affine").
    """
    torch.set_num_threads(profile.threads)
    texts = similarity_texts(profile)
    encoder = load_encoder(profile.models[0], device="auto")
    states = word_states(encoder, texts)
    with warnings.catch_warnings():
        # Encoders have dimensions that never vary; notebook 03 counts them.
        warnings.filterwarnings("ignore", message=".* linearly independent direction")
        frames = list(_against_others(profile, encoder, states, texts))
        frames += _against_runs(profile, states, texts)
    return pd.concat(frames, ignore_index=True)


def _against_others(
    profile: Profile, encoder: Encoder, states: WordBatch, texts: Sequence[str]
) -> Iterator[pd.DataFrame]:
    (itself,) = matched_layers(states)
    yield _frame(_grids(itself, itself, SIMILARITIES), pair="itself")
    yield _frame(_null(itself, seed=profile.base_seed), pair="null")
    random = random_encoder(encoder.name, seed=profile.base_seed + 1)
    yield _frame(
        _grids(*matched_layers(states, word_states(random, texts)), SIMILARITIES), pair="random"
    )
    if profile.partner:
        partner = word_states(load_encoder(profile.partner, device="auto"), texts)
        both = matched_layers(states, partner)
        yield _frame(_grids(*both, SIMILARITIES), pair="partner")
        yield _frame(_alignments(*both), pair="partner")


def _against_runs(
    profile: Profile, states: WordBatch, texts: Sequence[str]
) -> Iterator[pd.DataFrame]:
    first = profile.runs()[0]
    runs = [
        run
        for run in run_grid(profile)
        if (run.config.model, run.config.task) == (first.model, first.task)
    ]
    plain: dict[int, Layers] = {}
    for run in sorted(runs, key=lambda run: run.config.arm != "none"):
        before, after = matched_layers(states, word_states(run_encoder(run, device="auto"), texts))
        seed, about = run.config.seed, _about(run)
        if seed == first.seed:
            measures = SIMILARITIES if run.config.arm == "none" else TRACKED
            yield _frame(_grids(before, after, measures), pair="finetuned", **about)
            yield _frame(_alignments(before, after), pair="finetuned", **about)
        else:
            yield _frame(_equal_layers(before, after, TRACKED), pair="finetuned", **about)
        yield _frame(_grids(after, after, ["cka_debiased"]), pair="within", **about)
        if run.config.arm == "none":
            plain[seed] = after
            if seed == first.seed:
                low, high = _bounds(before, after)
                yield _frame(low, pair="low", **about)
                yield _frame(high, pair="high", **about)
        elif seed in plain:
            yield _frame(_equal_layers(plain[seed], after, TRACKED), pair="arms", **about)


def _about(run: Run) -> dict:
    return {name: getattr(run.config, name) for name in ("task", "arm", "seed")}


def _frame(
    entries: Sequence[Entry], *, pair: str, task: str = "", arm: str = "", seed: int = -1
) -> pd.DataFrame:
    frame = pd.DataFrame(entries, columns=["measure", "layer", "other", "value"])
    keys = zip(KEYS, (pair, task, arm, seed), strict=True)
    for place, (name, value) in enumerate(keys):
        frame.insert(place, name, value)
    return frame


def _grids(x: Layers, y: Layers, measures: Sequence[str]) -> list[Entry]:
    """Every layer of x against every layer of y."""
    entries = []
    for measure in measures:
        grid = similarity_grid(
            measure, x.rows(measure), None if x is y else y.rows(measure)
        ).tolist()
        entries += [(measure, i, j, v) for i, row in enumerate(grid) for j, v in enumerate(row)]
    return entries


def _equal_layers(x: Layers, y: Layers, measures: Sequence[str]) -> list[Entry]:
    entries = []
    for measure in measures:
        for layer, (a, b) in enumerate(zip(x.rows(measure), y.rows(measure), strict=True)):
            value = similarity_grid(measure, [a], [b]).item()
            entries.append((measure, layer, layer, value))
    return entries


def _null(x: Layers, *, seed: int) -> list[Entry]:
    """What each measure says of layers whose rows have nothing to do with each other."""
    entries = []
    for measure in SIMILARITIES:
        rows = x.rows(measure)
        for layer in sorted({0, len(rows) // 2, len(rows) - 1}):
            shuffled = np.random.default_rng([seed, layer]).permutation(rows.shape[1])
            value = similarity_grid(measure, [rows[layer]], [rows[layer][shuffled]]).item()
            entries.append((measure, layer, layer, value))
    return entries


def _bounds(x: Layers, y: Layers) -> tuple[list[Entry], list[Entry]]:
    """Lower and upper 95 % bounds of the tracked measures, resampling sentences."""
    low, high = [], []
    groups = {"cka_debiased": x.thinned().sentence, "rsa": None}
    for measure in TRACKED:
        for layer, (a, b) in enumerate(zip(x.rows(measure), y.rows(measure), strict=True)):
            interval = bootstrap_interval(
                lambda a, b, measure=measure: similarity_grid(measure, [a], [b]).item(),
                a,
                b,
                groups=groups[measure],
                n_resamples=25,
            )
            low.append((measure, layer, layer, interval.low))
            high.append((measure, layer, layer, interval.high))
    return low, high


def _alignments(x: Layers, y: Layers) -> list[Entry]:
    """Fitted on the words of every second sentence, judged on those of the others."""
    fit = x.sentence % 2 == 0
    deepest, other_deepest = len(x.words) - 1, len(y.words) - 1
    entries = []
    for layer, a in enumerate(x.words):
        other = round(layer * other_deepest / deepest)  # equal relative depth
        b = y.words[other]
        maps = {"procrustes": procrustes(a[fit], b[fit], scaling=True)}
        maps["affine"] = affine(a[fit], b[fit])
        if a.shape == b.shape:
            rotation = maps["procrustes"]
            identity = torch.eye(a.shape[1], dtype=torch.float64)
            maps["identity"] = replace(rotation, matrix=identity)  # the means agree, no more
        for name, mapped in maps.items():
            entries.append((name, layer, other, mapped.explained(a[~fit], b[~fit])))
    return entries
