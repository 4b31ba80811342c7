"""Linear layers by oneDNN: the same numbers up to rounding, where nobody needs a gradient."""

import pytest
import torch
from torch.nn import functional

from shrink_utils.models.products import OneDNN


@pytest.mark.parametrize("shape", [(5,), (7, 5), (2, 3, 5)])
@pytest.mark.parametrize("bias", [torch.ones(4), None])
def test_products_are_those_of_torch_and_one_that_needs_a_gradient_is_left_to_it(
    shape, bias, monkeypatch
):
    called, given = [], torch.ops.mkldnn._linear_pointwise
    monkeypatch.setattr(
        torch.ops.mkldnn, "_linear_pointwise", lambda *args: called.append(1) or given(*args)
    )
    x, weight = torch.randn(shape), torch.randn(4, 5, requires_grad=True)
    expected = functional.linear(x, weight, bias)
    with torch.no_grad(), OneDNN():
        torch.testing.assert_close(functional.linear(x, weight, bias), expected.detach())
    with OneDNN():
        functional.linear(x, weight, bias).sum().backward()
    assert weight.grad is not None and called == [1]
