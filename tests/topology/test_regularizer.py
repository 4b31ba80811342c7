"""The regularizer, and the clouds of the classes of a batch."""

import math
from functools import partial

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
from shrink_utils.training.penalties import AverageCosine, IsoScoreStar
from tests.topology.conftest import gaussian

RULES = ["ratio", "published"]
SELECTIONS = ["prominent", "all", "random"]


def batch(n=24, d=6, dtype=torch.float64):
    return gaussian(n, d).to(dtype).requires_grad_(), torch.arange(n) % 3


SELECTED = {
    "every bar": ({"selection": "all"}, lambda lengths: lengths),
    "every loop": ({"selection": "all", "homology_dim": 1}, lambda lengths: lengths),
    **{
        rule: (
            {"rule": rule},
            lambda lengths, rule=rule: lengths[prominent_features(lengths, rule=rule)],
        )
        for rule in RULES
    },
}


@pytest.mark.parametrize("case", SELECTED)
def test_the_loss_is_minus_the_entropy_of_the_selected_bars_of_each_class(case):
    options, selected = SELECTED[case]
    embeddings, labels = batch(120, 2 if case == "every loop" else 6)
    out = BarcodeRegularizer(weight=0.3, **options)(embeddings, labels)
    assert out.classes.tolist() == [0, 1, 2]
    for c in range(3):
        bars = barcode(embeddings[labels == c], max_dim=1)[options.get("homology_dim", 0)].lengths
        kept = selected(bars)
        assert 0 < len(kept) == out.n_features[c] <= len(bars) == out.n_bars[c]
        torch.testing.assert_close(out.entropy[c], persistent_entropy(kept))
        if case != "every loop":  # bars are handed out whole, whatever is selected
            assert torch.equal(out.bars[c], bars) and not out.bars[c].requires_grad
    assert out.loss < -0.1
    torch.testing.assert_close(out.loss, -0.3 * out.entropy.sum())


@pytest.mark.parametrize("term", [partial(BarcodeRegularizer, "all"), AverageCosine, IsoScoreStar])
def test_a_weight_that_is_set_between_steps_is_checked_as_at_first(term):
    embeddings, _ = batch()
    regularizer = term(weight=2.0)
    twice = regularizer(embeddings).loss
    regularizer.weight = 1
    torch.testing.assert_close(2 * regularizer(embeddings).loss, twice)
    with pytest.raises(ValueError, match="weight must be a finite number; got nan"):
        regularizer.weight = math.nan
    assert regularizer.weight == 1.0


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


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_labels_are_the_classes_that_they_number(dtype):
    embeddings, labels = batch()[0], torch.arange(24) % 2 * 153 + 3
    expected = BarcodeRegularizer()(embeddings, labels)
    found = BarcodeRegularizer()(embeddings, labels.to(dtype))  # 156 is −100 in a byte
    assert found.classes.tolist() == [3, 156] and found.loss == expected.loss


@pytest.mark.parametrize("selection", ["prominent", "random"])
def test_a_turn_of_equally_distant_rows_keeps_every_bar(selection):
    turn = torch.linalg.qr(batch(8, 8)[0]).Q
    found = BarcodeRegularizer(selection)(turn)
    assert found.n_features.tolist() == [7]
    assert found.entropy.tolist() == pytest.approx([math.log(7)])
