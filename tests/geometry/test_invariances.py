"""What a measure declares not to see it does not see, and what it does not declare it sees."""

import inspect

import numpy as np
import pytest

from shrink_utils import geometry
from shrink_utils.geometry.invariances import CHANGES, INVARIANCES
from tests.geometry.conftest import MEASURES, ROWS, rotation_of

X = ROWS + 1
# Numbers that are too coarse to see little, or maps and labels instead of a number.
COARSE = {"elongated_directions", "mutual_knn"}
NO_MEASURES = {"affine", "procrustes", "principal_axes", "nearest_centre", "within_classes"}
NO_MEASURES |= {"avg_sim_pseudo_values", "cka_distance", "similarity_grid", "calibrated_maximum"}

CHANGED = {
    "shift": X + np.array([3, -4, 5, 2, 1]),
    "rotation": X @ rotation_of(5),
    "scale": 7 * X,
    "row lengths": X * np.random.default_rng(1).uniform(0.2, 5, size=(40, 1)),
    "linear": X @ rotation_of(5, 1) @ np.diag([0.05, 20, 1, 3, 0.3]) @ rotation_of(5, 2),
}


def test_every_measure_declares_what_it_does_not_see():
    measures = {name for name, value in vars(geometry).items() if inspect.isfunction(value)}
    assert {name.split(",")[0] for name in INVARIANCES} == measures - NO_MEASURES
    assert {change for seen in INVARIANCES.values() for change in seen} == set(CHANGES)
    assert CHANGED.keys() == CHANGES.keys()


@pytest.mark.parametrize("name", INVARIANCES)
def test_a_measure_sees_exactly_what_it_does_not_declare(name):
    before = np.asarray(MEASURES[name](X))
    for change, x in CHANGED.items():
        apart = np.abs(np.asarray(MEASURES[name](x)) - before).max() / np.abs(before).max()
        if change in INVARIANCES[name]:
            assert apart < 1e-9, change
        elif name not in COARSE:
            assert apart > 1e-4, change
