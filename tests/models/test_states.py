"""States against one text at a time, pooling against loops over tokens."""

import numpy as np
import pytest
import torch

from shrink_utils.models import hidden_states, load_encoder, pool, token_states
from shrink_utils.names import POOLINGS

TEXTS = [
    "A long sentence stands first, so that sorting by length has something to put in order.",
    "Short.",
    "Of middling length, this one.",
    "Regularization shrinks the longest bar.",
    "Another short one.",
]


def _states_of(encoder, *text, max_length=128):
    """By definition: one text, no padding; (layers, t, d)."""
    batch = encoder.tokenizer(*text, truncation=True, max_length=max_length, return_tensors="pt")
    with torch.no_grad():
        states = encoder.model(**batch, output_hidden_states=True).hidden_states
    return torch.cat(states)


def _close(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("batch_size", "max_length"), [(1, 128), (2, 6), (64, None)])
def test_pooled_vectors_are_those_of_each_text_alone(encoder, batch_size, max_length):
    options = {"batch_size": batch_size, "max_length": max_length}
    alone = [_states_of(encoder, text, max_length=max_length or 128) for text in TEXTS]
    means = torch.stack([states.mean(dim=1) for states in alone], dim=1)
    expected = {"cls": torch.stack([states[:, 0] for states in alone], dim=1), "mean": means}
    expected |= {"first_last": (means + means[:1]) / 2}
    expected |= {"last": torch.stack([states[:, -1] for states in alone], dim=1)}
    for pooling in POOLINGS:
        found = hidden_states(encoder, np.array(TEXTS), pooling=pooling, **options)
        _close(found, expected[pooling])
    tokens = token_states(encoder, iter(TEXTS), **options)
    _close(tokens.vectors, torch.cat([states[:, 1:-1] for states in alone], dim=1))
    assert tokens.sentence.bincount().tolist() == [len(states[0]) - 2 for states in alone]
    assert tokens.token[:4] == ["a", "long", "sentence", "stands"]


def test_a_model_whose_vectors_see_padding_is_refused(save_tiny):
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48)
    mixing = load_encoder(save_tiny("fnet", **sizes))  # by a Fourier transform, padding included
    with pytest.raises(ValueError, match=r"encoder: .*fnet"):
        hidden_states(mixing, TEXTS)


def test_pairs_are_read_together(encoder):
    pairs = TEXTS[::-1]
    alone = [_states_of(encoder, *pair)[:, 0] for pair in zip(TEXTS, pairs, strict=True)]
    found = hidden_states(encoder, TEXTS, text_pairs=iter(pairs), batch_size=2)
    _close(found, torch.stack(alone, dim=1))


def test_chosen_layers_are_those_of_all_layers_and_usable_under_autograd(encoder):
    everything = hidden_states(encoder, TEXTS)
    assert everything.shape == (3, 5, 32) and everything.dtype == torch.float32
    assert torch.equal(hidden_states(encoder, TEXTS, layers=[-1, 0]), everything[[2, 0]])
    tokens = token_states(encoder, TEXTS).vectors
    assert torch.equal(token_states(encoder, TEXTS, layers=[1]).vectors, tokens[1:2])
    weight = torch.ones(32, requires_grad=True)
    (everything @ weight).sum().backward()
    torch.testing.assert_close(weight.grad, everything.sum(dim=(0, 1)))


def test_a_token_without_an_embedding_is_named_and_padding_may_be_one():
    encoder = load_encoder("tiny-random")
    encoder.tokenizer.add_special_tokens({"pad_token": "<new>"})
    _close(hidden_states(encoder, TEXTS)[:, :1], hidden_states(encoder, TEXTS[:1]))
    encoder.tokenizer.add_tokens(["zz9"])
    with pytest.raises(ValueError, match="texts: text 1 has the token 'zz9', of which tiny-random"):
        hidden_states(encoder, ["a dog", "a zz9"])


MASK = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_flow_to_the_tokens_that_are_pooled_on_either_side_of_padding(pooling):
    states = tuple(torch.randn(3, 4, 5, dtype=torch.float64) for _ in range(3))
    leaves = [layer.requires_grad_() for layer in states]
    assert torch.autograd.gradcheck(lambda *xs: pool(xs, MASK, pooling=pooling), leaves)
    turned = [layer.detach().flip(1) for layer in states]
    # Turned round, the first real token is the last one.
    ends = {"cls": states[2][torch.arange(3), [2, 0, 3]], "last": states[2][:, 0]}
    expected = ends[pooling] if pooling in ends else pool(states, MASK, pooling=pooling)
    for kind in (torch.int64, torch.bool, torch.uint8, torch.float32):
        mask = MASK.flip(1).to(kind)
        torch.testing.assert_close(pool(turned, mask, pooling=pooling), expected.detach())


@pytest.mark.parametrize("pooling", ["mean", "first_last"])
def test_means_of_half_precision_do_not_overflow(pooling):
    rows = torch.full((1, 512, 2), 40_000.0, dtype=torch.float16)
    found = pool([rows, rows], torch.ones(1, 512), pooling=pooling)
    assert found.dtype == rows.dtype and torch.equal(found, rows[:, 0])
