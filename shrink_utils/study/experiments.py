"""What chapters measure: probes of fine-tuned vectors (08), words of several encoders (08b)."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from numpy.typing import ArrayLike
from sklearn.cluster import KMeans
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from shrink_utils.geometry import calibrated_maximum, principal_axes, similarity_grid
from shrink_utils.geometry.maps import PrincipalAxes, nearest_centre
from shrink_utils.models import (
    Encoder,
    load_encoder,
    pool,
    random_encoder,
    state_batches,
    word_states,
)
from shrink_utils.models.states import WordBatch, shared_words
from shrink_utils.study.finetuning import _second_texts
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs import Run, RunConfig, run_encoder, run_or_load
from shrink_utils.text import load_sentences

REMOVED = (1, 3, 10)  # directions
MOST_CLUSTERS = 8
ALPHAS = np.logspace(0, 5, 11)  # of standardized features; leave-one-out on the fit rows chooses
TYPES = 40  # the most frequent words, told apart by the type probe


def text_states(encoder: Encoder, rows: Dataset, *, max_length: int) -> dict[str, Tensor]:
    """Vectors of n texts at every layer, `cls` and `mean`, (layers, n, d) each, from one pass."""
    order, parts = [], {pooling: [] for pooling in ("cls", "mean")}
    for batch in state_batches(
        encoder, rows["text"], text_pairs=_second_texts(rows), max_length=max_length
    ):
        order += batch.rows
        for pooling, found in parts.items():
            layers = [pool([state], batch.mask, pooling=pooling) for state in batch.states]
            found.append(torch.stack(layers).float().cpu())  # (layers, b, d)
    back = torch.tensor(order).argsort()  # the batches are sorted by length
    return {pooling: torch.cat(found, dim=1)[:, back] for pooling, found in parts.items()}


def treated_accuracies(x: Tensor, labels: np.ndarray, *, seed: int = 0) -> pd.DataFrame:
    """Accuracy of a linear probe on a cloud after each treatment; every row is held out once.

    Parameters
    ----------
    x : Tensor, shape (n, d)
        Vectors of labelled texts.
    labels : ndarray, shape (n,)
        Their classes.
    seed : int
        Deals the rows to two halves. Treatment, clusters and probe are fitted on one and judged on
        the other, both ways.

    Returns
    -------
    DataFrame
        Columns measure ("accuracy"), treatment, removed, skipped, value. Treatments: "untreated";
        "global" and "clusters", each with 0 (its mean or means subtracted, no more) and with
        `REMOVED` directions removed, the dominant ones (skipped 0) or, as control, the next ones
        (skipped = removed); "commonest" is the accuracy of naming the commonest class. Removals
        that a cloud of so few rows does not allow are left out.
    """
    x, right = x.double(), {}
    folds = _deal_folds(np.arange(len(labels)), n_folds=2, seed=seed)
    for fold in np.unique(folds):
        fit, rest = folds != fold, folds == fold
        for key, treat in _treatments(x[fit]).items():
            probe = _linear(RidgeClassifierCV(ALPHAS)).fit(treat(x[fit]).numpy(), labels[fit])
            right.setdefault(key, []).append(probe.predict(treat(x[rest]).numpy()) == labels[rest])
        guess = DummyClassifier().fit(labels[fit], labels[fit]).predict(labels[rest])
        right.setdefault(("commonest", 0, 0), []).append(labels[rest] == guess)
    rows = [(*key, np.concatenate(hits).mean()) for key, hits in right.items() if len(hits) == 2]
    columns = ["treatment", "removed", "skipped", "value"]
    return pd.DataFrame(rows, columns=columns).assign(measure="accuracy")


def _treatments(fit: Tensor) -> dict[tuple[str, int, int], Callable[[Tensor], Tensor]]:
    """Every treatment fitted on a cloud (n, d), by (name, directions removed, skipped)."""
    found: dict = {("untreated", 0, 0): lambda rows: rows}
    whole = principal_axes(fit)
    # The control removes the directions k + 1 … 2k.
    removals = [k for k in REMOVED if 2 * k <= len(whole.directions[0])]
    clusters = _cluster_axes(fit, rank=2 * max(removals, default=0))
    for name, axes in (("global", whole), ("clusters", clusters)):
        found[name, 0, 0] = axes.treatment()
        for k in removals:
            for skip in (0, k):
                found[name, k, skip] = axes.treatment(remove=k, skip=skip)
    return found


def _cluster_axes(fit: Tensor, *, rank: int, most: int = MOST_CLUSTERS) -> PrincipalAxes:
    """Principal axes of k-means clusters, each of which varies in `rank` directions at least.

    Begins with `most` clusters and takes one less as long as one of them varies in too few.
    """
    for n_clusters in range(min(most, len(fit) // (rank + 1)), 1, -1):
        means = KMeans(n_clusters, n_init=4, random_state=0).fit(fit.numpy()).cluster_centers_
        sizes = torch.bincount(nearest_centre(fit, means), minlength=n_clusters)
        if sizes.min() > rank:
            axes = principal_axes(fit, centres=means)
            if min(map(len, axes.directions)) >= rank:
                return axes
    return principal_axes(fit)


def _linear(model):
    """A linear model of standardized features, to be fitted."""
    return make_pipeline(StandardScaler(), model)


def _deal_folds(groups: ArrayLike, *, n_folds: int, seed: int = 0) -> np.ndarray:
    """Deal groups of rows to folds as equal in number of groups as can be, (n,).

    `groups` has a label per row. Rows of one group share their fold, so that none of them is
    predicted by a probe that saw another: sentences for their words, word types for their
    occurrences.
    """
    distinct, index = np.unique(np.asarray(groups), return_inverse=True)
    dealt = np.random.default_rng(seed).permutation(np.arange(len(distinct)) % n_folds)
    return dealt[index]


class _Target(NamedTuple):
    """What is to be read off which word vectors; vectors of one group share their fold."""

    probe: str
    rows: np.ndarray  # (n,) of all words
    values: np.ndarray  # (n,)
    groups: np.ndarray  # (n,)
    labels: str = "true"

    def shuffled(self) -> "_Target":
        """The control: the same vectors, with the values of others."""
        dealt = np.random.default_rng(0).permutation(self.values)
        return self._replace(values=dealt, labels="shuffled")


def frequency_target(words: WordBatch, counts: Counter) -> _Target:
    """ln of a word's count in all corpora, from one occurrence per word: new words are held out.

    The mean over occurrences would betray the count by its length: means of many are shorter.
    """
    rows = np.sort(np.unique(words.word, return_index=True)[1])
    values = np.array([math.log(counts[words.word[row]]) for row in rows])
    return _Target("frequency", rows, values, rows)


def type_target(words: WordBatch) -> _Target:
    """Which of the 40 commonest words it is, from all their occurrences: sentences are held out."""
    common = {word for word, _ in Counter(words.word).most_common(TYPES)}
    rows = np.array([row for row, word in enumerate(words.word) if word in common])
    values = np.array(words.word)[rows]
    return _Target("type", rows, values, words.sentence.numpy()[rows])


def probed(x: Tensor, target: _Target, *, seed: int = 0) -> dict:
    """What a ridge regression reads off word vectors (n, d), each half predicted from the other.

    ``value`` is R² for frequencies and accuracy for types; ``chance`` is the same of predicting the
    mean or the commonest type of the other half.
    """
    x, halves = x[target.rows].double().numpy(), _deal_folds(target.groups, n_folds=2, seed=seed)
    ridge, dummy, score = {
        "frequency": (RidgeCV(ALPHAS), DummyRegressor(), r2_score),
        "type": (RidgeClassifierCV(ALPHAS), DummyClassifier(), accuracy_score),
    }[target.probe]
    value, chance = (
        score(target.values, cross_val_predict(model, x, target.values, cv=PredefinedSplit(halves)))
        for model in (_linear(ridge), dummy)
    )
    found = {"probe": target.probe, "labels": target.labels, "n": len(x)}
    return found | {"value": float(value), "chance": float(chance)}


# --- 08b: words that several encoders read, row for row -------------------------------------------


Similarity = tuple[str, int, int, float]  # measure, layer of the first, layer of the second, value
SIMILARITIES = ("cka", "cka_debiased", "svcca", "pwcca", "rsa")
TRACKED = ("cka_debiased", "rsa")  # 0 on average for shuffled rows
WORDS = 2000  # rows of the measures that need n ≫ 2d


def thinned(words: WordBatch) -> Tensor:
    """The vectors of at most 2,000 words, evenly spaced over the texts, (layers, n, d)."""
    n = len(words.word)
    kept = torch.arange(min(n, WORDS)) * n // min(n, WORDS)
    return words.vectors[:, kept]


def sentence_means(words: WordBatch) -> Tensor:
    """The mean of each sentence's words, (layers, sentences, d)."""
    x = words.vectors
    _, index, sizes = words.sentence.unique(return_inverse=True, return_counts=True)
    sums = x.new_zeros(len(x), len(sizes), x.shape[2])
    return sums.index_add_(1, index, x) / sizes[:, None]


def compared_rows(words: WordBatch, measure: str) -> Tensor:
    """The vectors that a measure compares: sentences for RSA, words for the others."""
    return sentence_means(words) if measure == "rsa" else thinned(words)


def diagnostic_texts(profile: Profile) -> list[str]:
    """Sentences of all corpora that every encoder of a comparison reads."""
    n = max(8, profile.diagnostic_sentences // 3)
    return load_sentences("all", n=n, seed=profile.base_seed)["text"][:]


def pretrained_and_random(profile: Profile) -> tuple[WordBatch, WordBatch]:
    """The same words of the pretrained encoder and of its architecture with random weights."""
    name, texts = profile.models[0], diagnostic_texts(profile)
    encoders = load_encoder(name, device="auto"), random_encoder(name, seed=profile.base_seed + 1)
    return word_states(encoders[0], texts), word_states(encoders[1], texts)


def shuffled(x: Tensor, *, seed: int = 0) -> Tensor:
    """The rows of x (n, d) in a random order: the null of every similarity."""
    return x[np.random.default_rng(seed).permutation(len(x))]


def _equal_layers(
    x: WordBatch, y: WordBatch, measures: Iterable[str] = TRACKED
) -> list[Similarity]:
    """Every layer of x beside the same layer of y."""
    rows = []
    for name in measures:
        pairs = zip(compared_rows(x, name), compared_rows(y, name), strict=True)
        for i, (a, b) in enumerate(pairs):
            rows.append((name, i, i, similarity_grid(name, [a], [b]).item()))
    return rows


def compared_runs(profile: Profile) -> Iterator[tuple[str, RunConfig, list[Similarity]]]:
    """Kind of pair, run and rows of each fine-tuned encoder of the first model and task.

    ``finetuned``: beside what it was; ``within``: all pairs of its own layers; of arm ``none``,
    ``neighbours``: the layers that share most nearest neighbours with random weights; of the others
    ``arms``: beside arm ``none`` of the same seed.
    """
    texts, states, plain = diagnostic_texts(profile), pretrained_and_random(profile), {}
    for run in chosen_runs(profile):
        encoder, config = run_encoder(run, device="auto"), run.config
        before, chance, after = shared_words(*states, word_states(encoder, texts))
        first = config.arm == "none" and config.seed == profile.runs()[0].seed
        yield "finetuned", config, _equal_layers(before, after, SIMILARITIES if first else TRACKED)
        grid = similarity_grid("cka_debiased", thinned(after)).tolist()
        pairs = [("cka_debiased", i, j, x) for i, row in enumerate(grid) for j, x in enumerate(row)]
        yield "within", config, pairs
        if config.arm == "none":
            plain[config.seed] = after
            clouds, seed = (sentence_means(after), sentence_means(chance)), profile.base_seed
            found = calibrated_maximum("mutual_knn", *clouds, seed=seed)  # beside its null
            named = {"mutual_knn": found.value, "null": found.null, "calibrated": found.calibrated}
            yield "neighbours", config, [(k, *found.layers, x) for k, x in named.items()]
        elif config.seed in plain:
            yield "arms", config, _equal_layers(plain[config.seed], after)


def chosen_runs(profile: Profile) -> list[Run]:
    """Runs of the first model and task: without a regularizer, then with prominent bars."""
    first, folder = profile.runs()[0], profile.folder / "runs"
    configs = [c for c in profile.runs() if (c.model, c.task) == (first.model, first.task)]
    chosen = [config for arm in ("none", "prominent") for config in configs if config.arm == arm]
    return [run_or_load(config, folder) for config in chosen]
