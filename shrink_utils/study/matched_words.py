"""Words that several encoders read, row for row, and what a measure of similarity compares."""

from dataclasses import dataclass

import torch
from torch import Tensor

from shrink_utils.models import WordBatch

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
