"""Rewards with one ingredient of the barcode regularizer replaced."""

import math

import pytest
import torch

from shrink_utils.topology import (
    BarcodeRegularizer,
    h0_barcode,
    persistent_entropy,
    prominent_features,
)
from shrink_utils.training.penalties import RankedBars, Regrouped


@pytest.fixture
def batch():
    """Rows of two classes, float64 (30, 6), that wait for a gradient, and their labels."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(30, 6, generator=generator, dtype=torch.float64) * torch.linspace(0.2, 2.0, 6)
    return x.requires_grad_(), torch.arange(30) % 2


def test_the_whole_batch_has_one_barcode(batch):
    x, labels = batch
    out = Regrouped("batch", weight=0.5)(x, labels)
    assert torch.equal(out.loss, BarcodeRegularizer(weight=0.5)(x).loss)
    assert out.n_bars.tolist() == [29]


def test_shuffled_classes_keep_their_sizes_and_lose_their_rows(batch):
    x, _ = batch
    labels = (torch.arange(30) < 9).long()
    torch.manual_seed(3)
    dealt = labels[torch.randperm(30)]
    torch.manual_seed(3)
    out = Regrouped("shuffled")(x, labels)
    assert torch.equal(out.loss, BarcodeRegularizer()(x, dealt).loss)
    assert out.n_bars.tolist() == [20, 8] and not torch.equal(dealt, labels)
    assert out.loss != BarcodeRegularizer()(x, labels).loss


@pytest.mark.parametrize("keep", ["longest", "shortest"])
def test_the_loss_is_minus_the_entropy_of_the_bars_that_are_kept(batch, keep):
    x, labels = batch
    out = RankedBars(keep, weight=0.7)(x, labels)
    expected, counts = 0.0, []
    for c in (0, 1):
        lengths = h0_barcode(x.detach()[labels == c]).lengths.sort().values
        n = math.ceil(14 / 2) if keep == "longest" else len(prominent_features(lengths))
        bars = lengths[-n:] if keep == "longest" else lengths[:n]
        expected -= 0.7 * persistent_entropy(bars).item()
        counts.append(n)
    assert out.loss.item() == pytest.approx(expected, rel=1e-12)
    assert out.n_features.tolist() == counts and out.n_bars.tolist() == [14, 14]
    assert out.entropy.sum().item() == pytest.approx(-expected / 0.7)


def test_ranked_bars_have_the_right_gradient(batch):
    x, labels = batch
    for keep in ("longest", "shortest"):
        regularizer = RankedBars(keep, weight=0.7)
        assert torch.autograd.gradcheck(lambda x, r=regularizer: r(x, labels).loss, x)
