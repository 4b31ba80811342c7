"""Linear layers by oneDNN: the same numbers up to rounding, where nobody needs a gradient."""

import pytest
import torch
from torch.nn import functional

from shrink_utils.models.products import OneDNN


@pytest.fixture
def called(monkeypatch):
    """Shapes of the products that oneDNN makes."""
    shapes = []
    given = torch.ops.mkldnn._linear_pointwise

    def spy(x, weight, *rest):
        shapes.append(tuple(x.shape))
        return given(x, weight, *rest)

    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", spy)
    return shapes


@pytest.mark.parametrize("shape", [(5,), (7, 5), (2, 3, 5)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_products_are_those_of_torch(shape, has_bias, called):
    x, weight = torch.randn(shape), torch.randn(4, 5)
    bias = torch.randn(4) if has_bias else None
    with torch.no_grad():
        expected = functional.linear(x, weight, bias)
        with OneDNN():
            found = functional.linear(x, weight, bias)
    torch.testing.assert_close(found, expected)
    assert called == [shape]


def test_a_product_that_needs_a_gradient_is_left_to_torch(called):
    x, weight = torch.randn(3, 5), torch.randn(4, 5, requires_grad=True)
    with OneDNN():
        functional.linear(x, weight).sum().backward()
    assert weight.grad is not None and called == []
