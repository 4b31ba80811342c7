"""Gradients beside those of differences."""

import pytest
import torch

from shrink_utils.topology import BarcodeRegularizer, h0_barcode, persistent_entropy


def cloud(n=24, d=6, dtype=torch.float64):
    return torch.randn(n, d, dtype=torch.float64).to(dtype).requires_grad_()


@pytest.mark.parametrize(
    "value",
    [
        lambda x: BarcodeRegularizer()(x).loss,
        lambda x: h0_barcode(x).lengths.sum(),
        lambda x: persistent_entropy(x[0].abs()),
    ],
)
def test_second_derivatives_are_those_of_differences(value):
    embeddings = cloud(9, 3)
    assert torch.autograd.gradcheck(value, embeddings)
    assert torch.autograd.gradgradcheck(value, embeddings, atol=1e-4)


def test_points_changed_before_the_backward_pass_leave_the_gradient_alone():
    """It is that of the points as they were, by which the lengths were measured."""
    points = cloud().detach().clone().requires_grad_()
    inner = points * 1.0
    lengths = h0_barcode(inner).lengths
    inner.mul_(2.0)
    lengths.sum().backward()
    alone = points.detach().clone().requires_grad_()
    h0_barcode(alone).lengths.sum().backward()
    torch.testing.assert_close(points.grad, alone.grad)


def test_a_slice_of_hidden_states_is_taken_as_it_lies():
    """[CLS] vectors are a strided view; so are the columns of a transposed matrix."""
    hidden = torch.randn(16, 5, 8, dtype=torch.float64, requires_grad=True)
    BarcodeRegularizer()(hidden[:, 0]).loss.backward()
    alone = hidden.detach()[:, 0].clone().requires_grad_()
    BarcodeRegularizer()(alone).loss.backward()
    assert torch.equal(hidden.grad[:, 0], alone.grad)
    assert hidden.grad[:, 1:].abs().sum() == 0
    columns = alone.detach().T.contiguous().T.requires_grad_()
    BarcodeRegularizer()(columns).loss.backward()
    assert torch.equal(columns.grad, alone.grad)


@pytest.mark.parametrize("labels", [[0] * 12, [0, 1] * 6, [5, 5, 5, 5, 5, 5, 5, 2, 2, 2, 9, 9]])
@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1.0, 1e12, 1e200])
def test_the_gradient_scales_inversely_with_the_points(labels, scale):
    """The entropy knows no unit: E(s x) = E(x), so its gradient falls as 1/s."""
    embeddings, labels = cloud(12), torch.tensor(labels)
    scaled = (embeddings.detach() * scale).requires_grad_()
    for x in (embeddings, scaled):
        BarcodeRegularizer("all")(x, labels).loss.backward()
    torch.testing.assert_close(scaled.grad * scale, embeddings.grad, rtol=1e-10, atol=1e-12)
