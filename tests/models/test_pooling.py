"""Pooling, against loops over rows and tokens."""

from __future__ import annotations

import pytest
import torch

from shrink_utils.models import POOLINGS, pool

MASK = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]])


@pytest.fixture
def states():
    return tuple(torch.randn(3, 4, 5, dtype=torch.float64) for _ in range(3))


def _mean_of_tokens(tokens):
    """By definition: the mean over the tokens that are not padding, row by row."""
    return torch.stack(
        [torch.stack([tokens[b, t] for t in range(4) if MASK[b, t]]).mean(dim=0) for b in range(3)]
    )


def test_cls_is_the_first_token_of_the_last_layer(states):
    torch.testing.assert_close(pool(states, MASK, pooling="cls"), states[2][:, 0])


def test_mean_is_the_mean_of_the_tokens_of_the_last_layer(states):
    torch.testing.assert_close(pool(states, MASK, pooling="mean"), _mean_of_tokens(states[2]))


def test_first_last_is_the_mean_of_the_first_and_the_last_layer(states):
    expected = (_mean_of_tokens(states[0]) + _mean_of_tokens(states[2])) / 2
    torch.testing.assert_close(pool(states, MASK, pooling="first_last"), expected)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_padding_has_no_part(states, pooling):
    padded = [torch.where(MASK.bool()[..., None], layer, 1e9) for layer in states]
    expected = pool(states, MASK, pooling=pooling)
    torch.testing.assert_close(pool(padded, MASK, pooling=pooling), expected)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_flow_to_the_tokens_that_are_pooled(states, pooling):
    leaves = [layer.requires_grad_() for layer in states]
    assert torch.autograd.gradcheck(lambda *xs: pool(xs, MASK, pooling=pooling), leaves)


def test_an_unknown_pooling_is_an_error(states):
    with pytest.raises(ValueError, match="pooling: 'AVG', expected one of cls, mean, first_last"):
        pool(states, MASK, pooling="AVG")


def test_no_states_are_an_error():
    with pytest.raises(ValueError, match="states: empty"):
        pool((), MASK)


def test_a_mask_of_another_shape_is_an_error(states):
    with pytest.raises(ValueError, match=r"attention_mask: shape \(3, 3\).*\(3, 4, 5\)"):
        pool(states, MASK[:, :3])


@pytest.mark.parametrize("pooling", ["mean", "first_last"])
def test_the_mean_of_no_token_is_an_error(states, pooling):
    with pytest.raises(ValueError, match="attention_mask: row 0 has no token"):
        pool(states, torch.zeros_like(MASK), pooling=pooling)
    some = MASK.clone()
    some[1] = 0
    with pytest.raises(ValueError, match="attention_mask: row 1 has no token"):
        pool(states, some, pooling=pooling)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("pooling", ["mean", "first_last"])
def test_means_of_half_precision_do_not_overflow(pooling, dtype):
    rows = torch.full((1, 512, 2), 40_000.0, dtype=dtype)
    found = pool([rows, rows], torch.ones(1, 512), pooling=pooling)
    assert found.dtype == dtype
    assert torch.equal(found, rows[:, 0])
