"""Stitched models, against the real model with its hidden states replaced by a hook."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch

from shrink_utils.models import MapTraining, stitch_grid, stitched
from shrink_utils.models.stitching import _least_squares_maps, _train_map
from tests.models.conftest import make_batches, make_reading

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
        labels = batch["labels"][:, 1:] if back.config.is_decoder else batch["labels"]
        n = int((labels != -100).sum())
        total, count = total + n * loss, count + n
    return total / count


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_every_stitch_is_the_back_with_the_fronts_states(kind):
    front, back = make_reading(kind, 0), make_reading(kind, 1)
    for i in range(4):
        for j in range(4):
            found = stitched(front, back, front_layer=i, back_layer=j)
            expected = _loss_with_replaced_states(front.model, back.model, i, j, back.batches)
            assert found.loss == pytest.approx(expected, rel=1e-5)
            assert found[:2] == (i, j) and found.penalty == found.loss - back.loss
            assert abs(found.penalty) > 1e-3
    itself = stitch_grid(back, back, "identity", layers=[(m, m) for m in range(4)])
    assert [found.penalty for found in itself] == [0.0] * 4


@pytest.mark.parametrize("kind", KINDS)
def test_no_stitch_changes_either_model(kind):
    front, back = make_reading(kind, 0), make_reading(kind, 1)
    back.model.train()
    front.model.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    models = front.model, back.model
    before = [deepcopy(model.state_dict()) for model in models]
    flags = [[(p.requires_grad, p.grad) for p in model.parameters()] for model in models]
    modes = [[module.training for module in model.modules()] for model in models]
    options = {"layers": [(0, 1), (2, 2)], "training": MapTraining(steps=3, warmup=1)}
    for map_kind in ("identity", "affine", "trained"):
        stitch_grid(front, back, map_kind, fitted_on=(front, back), **options)
    for i, model in enumerate(models):
        for name, value in model.state_dict().items():
            assert torch.equal(value, before[i][name])
        assert [(p.requires_grad, p.grad) for p in model.parameters()] == flags[i]
        assert [module.training for module in model.modules()] == modes[i]


MANY = make_batches("mlm", n=6, size=12)  # enough tokens for a fit


def _tokens(activations, layer):
    """Row by row, without padding; (tokens, d) in float64."""
    rows = [
        states[layer][i, : int(batch["attention_mask"][i].sum())]
        for batch, states in zip(activations.batches, activations.states, strict=True)
        for i in range(len(batch["input_ids"]))
    ]
    return torch.cat(rows).double().numpy()


def test_least_squares_is_that_of_the_tokens_without_padding():
    front = make_reading("mlm", 0, batches=MANY)
    back = make_reading("mlm", 1, batches=MANY, width=8)
    _, phi = _least_squares_maps(front, back, front_layer=1, back_layers=[0, 2])
    x, y = _tokens(front, 1), _tokens(back, 2)
    design = np.column_stack([x, np.ones(len(x))])
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    found = phi(torch.from_numpy(x)[None])[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_planted_affine_map_is_undone_and_stitching_costs_nothing():
    back = make_reading("mlm", 0, batches=MANY)
    turn = torch.linalg.qr(torch.randn(16, 16))[0] * 3
    planted = [tuple(layer @ turn + 2 for layer in states) for states in back.states]
    front = replace(back, states=planted)
    (phi,) = _least_squares_maps(front, back, front_layer=2, back_layers=[2])
    assert abs(stitched(front, back, front_layer=2, back_layer=2).penalty) > 0.1
    penalty = stitched(front, back, phi, front_layer=2, back_layer=2).penalty
    assert penalty == pytest.approx(0, abs=2e-5)


def test_training_lowers_the_loss_between_models_of_different_width():
    front = make_reading("mlm", 0, batches=MANY, width=8)
    back = make_reading("mlm", 1, batches=MANY)
    losses = {}
    for steps in (1, 60):
        training = MapTraining(steps=steps, warmup=5)
        phi = _train_map(front, back, front_layer=1, back_layer=1, training=training)
        assert phi[1].weight.shape == (16, 8)
        losses[steps] = stitched(front, back, phi, front_layer=1, back_layer=1).loss
    assert losses[60] < losses[1] - 0.1
