"""States of many texts against one text at a time, and pooling against loops over tokens."""

import pytest
import torch

from shrink_utils.models import (
    POOLINGS,
    hidden_states,
    load_encoder,
    pool,
    state_batches,
    token_states,
)

TEXTS = [
    "A long sentence stands first, so that sorting by length has something to put in order.",
    "Short.",
    "Of middling length, this one.",
    "Regularization shrinks the longest bar.",
    "Another short one.",
]
VARIED = ["One.", "A text of more words than the others have.", "Two words", "..."]


def _states_of(encoder, *text, max_length=128):
    """By definition: one text, no padding; (layers, t, d)."""
    batch = encoder.tokenizer(*text, truncation=True, max_length=max_length, return_tensors="pt")
    with torch.no_grad():
        states = encoder.model(**batch, output_hidden_states=True).hidden_states
    return torch.cat(states)


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_cls_vectors_are_those_of_each_text_alone(encoder, batch_size):
    expected = torch.stack([_states_of(encoder, text)[:, 0] for text in TEXTS], dim=1)
    found = hidden_states(encoder, TEXTS, batch_size=batch_size)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_means_leave_padding_out_and_first_last_averages_the_layers_zero_and_l(encoder):
    means = torch.stack([_states_of(encoder, text).mean(dim=1) for text in TEXTS], dim=1)
    for pooling, expected in (("mean", means), ("first_last", (means + means[:1]) / 2)):
        found = hidden_states(encoder, TEXTS, pooling=pooling)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_pairs_are_read_together(encoder):
    pairs = TEXTS[::-1]
    expected = torch.stack(
        [_states_of(encoder, *pair)[:, 0] for pair in zip(TEXTS, pairs, strict=True)], dim=1
    )
    found = hidden_states(encoder, TEXTS, text_pairs=pairs, batch_size=2)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_long_texts_are_cut_at_max_length(encoder):
    expected = torch.stack([_states_of(encoder, t, max_length=6)[:, 0] for t in TEXTS], dim=1)
    found = hidden_states(encoder, TEXTS, max_length=6)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert token_states(encoder, TEXTS, max_length=6).sentence.bincount().max() == 4


def test_chosen_layers_are_those_of_all_layers(encoder):
    everything = hidden_states(encoder, TEXTS)
    assert everything.shape == (3, 5, 32)
    assert torch.equal(hidden_states(encoder, TEXTS, layers=[2, 0]), everything[[2, 0]])
    assert torch.equal(hidden_states(encoder, TEXTS, layers=[-1]), everything[2:])
    tokens = token_states(encoder, TEXTS).vectors
    assert torch.equal(token_states(encoder, TEXTS, layers=[1]).vectors, tokens[1:2])


def test_hidden_states_are_the_same_each_time_and_usable_under_autograd(encoder):
    states = hidden_states(encoder, TEXTS)
    assert torch.equal(states, hidden_states(encoder, TEXTS))
    assert states.dtype == torch.float32
    assert not states.is_inference()
    weight = torch.ones(32, requires_grad=True)
    (states @ weight).sum().backward()
    torch.testing.assert_close(weight.grad, states.sum(dim=(0, 1)))


def test_token_vectors_are_those_of_each_sentence_alone_without_special_tokens(encoder):
    found = token_states(encoder, TEXTS, batch_size=2)
    alone = [_states_of(encoder, text)[:, 1:-1] for text in TEXTS]
    torch.testing.assert_close(found.vectors, torch.cat(alone, dim=1), rtol=1e-5, atol=1e-6)
    assert found.token == [t for text in TEXTS for t in encoder.tokenizer.tokenize(text)]
    lengths = [len(encoder.tokenizer.tokenize(text)) for text in TEXTS]
    assert found.sentence.tolist() == [i for i, n in enumerate(lengths) for _ in range(n)]


def test_an_empty_text_has_a_cls_vector_and_no_tokens(encoder):
    assert hidden_states(encoder, ["", "a"]).shape == (3, 2, 32)
    assert token_states(encoder, ["", "a"]).sentence.tolist() == [1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": []}, "texts: empty"),
        ({"text_pairs": ["one"]}, "text_pairs: 1 texts beside 5"),
        ({"layers": [3]}, r"layers: \[3\], expected indices out of \(0, 1, 2\)"),
        ({"layers": []}, r"layers: \[\]"),
        ({"pooling": "AVG"}, "pooling: 'AVG'"),
        ({"max_length": 513}, "max_length: 513, expected 3 to 512"),
        ({"max_length": 2}, "max_length: 2"),
        ({"batch_size": 0}, "batch_size: 0"),
    ],
)
def test_bad_input_is_named(encoder, options, message):
    texts = options.pop("texts", TEXTS)
    with pytest.raises(ValueError, match=message):
        hidden_states(encoder, texts, **options)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("texts", [[""], ["one two", "", "one"]])
def test_a_text_without_a_token_is_named(gpt2, pooling, texts):
    with pytest.raises(ValueError, match=f"texts: text {texts.index('')}, '', has no token"):
        hidden_states(load_encoder(gpt2), texts, pooling=pooling, max_length=16)


def test_texts_without_a_token_give_no_token_vectors(gpt2):
    assert token_states(load_encoder(gpt2), ["", ""], max_length=16).vectors.shape == (2, 0, 8)


@pytest.mark.parametrize("item", [3, None, ["a"], float("nan")])
def test_what_is_not_a_text_is_named(encoder, item):
    with pytest.raises(ValueError, match=r"texts: item 1 is .*, expected a string"):
        hidden_states(encoder, ["a", item])
    with pytest.raises(ValueError, match=r"text_pairs: item 0 is .*, expected a string"):
        hidden_states(encoder, ["a"], text_pairs=[item])


def test_a_string_in_place_of_texts_is_an_error(encoder):
    with pytest.raises(ValueError, match="texts: a string"):
        hidden_states(encoder, "one text")


@pytest.mark.parametrize("pairs", [None, VARIED[::-1]])
def test_batches_are_what_the_tokenizer_would_pad(encoder, pairs):
    for batch in state_batches(encoder, VARIED, text_pairs=pairs, batch_size=3, max_length=9):
        texts = [VARIED[row] for row in batch.rows]
        second = None if pairs is None else [pairs[row] for row in batch.rows]
        expected = encoder.tokenizer(
            texts, second, padding=True, truncation=True, max_length=9, return_tensors="pt"
        )
        assert set(batch.tokens) == set(expected)
        for name, ids in batch.tokens.items():
            torch.testing.assert_close(ids, expected[name], rtol=0, atol=0)
        assert batch.mask is batch.tokens["attention_mask"]


def test_special_tokens_and_padding_are_told_from_pieces(encoder):
    (batch,) = state_batches(encoder, VARIED)
    for row, special in zip(batch.rows, batch.special, strict=True):
        n_pieces = len(encoder.tokenizer.tokenize(VARIED[row]))
        expected = [True, *[False] * n_pieces, *[True] * (len(special) - n_pieces - 1)]
        assert special.tolist() == expected


def test_modules_in_evaluation_mode_inside_a_model_in_training_stay_so():
    model = (encoder := load_encoder("tiny-random")).model
    model.train()
    model.encoder.layer[0].eval()
    modes = [module.training for module in model.modules()]
    (batch,) = state_batches(encoder, VARIED)
    assert [module.training for module in model.modules()] == modes
    model.eval()
    for state, again in zip(batch.states, next(state_batches(encoder, VARIED)).states, strict=True):
        assert torch.equal(state, again)


MASK = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]])


@pytest.fixture
def states():
    return tuple(torch.randn(3, 4, 5, dtype=torch.float64) for _ in range(3))


def _mean_of_tokens(tokens):
    """By definition: the mean over the tokens that are not padding, row by row."""
    return torch.stack(
        [torch.stack([tokens[b, t] for t in range(4) if MASK[b, t]]).mean(dim=0) for b in range(3)]
    )


def test_each_pooling_is_its_definition(states):
    first, last = _mean_of_tokens(states[0]), _mean_of_tokens(states[2])
    expected = {"cls": states[2][:, 0], "mean": last, "first_last": (first + last) / 2}
    expected["last"] = states[2][[0, 1, 2], [2, 0, 3]]
    assert tuple(expected) == POOLINGS
    for pooling, vectors in expected.items():
        torch.testing.assert_close(pool(states, MASK, pooling=pooling), vectors)


def test_the_last_token_is_found_with_padding_on_either_side(states):
    turned = tuple(layer.flip(1) for layer in states)  # padding first
    expected = states[2][:, 0]  # first of all, last when turned round
    torch.testing.assert_close(pool(turned, MASK.flip(1), pooling="last"), expected)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_gradients_flow_to_the_tokens_that_are_pooled(states, pooling):
    leaves = [layer.requires_grad_() for layer in states]
    assert torch.autograd.gradcheck(lambda *xs: pool(xs, MASK, pooling=pooling), leaves)


def test_states_that_cannot_be_pooled_are_an_error(states):
    with pytest.raises(
        ValueError, match="pooling: 'AVG', expected one of cls, mean, first_last, last"
    ):
        pool(states, MASK, pooling="AVG")
    with pytest.raises(ValueError, match="states: empty"):
        pool((), MASK)
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
