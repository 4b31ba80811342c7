"""Words of two encoders, matched, and the rows that measures of similarity compare."""

import torch

from shrink_utils.models import WordBatch
from shrink_utils.study.matched_words import Layers, matched_layers


def _states(names):
    """A vector that tells its sentence and position, in two layers."""
    sentence, position = torch.tensor(names).T
    vectors = torch.stack([sentence, position], dim=1).float()
    return WordBatch(
        vectors=torch.stack([vectors, vectors + 100]),
        sentence=sentence,
        position=position,
        word=["w"] * len(names),
        n_texts=3,
    )


def test_words_are_matched_by_sentence_and_position():
    first = _states([(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)])
    second = _states([(2, 1), (0, 0), (0, 2), (1, 0)])
    x, y = matched_layers(first, second)
    assert x.words[0].tolist() == [[0, 0], [0, 2], [2, 1]]
    assert torch.equal(x.words, y.words)
    assert x.sentence.tolist() == y.sentence.tolist() == [0, 0, 2]
    assert x.rows("rsa")[0].tolist() == [[0, 1], [2, 1]]  # the means of both sentences


def test_many_words_are_thinned_evenly_and_few_are_kept():
    many = Layers(torch.arange(5000.0).reshape(1, 5000, 1), torch.arange(5000) // 10)
    kept = many.thinned()
    assert kept.words.shape == (1, 2000, 1)
    assert kept.words[0, :4, 0].tolist() == [0, 2, 5, 7]
    assert kept.sentence.tolist() == (kept.words[0, :, 0].long() // 10).tolist()
    few = Layers(many.words[:, :30], many.sentence[:30])
    assert torch.equal(few.rows("cka"), few.words)
