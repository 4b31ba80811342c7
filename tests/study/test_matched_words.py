"""Words of two encoders, matched, and the rows that measures of similarity compare."""

import torch

from shrink_utils.models import WordBatch
from shrink_utils.study.matched_words import Layers, _equal_layers, matched_layers, shuffled


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


def test_equal_layers_are_compared_in_order_and_shuffled_rows_are_the_same_rows():
    words = torch.randn(3, 60, 4, generator=torch.Generator().manual_seed(0))
    x = Layers(words, torch.arange(60) // 5)
    y = Layers(words.flip(0), x.sentence)
    rows = _equal_layers(x, y, ("cka",))
    assert [row[:3] for row in rows] == [("cka", i, i) for i in range(3)]
    assert [row[3] > 0.999 for row in rows] == [False, True, False]  # the middle one is its own
    mixed = shuffled(words[0])
    assert not torch.equal(mixed, words[0])
    assert torch.equal(mixed[mixed[:, 0].argsort()], words[0][words[0][:, 0].argsort()])
