"""What holds for every penalty, whatever it penalizes."""

from __future__ import annotations

import math

import pytest
import torch

from shrink_utils.topology import BarcodeRegularizer
from shrink_utils.training.penalties import IsoScoreStar


def test_classes_are_summed_one_term_each(penalty_class, batch):
    embeddings, labels = batch
    out = penalty_class(weight=0.3)(embeddings, labels)
    assert out.classes.tolist() == [0, 1, 2]
    assert len(set(out.values.tolist())) == 3
    torch.testing.assert_close(out.loss, 0.3 * out.values.sum())


def test_another_class_changes_no_gradient(penalty_class, batch):
    embeddings, labels = batch
    # Without shrinkage: other classes are a part of what IsoScore* shrinks a class towards.
    options = {"shrinkage": 0.0} if penalty_class is IsoScoreStar else {}
    penalty = penalty_class(**options)
    (together,) = torch.autograd.grad(penalty(embeddings, labels).loss, embeddings)
    alone = embeddings.detach()[labels == 1].requires_grad_()
    (by_itself,) = torch.autograd.grad(penalty(alone).loss, alone)
    torch.testing.assert_close(together[labels == 1], by_itself, rtol=1e-10, atol=1e-12)


def test_without_labels_all_rows_are_one_class(penalty_class, batch):
    embeddings, _ = batch
    out = penalty_class()(embeddings)
    assert out.classes.tolist() == [0]
    together = penalty_class()(embeddings, torch.zeros(24, dtype=torch.long))
    assert out.loss.item() == together.loss.item()


def test_labels_need_not_start_at_zero(penalty_class, batch):
    embeddings, labels = batch
    renamed = penalty_class()(embeddings, torch.tensor([7, -3, 40])[labels])
    assert renamed.classes.tolist() == [-3, 7, 40]
    torch.testing.assert_close(renamed.loss, penalty_class()(embeddings, labels).loss)


def test_gradcheck(penalty_class, batch):
    embeddings, labels = batch
    penalty = penalty_class(weight=0.7)
    if penalty_class is IsoScoreStar:  # what carries no gradient must not move with the rows
        penalty(embeddings.detach().flip(1) + 1.0, labels)
        penalty.degrees += 10**15
    penalty.eval()
    assert torch.autograd.gradcheck(lambda x: penalty(x, labels).loss, embeddings)


def test_a_step_down_the_gradient_makes_the_rows_more_isotropic(penalty_class, batch):
    embeddings, labels = batch
    penalty = penalty_class()
    before = penalty(embeddings, labels)
    before.loss.backward()
    after = penalty.eval()(embeddings.detach() - 0.05 * embeddings.grad, labels)
    assert (after.values < before.values).all()


def test_the_unit_does_not_matter(penalty_class, batch):
    embeddings, labels = batch
    values = [penalty_class()(scale * embeddings, labels).values for scale in (1.0, 1e3, 1e-3)]
    torch.testing.assert_close(values[1], values[0], rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(values[2], values[0], rtol=1e-9, atol=1e-12)


def test_a_rotation_does_not_matter(penalty_class, batch, gaussian):
    embeddings, labels = batch
    rotation = torch.linalg.qr(gaussian(6, 6, seed=2)).Q
    here, there = (penalty_class()(x, labels).values for x in (embeddings, embeddings @ rotation))
    torch.testing.assert_close(here, there, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
@pytest.mark.parametrize(
    "factors", [(1, 1, 1), (1, 2, 3), (0, 0, 0)]
)  # duplicated, collinear, zero
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tiny_and_flat_classes_have_a_defined_result(penalty_class, gaussian, n, factors, dtype):
    rows = torch.outer(torch.tensor(factors[:n]).double(), gaussian(1, 4)[0])
    embeddings = rows.to(dtype).requires_grad_()
    out = penalty_class()(embeddings)
    out.loss.backward()
    assert out.loss.isfinite() and out.values.isfinite().all()
    assert embeddings.grad.isfinite().all()
    if n < 2:
        assert (out.loss.item(), embeddings.grad.abs().sum()) == (0.0, 0.0)


def test_a_class_with_one_member_adds_nothing(penalty_class, gaussian):
    embeddings = gaussian(9, 4).requires_grad_()
    out = penalty_class()(embeddings, torch.tensor([0] * 8 + [1]))
    out.loss.backward()
    assert out.values[1].item() == 0.0
    assert out.loss.item() == penalty_class()(embeddings[:8]).loss.item()
    assert embeddings.grad[8].abs().max() == 0.0


def test_a_batch_without_rows_can_be_differentiated(penalty_class):
    embeddings = torch.zeros(0, 4, requires_grad=True)
    out = penalty_class()(embeddings, torch.zeros(0, dtype=torch.long))
    out.loss.backward()
    assert (out.loss.item(), out.classes.tolist(), out.values.tolist()) == (0.0, [], [])


def test_huge_and_tiny_embeddings_give_a_finite_loss_and_gradient(penalty_class, batch):
    for scale in (1e36, 1e-36):
        embeddings = (batch[0].detach() * scale).float().requires_grad_()
        out = penalty_class()(embeddings, batch[1])
        out.loss.backward()
        torch.testing.assert_close(
            out.loss.double(), penalty_class()(*batch).loss, rtol=1e-5, atol=1e-6
        )
        assert embeddings.grad.isfinite().all()


@pytest.mark.parametrize(
    ("given_dtype", "expected"),
    [
        (torch.float64, torch.float64),
        (torch.float32, torch.float32),
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
    ],
)
def test_dtypes_are_those_of_the_barcode_regularizer(penalty_class, batch, given_dtype, expected):
    embeddings = batch[0].detach().to(given_dtype).requires_grad_()
    out = penalty_class()(embeddings, batch[1])
    out.loss.backward()
    assert out.loss.dtype == out.values.dtype == expected
    assert out.loss.dtype == BarcodeRegularizer()(embeddings, batch[1]).loss.dtype
    assert embeddings.grad.dtype == given_dtype
    assert embeddings.grad.isfinite().all()


def test_only_the_loss_carries_a_gradient(penalty_class, batch):
    out = penalty_class()(*batch)
    assert out.loss.requires_grad and not out.values.requires_grad


@pytest.mark.parametrize("shape", [(23,), (24, 1), ()])
def test_labels_of_another_shape_are_an_error(penalty_class, batch, shape):
    with pytest.raises(ValueError, match=r"labels .*\(24, 6\)"):
        penalty_class()(batch[0], torch.zeros(shape, dtype=torch.long))


def test_labels_with_fractions_are_an_error(penalty_class, batch):
    with pytest.raises(ValueError, match=r"labels must be whole numbers.*labels=None"):
        penalty_class()(batch[0], batch[1].float())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_non_finite_embeddings_are_an_error(penalty_class, bad):
    embeddings = torch.zeros(8, 4)
    embeddings[3, 2] = bad
    with pytest.raises(ValueError, match=r"embeddings of shape \(8, 4\) .* row 3"):
        penalty_class()(embeddings)


def test_embeddings_of_every_token_are_an_error(penalty_class):
    with pytest.raises(ValueError, match=r"embeddings must .*\(8, 16, 4\)"):
        penalty_class()(torch.zeros(8, 16, 4))


def test_a_weight_that_is_no_number_is_an_error(penalty_class):
    with pytest.raises(ValueError, match="weight must be finite; got nan"):
        penalty_class(weight=math.nan)


def test_repr_shows_the_options(penalty_class):
    assert "weight=0.5" in repr(penalty_class(weight=0.5))
