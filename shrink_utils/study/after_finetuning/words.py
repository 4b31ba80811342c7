"""What words still say: how much of frequency and word type a linear map reads off vectors."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits
from torch import Tensor

from shrink_utils.models import WordBatch, split_words, word_states
from shrink_utils.study.after_finetuning.experiment import PRETRAINED, study_encoders
from shrink_utils.study.after_finetuning.probes import deal_folds, probe_classes, probe_values
from shrink_utils.study.grid import run_grid
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import measured
from shrink_utils.text import load_sentences

TYPES = 40  # the most frequent words, told apart by the type probe


@measured("words_after_finetuning")
def measure_words_after_finetuning(profile: Profile) -> pd.DataFrame:
    """Decodability of word frequency and word type at the first, middle and last layer.

    For the profile's first model and first task, every seed and `ARMS`; a sixth of
    `diagnostic_sentences`, drawn from all corpora.

    Returns
    -------
    DataFrame
        Columns model, task, arm, seed, layer, probe ("frequency", in R², or "type", in accuracy),
        labels ("true" or, for the pretrained model, "shuffled" as a control), n (rows), value,
        chance. The arm "pretrained" has a row per seed: only the halves of its probe differ.
    """
    texts = load_sentences("all", n=profile.diagnostic_sentences // 6, seed=profile.base_seed)[
        "text"
    ]
    counts = Counter(word for text in load_sentences("all")["text"] for word in split_words(text))
    rows = []
    for keys, seeds, encoder in study_encoders(profile, run_grid(profile), task=profile.tasks[0]):
        layers = sorted({1, len(encoder.layers) // 2, len(encoder.layers) - 1})
        words = word_states(encoder, texts, layers=layers)
        targets = [frequency_target(words, counts), type_target(words)]
        if keys["arm"] == PRETRAINED:
            targets += [target.shuffled() for target in targets]
        with threadpool_limits(1):  # small matrices: threads would wait for each other
            for seed, (layer, x), target in product(
                seeds, zip(layers, words.vectors, strict=True), targets
            ):
                score = target.probed(x, seed=seed)
                rows.append({**keys, "seed": seed, "layer": layer, **score})
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class Target:
    """What is to be read off which word vectors; vectors of one group share their fold."""

    probe: str
    rows: np.ndarray  # (n,) of all words
    values: np.ndarray  # (n,)
    groups: np.ndarray  # (n,)
    labels: str = "true"

    def shuffled(self) -> Target:
        values = np.random.default_rng(0).permutation(self.values)
        return replace(self, values=values, labels="shuffled")

    def probed(self, x: Tensor, *, seed: int = 0) -> dict:
        probe = probe_values if self.probe == "frequency" else probe_classes
        folds = deal_folds(self.groups, n_folds=2, seed=seed)
        score = probe(x[self.rows], self.values, folds=folds)
        return {
            "probe": self.probe,
            "labels": self.labels,
            "n": len(self.rows),
            **score._asdict(),
        }


def frequency_target(words: WordBatch, counts: Counter) -> Target:
    """ln of a word's count in all corpora, from one occurrence per word: new words are held out.

    The mean over occurrences would betray the count by its length: means of many are shorter.
    """
    first: dict[str, int] = {}
    for row, word in enumerate(words.word):
        first.setdefault(word, row)
    rows = np.array(list(first.values()))
    values = np.array([math.log(counts[word]) for word in first])
    return Target("frequency", rows, values, rows)


def type_target(words: WordBatch) -> Target:
    """Which of the 40 commonest words it is, from all their occurrences: sentences are held out."""
    common = {word for word, _ in Counter(words.word).most_common(TYPES)}
    rows = np.array([row for row, word in enumerate(words.word) if word in common])
    values = np.array(words.word)[rows]
    return Target("type", rows, values, words.sentence.numpy()[rows])
