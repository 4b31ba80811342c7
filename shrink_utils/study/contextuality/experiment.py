"""How contextual an encoder's word vectors are, layer by layer, with the units that claims need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pandas as pd
import torch
from torch import Tensor, nan

from shrink_utils.geometry import avg_sim_pseudo_values, intra_sim, max_explainable_variance
from shrink_utils.models import Encoder, load_encoder, word_states
from shrink_utils.study.measured import measured
from shrink_utils.study.profiles import Profile
from shrink_utils.text import load_sentences

MIN_COUNT = 5  # occurrences of a word whose MEV is measured
DEALINGS = 5  # random dealings of rows, for the nulls

COLUMNS = ["quantity", "layer", "item", "value", "null", "baseline"]
Row = tuple[str, int, str, float, float, float]


@measured("contextuality")
def measure_contextuality(profile: Profile) -> pd.DataFrame:
    """AvgSim, IntraSim and MEV of every layer of the profile's first encoder, unit by unit.

    Returns
    -------
    DataFrame
        Columns ``quantity``, ``layer``, ``item`` (a sentence's number or a word), ``value``,
        ``null`` (its expectation for rows dealt at random) and ``baseline`` (what the literature
        subtracts, one per layer); NaN where there is none. ``avg_sim`` holds jackknife
        pseudo-values, whose mean is the estimate; ``intra_sim`` is per sentence; ``mev`` is per
        word, as defined; ``mev_released`` as the released code computed it (layers above 0).
    """
    return contextuality_of(load_encoder(profile.models[0]), profile)


def contextuality_of(encoder: Encoder, profile: Profile) -> pd.DataFrame:
    """The table of `measure_contextuality` of any encoder."""
    texts = load_sentences("all", n=profile.diagnostic_sentences, seed=profile.base_seed)["text"]
    words = word_states(encoder, texts)
    rows: list[Row] = []
    for layer in encoder.layers:
        x = words.vectors[layer]
        rows += _sentence_rows(layer, x, words.sentence, profile.base_seed)
        rows += _word_rows(layer, x, words.word, profile.base_seed)
    return pd.DataFrame(rows, columns=COLUMNS)


def _sentence_rows(layer: int, x: Tensor, sentence: Tensor, seed: int) -> Iterator[Row]:
    pseudo_values = avg_sim_pseudo_values(x, groups=sentence)
    for item, value in zip(sentence.unique().tolist(), pseudo_values.tolist(), strict=True):
        yield "avg_sim", layer, str(item), value, nan, nan
    found = intra_sim(x, sentence, n_permutations=DEALINGS, seed=seed)
    for item, value in found.per_sentence.items():
        null = found.null_per_sentence[item]
        yield "intra_sim", layer, str(item), value, null, found.baseline


def _word_rows(layer: int, x: Tensor, words: list[str], seed: int) -> Iterator[Row]:
    found = max_explainable_variance(
        x, words, min_count=MIN_COUNT, n_permutations=DEALINGS, seed=seed
    )
    for item, value in found.per_word.items():
        yield "mev", layer, item, value, found.null_per_word[item], found.baseline
    if layer == 0:  # before any context is read, a word's vectors may be all the same
        return
    occurrences = defaultdict(list)
    for row, word in enumerate(words):
        occurrences[word].append(row)
    baseline = released_mev(x)
    for item in found.per_word:
        yield "mev_released", layer, item, released_mev(x[occurrences[item]]), nan, baseline


def released_mev(x: Tensor) -> float:
    """Share of a word's variance as the code released with Ethayarajh 2019 computed it.

    Parameters
    ----------
    x : Tensor, shape (m, d)
        The vectors of one word, not all the same.

    Returns
    -------
    float
        ``TruncatedSVD(…).fit(x).explained_variance_ratio_[0]`` of scikit-learn: the *centred*
        variance along the first singular direction of the *uncentred* matrix, over all centred
        variance. That direction is nearly the mean's. So this share is next to nothing where a
        word's vectors agree and one static vector explains most of them.

    References
    ----------
    github.com/kawine/contextual, analyze.py as of the released tables (a later version of the file
    has a PCA there).
    """
    x = x.double()
    if len(x) <= x.shape[1]:
        values, vectors = torch.linalg.eigh(x @ x.T)
        projections = vectors[:, -1] * values[-1].sqrt()  # (m,)
    else:
        projections = x @ torch.linalg.eigh(x.T @ x)[1][:, -1]
    return float(projections.var(correction=0) / x.var(dim=0, correction=0).sum())
