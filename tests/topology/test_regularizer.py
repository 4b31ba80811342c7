"""The regularizer, and the clouds of the classes of a batch."""

import math

import pytest
import torch

from shrink_utils.topology import (
    BarcodeRegularizer,
    barcode,
    class_clouds,
    h0_barcode,
    persistent_entropy,
    prominent_features,
)

RULES = ["ratio", "published"]
SELECTIONS = ["prominent", "all", "random"]


def batch(n=24, d=6, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    embeddings = torch.randn(n, d, generator=generator, dtype=torch.float64).to(dtype)
    return embeddings.requires_grad_(), torch.arange(n) % 3


@pytest.mark.parametrize("homology_dim", [0, 1])
def test_all_is_minus_the_entropy_of_every_bar(homology_dim):
    embeddings, _ = batch(40, 2)
    out = BarcodeRegularizer("all", homology_dim=homology_dim)(embeddings)
    lengths = barcode(embeddings, max_dim=1)[homology_dim].lengths
    assert out.loss.item() == pytest.approx(-persistent_entropy(lengths).item(), rel=1e-12)
    assert out.n_features.tolist() == out.n_bars.tolist() == [len(lengths)] and len(lengths) > 1


@pytest.mark.parametrize("rule", RULES)
def test_prominent_is_minus_the_entropy_of_the_selected_bars(rule):
    embeddings, _ = batch()
    lengths = h0_barcode(embeddings).lengths
    chosen = prominent_features(lengths, rule=rule)
    out = BarcodeRegularizer(rule=rule)(embeddings)
    assert out.loss.item() == pytest.approx(-persistent_entropy(lengths[chosen]).item(), rel=1e-12)
    assert out.n_features.tolist() == [len(chosen)]
    assert 0 < len(chosen) < out.n_bars.item()


@pytest.mark.parametrize("selection", SELECTIONS)
def test_the_bars_that_are_handed_out_are_all_of_each_class_whatever_is_selected(selection):
    embeddings, labels = batch()
    out = BarcodeRegularizer(selection)(embeddings, labels)
    assert len(out.bars) == 3
    for c, lengths in enumerate(out.bars):
        assert torch.equal(lengths, h0_barcode(embeddings[labels == c]).lengths)
        assert not lengths.requires_grad


def test_a_weight_that_is_set_between_steps_is_checked_as_at_first():
    embeddings, _ = batch()
    regularizer = BarcodeRegularizer("all", weight=2.0)
    twice = regularizer(embeddings).loss
    regularizer.weight = 1
    torch.testing.assert_close(2 * regularizer(embeddings).loss, twice)
    with pytest.raises(ValueError, match="weight must be a finite number; got nan"):
        regularizer.weight = math.nan
    assert regularizer.weight == 1.0


def test_classes_are_summed_one_barcode_each():
    embeddings, labels = batch()
    regularizer = BarcodeRegularizer(weight=0.3)
    out = regularizer(embeddings, labels)
    alone = [regularizer(embeddings[labels == c]) for c in range(3)]
    assert out.classes.tolist() == [0, 1, 2]
    assert out.n_bars.tolist() == [7, 7, 7]
    assert out.n_features.tolist() == [one.n_features.item() for one in alone]
    torch.testing.assert_close(out.entropy, torch.cat([one.entropy for one in alone]))
    torch.testing.assert_close(out.loss, sum(one.loss for one in alone))
    torch.testing.assert_close(out.loss, -0.3 * out.entropy.sum())


@pytest.mark.filterwarnings("ignore:.* no class of the first batch")
@pytest.mark.parametrize("selection", ["prominent", "all"])
@pytest.mark.parametrize("homology_dim", [0, 1])
def test_gradcheck(selection, homology_dim):
    angle = 2 * math.pi * torch.arange(12, dtype=torch.float64) / 12
    embeddings, _ = batch(12, 2)
    embeddings = (torch.stack([angle.cos(), angle.sin()], 1) + 0.2 * embeddings).detach()
    regularizer = BarcodeRegularizer(
        selection, weight=0.7, homology_dim=homology_dim, unselected_l2=0.4
    )
    assert regularizer(embeddings).n_bars.item() > 0
    assert torch.autograd.gradcheck(lambda x: regularizer(x).loss, embeddings.requires_grad_())


@pytest.mark.parametrize("unselected_l2", [0.5, -0.5])
def test_unselected_l2_adds_the_mean_length_of_the_other_bars(unselected_l2):
    embeddings, _ = batch()
    lengths = h0_barcode(embeddings).lengths
    others = torch.ones(len(lengths), dtype=torch.bool)
    others[prominent_features(lengths)] = False
    plain = BarcodeRegularizer(weight=2.0)(embeddings).loss
    extra = BarcodeRegularizer(weight=2.0, unselected_l2=unselected_l2)(embeddings).loss
    torch.testing.assert_close(extra - plain, unselected_l2 * lengths[others].mean())


def test_random_is_minus_the_entropy_of_bars_drawn_by_torch():
    embeddings, _ = batch()
    lengths = h0_barcode(embeddings).lengths
    n_drawn = len(prominent_features(lengths))
    torch.manual_seed(5)
    drawn = lengths[torch.randperm(23)[:n_drawn]]
    torch.manual_seed(5)
    loss = BarcodeRegularizer("random", weight=2.0)(embeddings).loss
    assert loss.item() == pytest.approx(-2.0 * persistent_entropy(drawn).item(), rel=1e-12)


@pytest.mark.filterwarnings("ignore:.* no class of the first batch")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("duplicated", [False, True])
@pytest.mark.parametrize("homology_dim", [0, 1])
def test_tiny_classes_have_a_defined_result(rule, selection, n, duplicated, homology_dim):
    embeddings = batch(n, 3)[0].detach() * (not duplicated)
    embeddings.requires_grad_()
    regularizer = BarcodeRegularizer(
        selection, rule=rule, homology_dim=homology_dim, unselected_l2=0.1
    )
    out = regularizer(embeddings)
    out.loss.backward()
    assert out.loss.isfinite()
    assert embeddings.grad.isfinite().all()
    if homology_dim == 0:
        assert out.n_bars.tolist() == [max(n - 1, 0)]
    if n < 2 or duplicated:
        assert (out.loss.item(), out.entropy.tolist()) == (0.0, [0.0])
        assert embeddings.grad.abs().sum() == 0.0


@pytest.mark.filterwarnings("ignore:.* no class of the first batch")
def test_a_batch_without_rows_can_be_differentiated():
    embeddings = torch.zeros(0, 4, requires_grad=True)
    out = BarcodeRegularizer()(embeddings, torch.zeros(0, dtype=torch.long))
    out.loss.backward()
    assert (out.loss.item(), out.classes.tolist()) == (0.0, [])


def test_nothing_but_options_is_kept_between_batches():
    """The published code caches the first call's complex and ignores later dimensions."""
    embeddings, labels = batch()
    regularizer = BarcodeRegularizer()
    first = regularizer(embeddings, labels).loss.item()
    regularizer(embeddings[:5] * 3, labels[:5])
    assert regularizer(embeddings, labels).loss.item() == first
    assert not list(regularizer.parameters())
    assert not regularizer.state_dict()


def test_each_class_has_its_rows_in_order():
    embeddings, labels = torch.arange(12.0).reshape(6, 2), torch.tensor([4, 0, 4, 2, 0, 4])
    classes, clouds = class_clouds(embeddings, labels)
    assert classes.tolist() == [0, 2, 4]
    assert [cloud[:, 0].tolist() for cloud in clouds] == [[2, 8], [6], [0, 4, 10]]
    assert {cloud.dtype for cloud in clouds} == {torch.float64}
