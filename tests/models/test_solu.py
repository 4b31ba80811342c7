"""SoLU: a softmax-weighted unit with its LayerNorm."""

from __future__ import annotations

import math

import pytest
import torch

from shrink_utils.models import SoLU


def test_it_is_the_definition_number_by_number():
    x = [0.5, -1.0, 2.0]
    exps = [math.exp(v) for v in x]
    y = [v * e / sum(exps) for v, e in zip(x, exps, strict=True)]
    mean = sum(y) / 3
    var = sum((v - mean) ** 2 for v in y) / 3
    expected = [(v - mean) / math.sqrt(var + 1e-5) for v in y]
    assert SoLU(3)(torch.tensor(x)).tolist() == pytest.approx(expected, abs=1e-6)


def test_each_vector_by_itself_and_the_shape_stays():
    x = torch.randn(2, 5, 8)
    y = SoLU(8)(x)
    assert y.shape == x.shape
    torch.testing.assert_close(y[1, 3], SoLU(8)(x[1, 3]))


def test_the_largest_neuron_outshines_the_others():
    y = SoLU(4)(torch.tensor([4.0, 1.0, 0.0, -1.0]))
    assert y.argmax() == 0 and y[1:].max() < 0


def test_its_gain_and_shift_can_be_trained():
    module = SoLU(6)
    module(torch.randn(3, 6)).pow(2).sum().backward()
    assert {name for name, p in module.named_parameters() if p.grad.abs().sum() > 0} == {
        "norm.weight",
        "norm.bias",
    }
