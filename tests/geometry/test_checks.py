"""The door of the room: what is read, what is refused, and that the message says so."""

import numpy as np
import pandas as pd
import pytest
import torch

from shrink_utils import geometry
from shrink_utils.topology.arrays import unit_rows
from tests.geometry.conftest import ROW_FUNCTIONS


def _cloud(n=12, d=5, **options):
    return torch.randn(n, d, dtype=torch.float64, **options)


@pytest.mark.parametrize("function", ROW_FUNCTIONS)
def test_every_view_of_the_same_numbers_gives_the_same_result(function):
    x = _cloud().float()  # exact in every format below
    read_only = x.numpy().copy()
    read_only.flags.writeable = False
    expected = function(x)
    views = [
        x.double(),
        x.numpy(),
        x.tolist(),
        pd.DataFrame(x.numpy()),
        read_only,
        np.flip(np.flip(x.numpy(), axis=1).copy(), axis=1),  # negative strides
        x.numpy().astype(">f4"),  # the other byte order
        x.numpy().astype(np.longdouble),
        list(x),
        x.clone().requires_grad_(),
    ]
    for view in views:
        torch.testing.assert_close(function(view), expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(views[0], x.double()) and np.array_equal(x, read_only)  # left unchanged


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("function", ROW_FUNCTIONS)
def test_low_precision_input_is_computed_in_float64(function, dtype):
    x = (_cloud() * 100 + 1e3).to(dtype)  # squares overflow float16
    torch.testing.assert_close(function(x), function(x.double()), rtol=0, atol=0)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_unit_rows_have_length_one_at_any_scale(scale):
    lengths = unit_rows(_cloud() * scale).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths), rtol=0, atol=1e-15)


def test_labels_may_be_any_tensor():
    x, labels = _cloud(4), torch.tensor([0.0, 0, 1, 1])
    expected = geometry.avg_sim(x, groups=labels.tolist()).value
    kinds = labels.bfloat16(), labels.clone().requires_grad_(), labels.int(), labels.to_sparse()
    for given in kinds:
        assert geometry.avg_sim(x, groups=given).value == expected
