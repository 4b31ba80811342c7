"""Grids of stitches: every pair of layers, in one call."""

from __future__ import annotations

import pytest

from shrink_utils.models import MAPS, MapTraining, stitch_grid, stitched
from shrink_utils.models.stitching_maps import least_squares_maps, train_map


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
