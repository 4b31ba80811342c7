"""Cutting a model: both halves together are the model."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertForTokenClassification

from shrink_utils.models.stitching import depth_of, lower_states, summed_loss, upper_logits

KINDS = ["mlm", "clm", "classifier"]


@pytest.mark.parametrize("kind", KINDS)
def test_from_any_layer_up_the_loss_is_the_models_own(kind, make_model, make_batches):
    model, (batch, _) = make_model(kind, 0), make_batches(kind)
    with torch.no_grad():
        own = model(**batch).loss.item()
        for layer, states in enumerate(lower_states(model, batch)):
            loss, n = summed_loss(upper_logits(model, states, layer, batch), model, batch)
            assert loss.item() / n == pytest.approx(own, rel=1e-6)


def test_predictions_are_counted_where_the_labels_stand(make_model, make_batches):
    for kind in KINDS:
        model, (batch, _) = make_model(kind, 0), make_batches(kind)
        logits = upper_logits(model, lower_states(model, batch)[-1], 3, batch)
        labels = batch["labels"][:, 1:] if kind == "clm" else batch["labels"]
        assert len(logits) == summed_loss(logits, model, batch)[1] == (labels != -100).sum()


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


def test_errors_name_what_was_found(make_model, make_batches):
    config = BertConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=1, vocab_size=9)
    with pytest.raises(ValueError, match="cannot cut a BertForTokenClassification"):
        depth_of(BertForTokenClassification(config))
    batch = make_batches("mlm")[0]
    with pytest.raises(ValueError, match="states: 8 wide, the model takes 16"):
        upper_logits(make_model("mlm", 0), torch.zeros(4, 7, 8), 1, batch)
