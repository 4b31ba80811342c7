"""Every layer of an encoder over a whole corpus, in one pass that holds no word's vector."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import isnan

import pandas as pd
import torch
from torch import Tensor

from shrink_utils.geometry import anisotropy, effective_rank, iso_score, similarity_grid
from shrink_utils.geometry.streaming import AvgSim, RogueDimensions, SelfSim
from shrink_utils.models import Encoder, WordBatch, load_encoder, split_words, word_batches
from shrink_utils.study.measured import measured
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import progress_bar
from shrink_utils.text import load_sentences

# Texts that are tokenized and sorted together: their tokens take some 7 kB each.
PORTION = 65_536


class CorpusMetrics:
    """What one pass keeps of every layer: sums over words, and the mean vector of each sentence.

    Of 24,000 sentences in seven layers of 384 the means take 260 MB; their words would take 4 GB.

    Parameters
    ----------
    vocabulary : sequence of str
        Words whose SelfSim is measured, each in at least `min_count` sentences.
    """

    def __init__(
        self, n_layers: int, width: int, vocabulary: Sequence[str], *, min_count: int = 5
    ) -> None:
        self.vocabulary = list(vocabulary)
        self.index = {word: i for i, word in enumerate(vocabulary)}
        layers = range(n_layers)
        self.avg_sim = [AvgSim(width) for _ in layers]
        self.rogue = [RogueDimensions(width) for _ in layers]
        self.self_sim = [SelfSim(len(vocabulary), width, min_count=min_count) for _ in layers]
        self.means: list[Tensor] = []  # (layers, sentences, width) of each batch

    def update(self, batch: WordBatch) -> None:
        """Take in the words of some whole sentences; a batch without a word changes nothing."""
        if not batch.word:
            return
        words = torch.tensor([self.index.get(word, -1) for word in batch.word])
        sentences = batch.sentence
        for layer, x in enumerate(batch.vectors):  # (words, width)
            self.avg_sim[layer].update(x, sentences)
            self.rogue[layer].update(x)
            self.self_sim[layer].update(x, words, sentences)
        index, sizes = sentences.unique(return_inverse=True, return_counts=True)[1:]
        vectors = batch.vectors.double()  # (layers, words, width)
        sums = vectors.new_zeros(len(vectors), len(sizes), vectors.shape[2])
        sums.index_add_(1, index.to(vectors.device), vectors)
        self.means.append((sums / sizes.to(sums)[:, None]).float().cpu())

    def table(self) -> pd.DataFrame:
        """All values, one per row; `measure_corpus` names the columns."""
        means = torch.cat(self.means, dim=1)  # (layers, sentences, width)
        rows = []
        for layer, alignments in enumerate(similarity_grid("cka_debiased", means).tolist()):
            x = means[layer]
            values = {
                "avg_sim": self.avg_sim[layer].compute().item(),
                "anisotropy": anisotropy(x, k=1, center=True).item(),
                "iso_score": iso_score(x, bias_corrected=True),
                "effective_rank": effective_rank(x),
            }
            shares = self.rogue[layer].compute().tolist()
            self_sim = self.self_sim[layer].compute().reshape(-1).tolist()
            rows += [(name, layer, "", value) for name, value in values.items()]
            rows += [("rogue_dimension", layer, str(i), share) for i, share in enumerate(shares)]
            rows += [("cka", layer, str(other), cka) for other, cka in enumerate(alignments)]
            by_word = zip(self.vocabulary, self_sim, strict=True)
            rows += [("self_sim", layer, w, value) for w, value in by_word if not isnan(value)]
        return pd.DataFrame(rows, columns=["quantity", "layer", "item", "value"])


def frequent_words(texts: Sequence[str], *, min_count: int = 5) -> list[str]:
    """Words that stand in at least `min_count` of the texts, sorted."""
    counts = Counter(word for text in texts for word in set(split_words(text)))
    return sorted(word for word, count in counts.items() if count >= min_count)


def accumulate(metrics: CorpusMetrics, batches: Iterable[WordBatch]) -> Iterator[int]:
    """Take in the batches in order, each in a second thread while the encoder reads the next.

    Yields the number of texts of each batch.
    """
    with ThreadPoolExecutor(1) as beside:
        before = beside.submit(int)
        for batch in batches:
            before.result()  # raises what it raised
            before = beside.submit(metrics.update, batch)
            yield batch.n_texts
        before.result()


def stream_corpus(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    min_count: int = 5,
    batch_size: int = 64,
) -> CorpusMetrics:
    """Read all texts once and accumulate, layer by layer, with a progress bar.

    Parameters
    ----------
    encoder, texts, batch_size
        As in `word_batches`.
    min_count : int
        Fewest sentences in which a word must stand for its SelfSim.

    Raises
    ------
    ValueError
        As `word_batches`, or no word stands in `min_count` texts.
    """
    vocabulary = frequent_words(texts, min_count=min_count)
    width = encoder.model.config.hidden_size
    metrics = CorpusMetrics(len(encoder.layers), width, vocabulary, min_count=min_count)
    with progress_bar(total=len(texts), unit="sentence", description=encoder.name) as bar:
        for start in range(0, len(texts), PORTION):
            portion = texts[start : start + PORTION]
            batches = word_batches(encoder, portion, batch_size=batch_size)
            for n_texts in accumulate(metrics, batches):
                bar.update(n_texts)
    return metrics


@measured("corpus")
def measure_corpus(profile: Profile) -> pd.DataFrame:
    """Every layer of the profile's first encoder over its corpus, in one pass.

    Returns
    -------
    DataFrame
        One ``value`` per row; ``quantity``, ``layer`` and ``item`` say of what. Of words, as
        vectors: ``avg_sim`` (pairs from different sentences), ``rogue_dimension`` (`item`: the
        dimension), ``self_sim`` (`item`: the word; pairs from different sentences). Of sentences,
        as means of their words: ``anisotropy`` (first centred score), ``iso_score``
        (bias-corrected), ``effective_rank`` (centred), ``cka`` (debiased; `item`: the other layer).
    """
    return corpus_of(load_encoder(profile.models[0], device="auto"), profile)


def corpus_of(encoder: Encoder, profile: Profile) -> pd.DataFrame:
    """The table of `measure_corpus` of any encoder."""
    sentences = load_sentences("all", n=profile.corpus_sentences, seed=profile.base_seed)
    return stream_corpus(encoder, list(sentences["text"])).table()
