"""Stitched models, against the real model with its hidden states replaced by a hook."""

from copy import deepcopy

import pytest
import torch
from transformers import BertConfig, BertForTokenClassification

from shrink_utils.models import (
    MapTraining,
    identity_stitches,
    read_layers,
    stitch_grid,
    stitched,
    stitched_logits,
)
from shrink_utils.models.stitching import lower_states, summed_loss, upper_logits

KINDS = ["mlm", "clm", "classifier"]


def _loss_with_replaced_states(front, back, front_layer, back_layer, batches):
    """The whole of `back` runs; a hook puts the front's states below what is above the cut."""
    total, count = 0.0, 0
    for batch in batches:
        trunk = front.base_model(
            batch["input_ids"], batch["attention_mask"], output_hidden_states=True
        )
        replacement = trunk.hidden_states[front_layer]
        above = [*back.base_model.encoder.layer, back.base_model.pooler or getattr(back, "cls", 0)]
        handle = above[back_layer].register_forward_pre_hook(
            lambda _, args, new=replacement: (new, *args[1:])
        )
        loss = back(**batch).loss.item()
        handle.remove()
        n = _predictions(back, batch)
        total, count = total + n * loss, count + n
    return total / count


def _predictions(model, batch):
    labels = batch["labels"][:, 1:] if model.config.is_decoder else batch["labels"]
    return int((labels != -100).sum())


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_every_stitch_is_the_back_with_the_fronts_states(kind, make_reading):
    front, back = make_reading(kind, 0), make_reading(kind, 1)
    for i in range(4):
        for j in range(4):
            found = stitched(front, back, front_layer=i, back_layer=j)
            expected = _loss_with_replaced_states(front.model, back.model, i, j, back.batches)
            assert found.loss == pytest.approx(expected, rel=1e-5)
            assert found[:2] == (i, j) and found.penalty == found.loss - back.loss
            assert abs(found.penalty) > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_stitched_to_itself_costs_exactly_nothing(kind, make_reading):
    reading = make_reading(kind, 0)
    assert [found.penalty for found in identity_stitches(reading, reading)] == [0.0] * 4


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_own_loss_is_the_mean_over_all_predictions(kind, make_reading):
    reading = make_reading(kind, 0)
    counts = [_predictions(reading.model, batch) for batch in reading.batches]
    losses = [reading.model(**batch).loss.item() for batch in reading.batches]
    weighted = sum(n * loss for n, loss in zip(counts, losses, strict=True))
    assert reading.loss == pytest.approx(weighted / sum(counts), rel=1e-6)
    assert kind == "classifier" or len(set(counts)) == 2


def test_stitched_up_to_the_head_a_classifier_has_the_fronts_vectors_and_the_backs_head(
    make_reading,
):
    front, back = make_reading("classifier", 0), make_reading("classifier", 1)
    logits = stitched_logits(front, back, front_layer=3, back_layer=3)
    vectors = torch.cat([states[3][:, 0] for states in front.states])
    pooler, head = back.model.bert.pooler, back.model.classifier
    expected = head(torch.tanh(pooler.dense(vectors)))
    torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_no_stitch_changes_either_model(kind, make_reading):
    front, back = make_reading(kind, 0), make_reading(kind, 1)
    back.model.train()
    front.model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    models = front.model, back.model
    before = [deepcopy(model.state_dict()) for model in models]
    flags = [[(p.requires_grad, p.grad) for p in model.parameters()] for model in models]
    modes = [[module.training for module in model.modules()] for model in models]
    for map_kind in ("identity", "affine", "trained"):
        stitch_grid(
            front,
            back,
            map_kind,
            fitted_on=(front, back),
            layers=[(0, 1), (2, 2)],
            training=MapTraining(steps=3, warmup=1),
        )
    for i, model in enumerate(models):
        for name, value in model.state_dict().items():
            assert torch.equal(value, before[i][name])
        assert [(p.requires_grad, p.grad) for p in model.parameters()] == flags[i]
        assert [module.training for module in model.modules()] == modes[i]


def test_errors_name_the_argument(make_reading, make_batches, make_model):
    reading = make_reading("mlm", 0)
    with pytest.raises(ValueError, match="back_layer: 4, expected 0 to 3"):
        stitched(reading, reading, front_layer=0, back_layer=4)
    with pytest.raises(ValueError, match="back: 2 layers against the front's 3"):
        identity_stitches(reading, make_reading("mlm", 1, depth=2))
    with pytest.raises(ValueError, match="states: 8 wide, the model takes 16"):
        stitched(make_reading("mlm", 1, width=8), reading, front_layer=1, back_layer=1)
    other = make_reading("mlm", 0, batches=make_batches("mlm")[::-1])
    with pytest.raises(ValueError, match="back: it read other texts"):
        stitched(reading, other, front_layer=1, back_layer=1)
    with pytest.raises(ValueError, match="batches: none"):
        read_layers(make_model("mlm", 0), [])
    config = BertConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=1, vocab_size=9)
    with pytest.raises(ValueError, match="cannot cut a BertForTokenClassification"):
        read_layers(BertForTokenClassification(config), make_batches("mlm"))


@pytest.mark.parametrize("kind", KINDS)
def test_from_any_layer_up_the_loss_is_the_models_own(kind, make_model, make_batches):
    model, (batch, _) = make_model(kind, 0), make_batches(kind)
    with torch.no_grad():
        own = model(**batch).loss.item()
        for layer, states in enumerate(lower_states(model, batch)):
            loss, n = summed_loss(upper_logits(model, states, layer, batch), model, batch)
            assert n == _predictions(model, batch)
            assert loss.item() / n == pytest.approx(own, rel=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_upper_layers_do_not_look_at_padding(kind, make_model, make_batches):
    model, (batch, _) = make_model(kind, 0), make_batches(kind)
    states = lower_states(model, batch)[1]
    spoiled = states + 5 * (batch["attention_mask"] == 0)[:, :, None]
    torch.testing.assert_close(
        upper_logits(model, states, 1, batch), upper_logits(model, spoiled, 1, batch)
    )


def test_upper_layers_of_a_causal_model_do_not_look_ahead(make_model, make_batches):
    batch = make_batches("clm")[0]
    length = batch["input_ids"].shape[1]
    batch["labels"] = torch.full_like(batch["input_ids"], -100)
    batch["labels"][:, 1] = 5  # predicted from token 0 alone
    for kind, sees in (("clm", False), ("mlm", True)):
        model = make_model(kind, 0)
        states = lower_states(model, batch)[1]
        ahead = states + 5 * (torch.arange(length) > 1)[:, None]
        before, after = (upper_logits(model, x, 1, batch) for x in (states, ahead))
        assert torch.allclose(before, after, atol=1e-5) is not sees


def test_dropout_is_off_and_the_mode_stays(make_model, make_batches):
    model, (batch, _) = make_model("mlm", 0), make_batches("mlm")
    expected = lower_states(model, batch)[-1]
    torch.testing.assert_close(lower_states(model.train(), batch)[-1], expected)
    assert model.training
