"""Two real processes that synchronise by torch.distributed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp

from tests.geometry.streaming.conftest import CASES, CLOUDS, N, assert_same, split

ROOT = Path(__file__).parents[3]
# How many of the five pieces the second process gets: some, or all, so that the first has no row.
SHARES = {"offset": 2, "tiny": 5}


def _own_pieces(case, cloud, rank):
    pieces = split(case, np.random.default_rng(0), 5)
    return pieces[: SHARES[cloud]] if rank else pieces[SHARES[cloud] :]


def _update(metric, case, cloud, pieces):
    for rows in pieces:
        metric.update(*case.batch(CLOUDS[cloud], rows))


def _worker(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=2
    )
    found = {}
    for name, case in CASES.items():
        for cloud in SHARES:
            metric = case.make()
            _update(metric, case, cloud, _own_pieces(case, cloud, rank))
            value = metric.compute()
            _update(metric, case, cloud, [np.arange(N)])
            found[name, cloud] = (value, metric.metric_state)
    torch.save(found, f"{folder}/{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each process computed, and its state after more rows of its own."""
    folder = tmp_path_factory.mktemp("processes")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)  # for the children, who import this module
        mp.start_processes(_worker, args=(str(folder),), nprocs=2, start_method="spawn")
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


@pytest.mark.parametrize("cloud", SHARES)
@pytest.mark.parametrize("name", CASES)
def test_two_processes_compute_what_one_would(found, name, cloud):
    expected = CASES[name].expected(CLOUDS[cloud])
    for of_rank in found:
        assert_same(of_rank[name, cloud][0], expected)


@pytest.mark.parametrize("cloud", SHARES)
@pytest.mark.parametrize("name", CASES)
def test_a_process_goes_on_with_its_own_rows(found, name, cloud):
    case = CASES[name]
    for rank, of_rank in enumerate(found):
        metric = case.make()
        _update(metric, case, cloud, [*_own_pieces(case, cloud, rank), np.arange(N)])
        for key, state in of_rank[name, cloud][1].items():
            torch.testing.assert_close(state, metric.metric_state[key], rtol=0, atol=0)
