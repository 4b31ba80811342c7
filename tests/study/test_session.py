"""The first line of every notebook."""

import torch
from threadpoolctl import threadpool_info, threadpool_limits

from shrink_utils.study import begin


def test_begin_sets_the_threads_of_torch_and_numpy_and_the_seed(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    with threadpool_limits(2, user_api="blas"):
        profile = begin("quick", seed=5)
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert pools and {pool["num_threads"] for pool in pools} == {profile.threads} == {*asked}
    drawn = torch.rand(3)
    begin("quick", seed=5)
    assert torch.equal(drawn, torch.rand(3)) and profile.base_seed == 5
