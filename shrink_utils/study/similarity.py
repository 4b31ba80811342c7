"""How alike layers are: of one encoder, of several, before and after fine-tuning (chapter 03)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from shrink_utils.geometry import affine, calibrated_maximum, procrustes, similarity_grid
from shrink_utils.models import WordBatch, load_encoder, random_encoder, word_states
from shrink_utils.study.grid import run_grid
from shrink_utils.study.measured import measured
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs import run_encoder
from shrink_utils.study.statistics import bootstrap_interval
from shrink_utils.text import load_sentences

SIMILARITIES = ("cka", "cka_debiased", "svcca", "pwcca", "rsa")
WORDS = 2000  # rows of the measures that need n ≫ 2d
TRACKED = ("cka_debiased", "rsa")  # followed through every run
ALIGNMENTS = ("identity", "procrustes", "affine")

ARMS = ("none", "prominent")  # whose runs are compared with the encoder before them
COLUMNS = ["pair", "task", "arm", "seed", "measure", "layer", "other", "value"]
Entry = tuple[str, int, int, float]  # measure, layer, other layer, value
Block = tuple[str, tuple[str, str, int], list[Entry]]  # pair; task, arm, seed; its entries
NO_RUN = ("", "", -1)


def similarity_texts(profile: Profile) -> list[str]:
    """The sentences whose words are compared: a third of the diagnostic ones, of all corpora."""
    n = max(8, profile.diagnostic_sentences // 3)
    return load_sentences("all", n=n, seed=profile.base_seed)["text"][:]


@measured("similarity")
def measure_similarity(profile: Profile) -> pd.DataFrame:
    """Similarity of the layers of the profile's first encoder with those of other encoders.

    Vectors are of the words of `similarity_texts`; for RSA, of the sentences, as means of their
    words. Fine-tuned encoders are the runs of `ARMS` on the grid's first task.

    Returns
    -------
    DataFrame
        One ``value`` per row, of a ``measure`` between ``layer`` of the first encoder and ``other``
        of the second; ``task``, ``arm`` and ``seed`` name a run. By ``pair``:

        - "itself", "random", "partner": the pretrained encoder against itself, its random
          initialization, and the profile's partner if it has one; all pairs of layers;
        - "null": the encoder against itself with the rows shuffled, first, middle and last layer;
        - "finetuned": against a run; all pairs of layers for the first seed (of arm none by every
          measure), else equal ones;
        - "low", "high": 95 % bounds of the former for arm none, the first seed and equal layers,
          resampling sentences;
        - "within": a run against itself, ``cka_debiased``;
        - "arms": the run without regularizer against that of another arm and the same seed;
        - "neighbours": a run of arm none against the random initialization, at the pair of layers
          whose sentences share most near neighbours: "mutual_knn", its "null" by the same search of
          shuffled rows, and "calibrated".

        "finetuned" with the first seed and "partner" also hold the alignments: the share of the
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
        random = word_states(random_encoder(encoder.name, seed=profile.base_seed + 1), texts)
        blocks = [
            *against_others(profile, states, random, texts),
            *against_runs(profile, states, random, texts),
        ]
    rows = [(pair, *run, *entry) for pair, run, entries in blocks for entry in entries]
    return pd.DataFrame(rows, columns=COLUMNS)


def against_others(
    profile: Profile, states: WordBatch, random: WordBatch, texts: Sequence[str]
) -> Iterator[Block]:
    """The encoder against itself, its random initialization and the profile's partner."""
    (itself,) = matched_layers(states)
    yield "itself", NO_RUN, _grids(itself, itself, SIMILARITIES)
    yield "null", NO_RUN, _null(itself, seed=profile.base_seed)
    both = matched_layers(states, random)
    yield "random", NO_RUN, _grids(*both, SIMILARITIES)
    if profile.partner:
        partner = word_states(load_encoder(profile.partner, device="auto"), texts)
        both = matched_layers(states, partner)
        yield "partner", NO_RUN, _grids(*both, SIMILARITIES)
        yield "partner", NO_RUN, _alignments(*both)


def against_runs(
    profile: Profile, states: WordBatch, random: WordBatch, texts: Sequence[str]
) -> Iterator[Block]:
    """Runs of the first task: what they were before, the other arm's, random weights."""
    first = profile.runs()[0]
    plain: dict[int, Layers] = {}  # seed → layers of arm none, which comes first
    for run in sorted(run_grid(profile), key=lambda run: run.config.arm != "none"):
        task, arm, seed = about = run.config.task, run.config.arm, run.config.seed
        if (run.config.model, task) != (first.model, first.task) or arm not in ARMS:
            continue
        read = word_states(run_encoder(run, device="auto"), texts)
        before, after, chance = matched_layers(states, read, random)
        if seed == first.seed:
            measures = SIMILARITIES if arm == "none" else TRACKED
            yield "finetuned", about, _grids(before, after, measures)
            yield "finetuned", about, _alignments(before, after)
        else:
            yield "finetuned", about, _equal_layers(before, after)
        yield "within", about, _grids(after, after, ["cka_debiased"])
        if arm == "none":
            plain[seed] = after
            if seed == first.seed:
                low, high = _bounds(before, after)
                yield "low", about, low
                yield "high", about, high
            yield "neighbours", about, _neighbours(after, chance, seed=profile.base_seed)
        elif seed in plain:
            yield "arms", about, _equal_layers(plain[seed], after)


def _grids(x: Layers, y: Layers, measures: Sequence[str]) -> list[Entry]:
    """Every layer of x against every layer of y."""
    entries = []
    for measure in measures:
        others = None if x is y else y.rows(measure)
        grid = similarity_grid(measure, x.rows(measure), others).tolist()
        entries += [(measure, i, j, v) for i, row in enumerate(grid) for j, v in enumerate(row)]
    return entries


def _equal_layers(x: Layers, y: Layers) -> list[Entry]:
    entries = []
    for measure in TRACKED:
        for layer, (a, b) in enumerate(zip(x.rows(measure), y.rows(measure), strict=True)):
            value = similarity_grid(measure, [a], [b]).item()
            entries.append((measure, layer, layer, value))
    return entries


def _null(x: Layers, *, seed: int) -> list[Entry]:
    """Each measure between a layer and the same layer with its rows shuffled."""
    entries = []
    for measure in SIMILARITIES:
        rows = x.rows(measure)
        for layer in sorted({0, len(rows) // 2, len(rows) - 1}):
            shuffled = np.random.default_rng([seed, layer]).permutation(rows.shape[1])
            value = similarity_grid(measure, [rows[layer]], [rows[layer][shuffled]]).item()
            entries.append((measure, layer, layer, value))
    return entries


def _neighbours(x: Layers, y: Layers, *, seed: int) -> list[Entry]:
    """The pair of layers whose sentences share most near neighbours, and what a search finds."""
    found = calibrated_maximum("mutual_knn", x.sentences(), y.sentences(), seed=seed)
    values = {"mutual_knn": found.value, "null": found.null, "calibrated": found.calibrated}
    return [(name, *found.layers, value) for name, value in values.items()]


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


@dataclass(frozen=True)
class Layers:
    """The vectors that one encoder makes of some texts, layer by layer."""

    words: Tensor  # (layers, n, d)
    sentence: Tensor  # (n,): the sentence of each word

    def thinned(self) -> Layers:
        """At most 2,000 words, evenly spaced over the texts."""
        n = len(self.sentence)
        kept = torch.arange(min(n, WORDS)) * n // min(n, WORDS)
        return Layers(self.words[:, kept], self.sentence[kept])

    def sentences(self) -> Tensor:
        """The mean of each sentence's words, (layers, sentences, d)."""
        _, index, sizes = self.sentence.unique(return_inverse=True, return_counts=True)
        sums = self.words.new_zeros(len(self.words), len(sizes), self.words.shape[2])
        return sums.index_add_(1, index, self.words) / sizes[:, None]

    def rows(self, measure: str) -> Tensor:
        """The vectors that a measure compares: sentences for RSA, words for the others."""
        return self.sentences() if measure == "rsa" else self.thinned().words


def matched_layers(*states: WordBatch) -> list[Layers]:
    """The words that all encoders read, row for row.

    A word is named by its sentence and its position there, whatever the tokenizers. A word that one
    encoder did not read to its end (texts are cut at different words) is dropped from all.
    """
    names = [[*zip(s.sentence.tolist(), s.position.tolist(), strict=True)] for s in states]
    shared = sorted(set(names[0]).intersection(*names[1:]))
    layers = []
    for state, of_state in zip(states, names, strict=True):
        row_of = {name: row for row, name in enumerate(of_state)}
        rows = torch.tensor([row_of[name] for name in shared])
        layers.append(Layers(state.vectors[:, rows], state.sentence[rows]))
    return layers
