"""However rows are split, dealt to workers and merged: the value of all rows at once."""

import pickle
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from shrink_utils.geometry import anisotropy, avg_sim, cka, iso_score, self_sim
from shrink_utils.geometry.streaming import CKA, AvgSim, IsoScore, SelfSim, Spectrum

N, D = 60, 6
WORDS = np.random.default_rng(1).integers(-1, 6, size=N)  # −1: outside of the vocabulary
SENTENCES = np.repeat(np.arange(20), 3)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * [3, 2, 1, 1, 0.5, 0.1] + 0.3
CLOUDS = {
    "random": X,
    "rank-deficient": X @ RNG.normal(size=(D, 2)) @ RNG.normal(size=(2, D)),
    "offset": X + 10,
    "small": X * 1e-8,
    "float32": X.astype(np.float32),
}


class Case(NamedTuple):
    """A metric, its batch out of row numbers, and what all rows together must give."""

    make: Callable
    batch: Callable  # (x, rows) -> arguments of update
    expected: Callable  # x -> value


def other_side(x):
    """A second representation of the same rows, of another width and with noise of its own."""
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(len(x), 4)) * np.abs(x - x.mean(0)).max()
    return x @ rng.normal(size=(x.shape[1], 4)) + noise


def _self_sim_by_id(x, contexts=None):
    known = WORDS >= 0
    contexts = None if contexts is None else contexts[known]
    per_word = self_sim(x[known], WORDS[known], sentences=contexts, min_count=5).per_word
    return [per_word.get(word, np.nan) for word in range(6)]


def _rows(x, rows):
    return (x[rows],)


CASES = {
    "AvgSim": Case(partial(AvgSim, D), _rows, lambda x: avg_sim(x).value),
    "AvgSim of groups": Case(
        partial(AvgSim, D),
        lambda x, rows: (x[rows], SENTENCES[rows]),
        lambda x: avg_sim(x, groups=SENTENCES).value,
    ),
    "SelfSim": Case(partial(SelfSim, 6, D), lambda x, i: (x[i], WORDS[i]), _self_sim_by_id),
    "SelfSim of sentences": Case(
        partial(SelfSim, 6, D),
        lambda x, rows: (x[rows], WORDS[rows], SENTENCES[rows]),
        lambda x: _self_sim_by_id(x, SENTENCES),
    ),
    "Spectrum": Case(partial(Spectrum, D, k=D), _rows, partial(anisotropy, k=D)),
    "Spectrum, centred": Case(
        partial(Spectrum, D, center=True), _rows, partial(anisotropy, center=True)
    ),
    "IsoScore": Case(partial(IsoScore, D), _rows, iso_score),
    "CKA": Case(
        partial(CKA, D, 4),
        lambda x, rows: (x[rows], other_side(x)[rows]),
        lambda x: cka(x, other_side(x)),
    ),
}


def split(rng, n_pieces):
    """Row numbers in random order and in random pieces, sentences whole."""
    units = [np.flatnonzero(SENTENCES == s) for s in rng.permutation(20)]
    return [np.concatenate(part) for part in np.array_split(np.array(units), n_pieces)]


def assert_same(value, expected):
    np.testing.assert_allclose(
        np.asarray(value, float), np.asarray(expected, float), rtol=1e-9, atol=1e-12, equal_nan=True
    )


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), n_pieces=st.integers(2, 12), n_workers=st.integers(1, 4))
@pytest.mark.parametrize("name", CASES)
def test_random_splits_and_merges_give_the_value_of_all_rows(name, seed, n_pieces, n_workers):
    case, rng = CASES[name], np.random.default_rng(seed)
    x = list(CLOUDS.values())[seed % len(CLOUDS)]
    workers = [case.make() for _ in range(n_workers)]  # some may see no row at all
    for rows in split(rng, n_pieces):
        workers[rng.integers(n_workers)].update(*case.batch(x, rows))
    for other in workers[1:]:
        workers[0].merge_state(other)
    assert_same(workers[0].compute(), case.expected(x))


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_merge_after_a_value_counts_and_leaves_the_other_as_it_was(case):
    first, second, shapes = case.make(), case.make(), []
    first.update(*case.batch(X, np.arange(30)))
    second.update(*case.batch(X, np.arange(30, 60)))
    before = pickle.dumps(second.metric_state)
    first.compute()
    first.merge_state(second)
    assert_same(first.compute(), case.expected(X))
    assert pickle.dumps(second.metric_state) == before
    # A state is float64 and has one size for any number of rows.
    for _ in range(9):
        shapes.append({name: state.shape for name, state in first.metric_state.items()})
        first.update(*case.batch(X, np.arange(N)))
    assert all(shape == shapes[0] for shape in shapes)
    assert {state.dtype for state in first.metric_state.values()} == {torch.float64}


@pytest.mark.parametrize("offset", [1e2, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("name", ["Spectrum, centred", "IsoScore", "CKA"])
def test_sums_far_from_zero_are_exact_to_1e_8_or_refused(name, offset):
    x, case = X + offset, CASES[name]
    metric = case.make()
    metric.update(*case.batch(x, np.arange(N)))
    try:
        value = metric.compute()
    except ValueError as error:
        assert "subtract a row near their mean" in str(error) and offset > 1e2
    else:
        np.testing.assert_allclose(value, case.expected(x), rtol=1e-7, atol=1e-9)
        assert offset < 1e8


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_sums_stay_in_float64_where_the_model_around_them_changes_its_precision(dtype):
    model = torch.nn.ModuleDict({"metric": IsoScore(D)})
    model["metric"].update(X[:30])
    model.to(dtype)
    model.half()
    model["metric"].set_dtype(dtype)
    assert {state.dtype for state in model["metric"].metric_state.values()} == {torch.float64}
    model["metric"].update(X[30:])
    assert float(model["metric"].compute()) == pytest.approx(iso_score(X), rel=1e-12)


def test_words_are_whole_numbers_of_any_width():
    metric, expected = SelfSim(6, D), SelfSim(6, D)
    words = WORDS.clip(0)
    metric.update(X, words.astype(np.uint16))
    expected.update(X, words)
    torch.testing.assert_close(metric.compute(), expected.compute(), equal_nan=True)
