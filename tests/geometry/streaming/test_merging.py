"""However rows are split, dealt to workers and merged: the value of all rows at once."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics import MetricCollection

from shrink_utils.geometry.streaming import AvgSim, EffectiveRank, IsoScore, SelfSim, Spectrum
from tests.geometry.streaming.conftest import CASES, CLOUDS, N, assert_same, split


def _stream(case, x, pieces):
    metric = case.make()
    for rows in pieces:
        metric.update(*case.batch(x, rows))
    return metric


@pytest.mark.parametrize("step", [1, 15])
def test_batches_in_order_give_the_value_of_all_rows(case, cloud, step):
    step = max(step, 3 if case.whole_sentences else 1)
    pieces = [np.arange(start, start + step) for start in range(0, N, step)]
    value = _stream(case, cloud, pieces).compute()
    assert value.dtype == torch.float64
    assert_same(value, case.expected(cloud))


@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), n_pieces=st.integers(2, 12), n_workers=st.integers(1, 4))
@pytest.mark.parametrize("name", CASES)
def test_random_splits_and_merges_give_the_value_of_all_rows(name, seed, n_pieces, n_workers):
    case, rng = CASES[name], np.random.default_rng(seed)
    x = list(CLOUDS.values())[seed % len(CLOUDS)]
    workers = [case.make() for _ in range(n_workers)]  # some may see no row at all
    for rows in split(case, rng, n_pieces):
        workers[rng.integers(n_workers)].update(*case.batch(x, rows))
    while len(workers) > 1:
        first, second = rng.choice(len(workers), size=2, replace=False)
        workers[first].merge_state(workers[second])
        del workers[second]
    assert_same(workers[0].compute(), case.expected(x))


def test_workers_whose_rows_differ_by_200_orders_of_magnitude_merge(case):
    x = CLOUDS["random"] * np.where(np.arange(N) < 30, 1e-100, 1e100)[:, None]
    small = _stream(case, x, [np.arange(30)])
    small.merge_state(_stream(case, x, [np.arange(30, 60)]))
    assert_same(small.compute(), case.expected(x))


def test_a_metric_without_rows_merges_either_way(case):
    x, expected = CLOUDS["random"], case.expected(CLOUDS["random"])
    full, empty = _stream(case, x, [np.arange(N)]), case.make()
    empty.merge_state(case.make())
    full.merge_state(empty)
    assert_same(full.compute(), expected)
    empty.merge_state(full)
    assert_same(empty.compute(), expected)


@pytest.mark.parametrize("given", [lambda metric: metric, lambda metric: metric.metric_state])
def test_a_merge_after_a_value_counts_and_leaves_the_other_as_it_was(case, given):
    x = CLOUDS["offset"]
    first, second = _stream(case, x, [np.arange(30)]), _stream(case, x, [np.arange(30, 60)])
    before = deepcopy(second.metric_state)
    first.compute()
    first.merge_state(given(second))
    assert_same(first.compute(), case.expected(x))
    for name, state in second.metric_state.items():
        assert torch.equal(state, before[name])


def test_forward_gives_the_batch_and_keeps_the_whole(case):
    x = CLOUDS["random"]
    metric = _stream(case, x, [np.arange(30)])
    batch = case.batch(x, np.arange(30, 60))
    assert_same(metric(*batch), _stream(case, x, [np.arange(30, 60)]).compute())
    assert_same(metric.compute(), case.expected(x))


@pytest.mark.parametrize("options", [{}, {"dist_sync_on_step": True}])
@pytest.mark.parametrize("fails_in", ["update", "compute"])
def test_a_forward_that_fails_leaves_the_metric_as_it_was(case, fails_in, options):
    x, rows = CLOUDS["random"], np.arange(30)
    metric = case.make(**options)
    metric.update(*case.batch(x, rows))
    before, value = deepcopy(metric.metric_state), metric.compute()

    def refuse(*args):
        raise ValueError("refused")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metric, fails_in, refuse)
        with pytest.raises(ValueError, match="refused"):
            metric(*case.batch(x, np.arange(30, 60)))
    for name, state in metric.metric_state.items():
        assert torch.equal(state, before[name])
    assert metric.update_count == 1
    assert_same(metric.compute(), value)
    metric.update(*case.batch(x, np.arange(30, 60)))
    assert_same(metric.compute(), case.expected(x))


def test_a_batch_of_one_row_whose_value_is_undefined_costs_no_earlier_row():
    metric = AvgSim(6)
    metric(torch.from_numpy(CLOUDS["random"]))
    with pytest.raises(ValueError, match="AvgSim needs at least 2"):
        metric(torch.from_numpy(CLOUDS["random"][:1]))
    assert metric.n_rows == N


def test_reset_forgets_every_row(case):
    x = CLOUDS["random"]
    metric = _stream(case, CLOUDS["huge"], [np.arange(N)])
    metric.reset()
    metric.update(*case.batch(x, np.arange(N)))
    assert_same(metric.compute(), case.expected(x))
    assert_same(case.make()(*case.batch(x, np.arange(N))), case.expected(x))


def test_a_state_has_one_size_for_any_number_of_rows(case):
    def size(metric):
        return len(pickle.dumps(metric))

    x, rows = CLOUDS["random"], np.arange(N)
    once, often = _stream(case, x, [rows]), _stream(case, x, [rows] * 20)
    assert size(often) == pytest.approx(size(once), abs=8)  # a counter may take more digits
    assert all(state.dtype == torch.float64 for state in often.metric_state.values())


def test_the_default_of_a_state_takes_no_memory(case):
    for default in case.make()._defaults.values():
        assert default.untyped_storage().nbytes() == 8


def test_metrics_of_other_shapes_do_not_merge():
    with pytest.raises(ValueError, match=r"total has shape \(4,\), here it has \(6,\); construct"):
        AvgSim(6).merge_state(AvgSim(4))
    with pytest.raises(ValueError, match=r"moments has shape .*; construct both metrics alike"):
        IsoScore(6).merge_state(IsoScore(4))
    with pytest.raises(ValueError, match="instance of AvgSim"):
        AvgSim(6).merge_state(SelfSim(3, 6))


def test_a_collection_updates_the_three_spectral_metrics_once():
    x = CLOUDS["offset"]
    metrics = {"scores": Spectrum(6), "iso": IsoScore(6), "rank": EffectiveRank(6)}
    group = MetricCollection(metrics, compute_groups=[list(metrics)])
    for rows in np.split(np.arange(N), 4):
        group.update(x[rows])
    states = {m.moments.data_ptr() for m in group.values(copy_state=False)}
    assert len(states) == 1
    for name, value in group.compute().items():
        alone = metrics[name].clone()
        alone.reset()
        assert_same(value, alone(x))


def test_a_metric_goes_on_after_pickling_and_moving_between_devices(case):
    x = CLOUDS["random"]
    metric = pickle.loads(pickle.dumps(_stream(case, x, [np.arange(30)])))
    assert all(s.is_meta for s in deepcopy(metric).to("meta").metric_state.values())
    metric.to("cpu").update(*case.batch(x, np.arange(30, 60)))
    assert_same(metric.compute(), case.expected(x))
