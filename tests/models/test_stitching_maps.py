"""Maps between the states of two models."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from shrink_utils.models import MAPS, MapTraining, stitch_grid, stitched, stitching_maps
from shrink_utils.models.stitching_maps import NormAffine, least_squares_maps, train_map


@pytest.fixture
def many(make_batches):
    """Enough tokens for a fit: 12 batches of 8 texts."""
    return make_batches("mlm", n=6, size=12)


def _tokens(reading, layer):
    """Row by row, without padding; (tokens, d) in float64."""
    rows = [
        states[layer][i, : int(batch["attention_mask"][i].sum())]
        for batch, states in zip(reading.batches, reading.states, strict=True)
        for i in range(len(batch["input_ids"]))
    ]
    return torch.cat(rows).double().numpy()


def test_least_squares_is_that_of_the_tokens_without_padding(many, make_reading):
    front = make_reading("mlm", 0, batches=many)
    back = make_reading("mlm", 1, batches=many, width=8)
    _, phi = least_squares_maps(front, back, front_layer=1, back_layers=[0, 2])
    x, y = _tokens(front, 1), _tokens(back, 2)
    design = np.column_stack([x, np.ones(len(x))])
    expected = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    found = phi(torch.from_numpy(x)[None])[0]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_of_many_tokens_some_are_taken_evenly(many, make_reading, monkeypatch):
    monkeypatch.setattr(stitching_maps, "ROWS_A_COLUMN", 10)
    front, back = (make_reading("mlm", seed, batches=many) for seed in (0, 1))
    (phi,) = least_squares_maps(front, back, front_layer=1, back_layers=[2])
    x, y = _tokens(front, 1), _tokens(back, 2)
    rows = [i * len(x) // 160 for i in range(160)]
    assert len(x) > 500
    design = np.column_stack([x[rows], np.ones(160)])
    expected = design @ np.linalg.lstsq(design, y[rows], rcond=None)[0]
    np.testing.assert_allclose(phi(torch.from_numpy(x[rows])[None])[0], expected, atol=1e-5)


def test_a_planted_affine_map_is_undone_and_stitching_costs_nothing(many, make_reading):
    back = make_reading("mlm", 0, batches=many)
    turn = torch.linalg.qr(torch.randn(16, 16))[0] * 3
    planted = [tuple(layer @ turn + 2 for layer in states) for states in back.states]
    front = replace(back, states=planted)
    (phi,) = least_squares_maps(front, back, front_layer=2, back_layers=[2])
    assert abs(stitched(front, back, front_layer=2, back_layer=2).penalty) > 0.1
    penalty = stitched(front, back, phi, front_layer=2, back_layer=2).penalty
    assert penalty == pytest.approx(0, abs=2e-5)


def test_training_lowers_the_loss_between_models_of_different_width(many, make_reading):
    front = make_reading("mlm", 0, batches=many, width=8)
    back = make_reading("mlm", 1, batches=many)
    losses = {}
    for steps in (1, 60):
        training = MapTraining(steps=steps, warmup=5)
        phi = train_map(front, back, front_layer=1, back_layer=1, training=training)
        assert isinstance(phi, NormAffine) and phi.affine.weight.shape == (16, 8)
        losses[steps] = stitched(front, back, phi, front_layer=1, back_layer=1).loss
    assert losses[60] < losses[1] - 0.1


@pytest.mark.parametrize("clip", [0.01, 1e6])  # always, and never
def test_the_first_step_is_the_one_that_sgd_defines(many, make_reading, clip):
    """Nesterov's first step is lr · (1 + momentum) · (clipped gradient + decay · weight)."""
    front, back = (make_reading("mlm", seed, batches=many[:1]) for seed in (0, 1))
    training = MapTraining(steps=1, warmup=0, clip=clip)
    phi = train_map(front, back, front_layer=2, back_layer=1, training=training, seed=3)
    torch.manual_seed(3)
    start = NormAffine(16, 16)
    mapped = start(front.states[0][2])
    handle = back.model.bert.encoder.layer[1].register_forward_pre_hook(
        lambda _, args: (mapped, *args[1:])
    )
    back.model(**many[0]).loss.backward()
    handle.remove()
    gradients = [p.grad for p in start.parameters()]
    length = torch.cat([g.flatten() for g in gradients]).norm()
    assert 0.01 < length < 1e6
    for before, after, gradient in zip(
        start.parameters(), phi.parameters(), gradients, strict=True
    ):
        step = 0.1 * 1.9 * (gradient * min(1, clip / length) + 1e-3 * before)
        torch.testing.assert_close(after, before - step, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ({"steps": 0}, "at least 1, found 0"),
        ({"learning_rate": 0.0}, "above 0, found 0.0"),
        ({"learning_rate": float("nan")}, "above 0, found nan"),
        ({"momentum": 0.0}, "above 0, found 0.0"),
        ({"clip": -1.0}, "above 0, found -1.0"),
        ({"warmup": -1}, "0 or more, found -1"),
        ({"weight_decay": -0.1}, "0 or more, found -0.1"),
    ],
)
def test_training_that_cannot_be_is_refused(option, expected):
    with pytest.raises(ValueError, match=f"{next(iter(option))}: must be {expected}"):
        MapTraining(**option)


def test_training_is_repeatable_and_leaves_the_global_state_alone(many, make_reading):
    front, back = (make_reading("mlm", seed, batches=many) for seed in (0, 1))
    options = {"front_layer": 1, "back_layer": 1, "training": MapTraining(steps=3, warmup=0)}
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, again, other = (train_map(front, back, **options, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(torch.rand(1), expected)
    assert torch.equal(first.affine.weight, again.affine.weight)
    assert not torch.equal(first.affine.weight, other.affine.weight)


@pytest.fixture
def pair(make_reading, make_batches):
    """Two models of one width and different depth, on texts enough for a fit."""
    many = make_batches("clm", n=4, size=12)
    return (
        make_reading("clm", 0, batches=many, depth=2),
        make_reading("clm", 1, batches=many),
    )


def test_every_pair_of_layers_is_stitched_once_and_counted(pair):
    front, back = pair
    ticks = []
    found = stitch_grid(
        front, back, "affine", fitted_on=(front, back), on_stitch=lambda: ticks.append(1)
    )
    assert [cell[:2] for cell in found] == [(i, j) for i in range(3) for j in range(4)]
    assert len(ticks) == 12
    for cell in found[::5]:
        i, j = cell[:2]
        (phi,) = least_squares_maps(front, back, front_layer=i, back_layers=[j])
        expected = stitched(front, back, phi, front_layer=i, back_layer=j)
        assert cell.penalty == pytest.approx(expected.penalty, abs=1e-6)


def test_identity_needs_no_fit_and_chosen_layers_are_enough(pair):
    found = stitch_grid(*pair, "identity", layers=[(2, 1), (0, 3)])
    assert [cell[:2] for cell in found] == [(0, 3), (2, 1)]
    assert found[1] == stitched(*pair, front_layer=2, back_layer=1)


def test_trained_maps_are_those_of_train_map(pair):
    training = MapTraining(steps=2, warmup=1)
    options = {"training": training, "seed": 4}
    (found,) = stitch_grid(*pair, "trained", fitted_on=pair, layers=[(1, 2)], **options)
    phi = train_map(*pair, front_layer=1, back_layer=2, **options)
    assert found == stitched(*pair, phi, front_layer=1, back_layer=2)


def test_errors_name_the_argument(pair):
    assert MAPS == ("identity", "affine", "trained")
    with pytest.raises(ValueError, match="did you mean 'trained'"):
        stitch_grid(*pair, "train")
    with pytest.raises(ValueError, match="fitted_on: none"):
        stitch_grid(*pair, "affine")


def test_the_defaults_are_those_of_the_paper():
    training = MapTraining()
    assert (training.steps, training.warmup, training.learning_rate) == (2000, 200, 0.1)
    assert (training.momentum, training.weight_decay, training.clip) == (0.9, 1e-3, 1.0)
