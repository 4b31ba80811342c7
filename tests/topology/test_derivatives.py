"""Gradients beside torch's own and those of differences; and all of it without numba."""

import importlib
import sys

import pytest
import torch

from shrink_utils import topology
from shrink_utils.topology import BarcodeRegularizer, h0_barcode, persistent_entropy

RULES = ["ratio", "published"]


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


def test_points_changed_before_the_backward_pass_are_noticed():
    points = cloud().detach().clone().requires_grad_()
    inner = points * 1.0
    lengths = h0_barcode(inner).lengths
    inner.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        lengths.sum().backward()


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


@pytest.fixture(scope="module")
def plain():
    """The room, loaded afresh as if numba were not installed."""

    def take_out():
        names = [name for name in sys.modules if name.startswith("shrink_utils.topology")]
        return {name: sys.modules.pop(name) for name in names}

    with pytest.MonkeyPatch.context() as patch:
        kept = take_out()
        patch.setitem(sys.modules, "numba", None)  # importing it is now an ImportError
        room = importlib.import_module("shrink_utils.topology")
        assert not room.spanning_tree.COMPILED
        take_out()
        sys.modules.update(kept)
        patch.setattr(importlib.import_module("shrink_utils"), "topology", topology)
    return room


@pytest.mark.parametrize("selection", ["prominent", "all"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_numba_everything_is_the_same(clouds, plain, selection, rule, dtype):
    for name, points in clouds.items():
        labels = torch.arange(len(points)) % 2
        results = []
        for room in (topology, plain):
            x = points.to(dtype).requires_grad_()
            regularizer = room.BarcodeRegularizer(selection, rule=rule, unselected_l2=0.1)
            out = regularizer(x, labels)
            out.loss.backward()
            results.append((out, x.grad, room.h0_barcode(x).lengths))
        (ours, gradient, lengths), (theirs, plain_gradient, plain_lengths) = results
        torch.testing.assert_close(ours.loss, theirs.loss, rtol=1e-6, atol=1e-12)
        torch.testing.assert_close(lengths, plain_lengths, rtol=1e-7, atol=0.0)
        assert ours.n_features.tolist() == theirs.n_features.tolist()
        if name in ("duplicated", "grid", "circle", "far_tight_clusters"):
            continue  # which of the equally long edges are taken is up to rounding
        # Terms that cancel: slopes where bars are nearly equal, edges of a point of the tree.
        size = max(1 / lengths.sum().item(), plain_gradient.abs().max().item())
        digits = 1e-6 if dtype == torch.float32 else 1e-11
        torch.testing.assert_close(gradient, plain_gradient, rtol=digits, atol=digits * size)
