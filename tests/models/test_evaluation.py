"""Evaluation leaves no trace in a model."""

from __future__ import annotations

import pytest

from shrink_utils.models import evaluating


def test_evaluating_leaves_every_module_in_the_mode_it_was_in(make_model):
    model = make_model("mlm", 0).train()
    model.bert.encoder.layer[1].eval()
    before = [module.training for module in model.modules()]
    with evaluating(model):
        assert not any(module.training for module in model.modules())
    with pytest.raises(KeyError), evaluating(model):
        raise KeyError
    assert [module.training for module in model.modules()] == before
