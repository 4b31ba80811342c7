"""The first line of every notebook."""

from __future__ import annotations

import gc

import torch

from shrink_utils.study import begin


def test_begin_sets_threads_and_seed(monkeypatch):
    asked = []
    monkeypatch.setattr(torch, "set_num_threads", asked.append)
    profile = begin("quick", seed=5)
    assert asked == [profile.threads]
    drawn = torch.rand(3)
    begin("quick", seed=5)
    assert torch.equal(drawn, torch.rand(3))
    assert profile.base_seed == 5


def test_what_is_imported_by_then_is_in_no_later_collection():
    gc.unfreeze()
    begin("quick")
    assert gc.get_freeze_count() > 10_000
    assert len(gc.get_objects()) < 10_000
