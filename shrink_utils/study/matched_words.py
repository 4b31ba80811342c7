"""Words that several encoders read, row for row, and what measures of similarity find in them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from shrink_utils.geometry import calibrated_maximum, similarity_grid
from shrink_utils.models import WordBatch, load_encoder, random_encoder, word_states
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs import Run, RunConfig, run_encoder, run_or_load
from shrink_utils.text import load_sentences

Similarity = tuple[str, int, int, float]  # measure, layer of the first, layer of the second, value
SIMILARITIES = ("cka", "cka_debiased", "svcca", "pwcca", "rsa")
TRACKED = ("cka_debiased", "rsa")  # 0 on average for shuffled rows
WORDS = 2000  # rows of the measures that need n ≫ 2d


@dataclass(frozen=True)
class Layers:
    """The vectors that one encoder makes of some texts, layer by layer."""

    words: Tensor  # (layers, n, d)
    sentence: Tensor  # (n,): the sentence of each word

    def thinned(self) -> "Layers":
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


def diagnostic_texts(profile: Profile) -> list[str]:
    """Sentences of all corpora that every encoder of a comparison reads."""
    n = max(8, profile.diagnostic_sentences // 3)
    return load_sentences("all", n=n, seed=profile.base_seed)["text"][:]


def pretrained_and_random(profile: Profile) -> tuple[WordBatch, WordBatch]:
    """Words of the pretrained encoder, and of the same architecture with random weights."""
    name, texts = profile.models[0], diagnostic_texts(profile)
    encoders = load_encoder(name, device="auto"), random_encoder(name, seed=profile.base_seed + 1)
    return word_states(encoders[0], texts), word_states(encoders[1], texts)


def shuffled(x: Tensor, *, seed: int = 0) -> Tensor:
    """The rows of x (n, d) in a random order: the null of every similarity."""
    return x[np.random.default_rng(seed).permutation(len(x))]


def _equal_layers(x: Layers, y: Layers, measures: Iterable[str] = TRACKED) -> list[Similarity]:
    """Every layer of x beside the same layer of y."""
    return [
        (name, i, i, similarity_grid(name, [a], [b]).item())
        for name in measures
        for i, (a, b) in enumerate(zip(x.rows(name), y.rows(name), strict=True))
    ]


def compared_runs(profile: Profile) -> Iterator[tuple[str, RunConfig, list[Similarity]]]:
    """Kind of pair, run and rows of each fine-tuned encoder of the first model and task.

    ``finetuned``: beside what it was; ``within``: all pairs of its own layers; of arm ``none``,
    ``neighbours``: the layers that share most nearest neighbours with random weights; of the others
    ``arms``: beside arm ``none`` of the same seed.
    """
    texts, states, plain = diagnostic_texts(profile), pretrained_and_random(profile), {}
    for run in chosen_runs(profile):
        encoder, config = run_encoder(run, device="auto"), run.config
        before, chance, after = matched_layers(*states, word_states(encoder, texts))
        first = config.arm == "none" and config.seed == profile.runs()[0].seed
        yield "finetuned", config, _equal_layers(before, after, SIMILARITIES if first else TRACKED)
        yield "within", config, _all_pairs(after)
        if config.arm == "none":
            plain[config.seed] = after
            yield "neighbours", config, _neighbours(after, chance, profile.base_seed)
        elif config.seed in plain:
            yield "arms", config, _equal_layers(plain[config.seed], after)


def chosen_runs(profile: Profile) -> list[Run]:
    """Runs of the first model and task: without a regularizer, then with prominent bars."""
    first, folder = profile.runs()[0], profile.folder / "runs"
    configs = [c for c in profile.runs() if (c.model, c.task) == (first.model, first.task)]
    chosen = [config for arm in ("none", "prominent") for config in configs if config.arm == arm]
    return [run_or_load(config, folder) for config in chosen]


def _all_pairs(x: Layers, measure: str = "cka_debiased") -> list[Similarity]:
    grid = similarity_grid(measure, x.rows(measure)).tolist()
    return [(measure, i, j, value) for i, row in enumerate(grid) for j, value in enumerate(row)]


def _neighbours(x: Layers, y: Layers, seed: int) -> list[Similarity]:
    """The two layers whose sentences share most near neighbours, and the null of the search."""
    found = calibrated_maximum("mutual_knn", x.sentences(), y.sentences(), seed=seed)
    values = {"mutual_knn": found.value, "null": found.null, "calibrated": found.calibrated}
    return [(name, *found.layers, value) for name, value in values.items()]
