"""The first line of every notebook."""

from types import SimpleNamespace

import torch
from threadpoolctl import threadpool_info, threadpool_limits

from shrink_utils.study import course, setup_notebook


def test_setup_notebook_sets_the_threads_of_torch_and_numpy_and_the_seed(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    with threadpool_limits(2, user_api="blas"):
        profile = setup_notebook("quick", seed=5)
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert pools and {pool["num_threads"] for pool in pools} == {profile.threads} == {*asked}
    drawn = torch.rand(3)
    setup_notebook("quick", seed=5)
    assert torch.equal(drawn, torch.rand(3)) and profile.base_seed == 5


def test_the_check_of_a_chapter_says_what_an_answer_lacks_and_raises_nothing(monkeypatch, capsys):
    names = {"bars": [3, 1]}
    shell = SimpleNamespace(user_ns=names, ex=lambda cell: exec(cell, names))
    monkeypatch.setattr(course, "get_ipython", lambda: shell)
    course._check("", "bars = None\nassert bars, 'Still empty.'\nprint('right')")
    course._check("", "bars[5]")
    course._check("", "assert bars == [3, 1]\nprint('right')")
    stopped = "Not yet. Your answer ends with IndexError: list index out of range\n"
    assert capsys.readouterr().out == f"Not yet. Still empty.\n{stopped}right\n"
