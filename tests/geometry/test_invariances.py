"""What a measure declares not to see it does not see, and what it does not declare it sees."""

import inspect

import numpy as np
import pytest

from shrink_utils import geometry
from tests.geometry.conftest import MEASURES, OTHER, ROWS, rotation_of

X = ROWS + 1
# Numbers that are too coarse to see little, or maps and labels instead of a number.
COARSE = {"elongated_directions", "mutual_knn"}
NO_MEASURES = {"affine", "procrustes", "principal_axes", "within_classes", "all_but_the_top"}
NO_MEASURES |= {"avg_sim_pseudo_values", "cka_distance", "similarity_grid", "calibrated_maximum"}
NO_MEASURES |= {"random_rotation", "search", "whitening"}

CHANGED = {
    "shift": X + np.array([3, -4, 5, 2, 1]),
    "rotation": X @ rotation_of(5),
    "scale": 7 * X,
    "row lengths": X * np.random.default_rng(1).uniform(0.2, 5, size=(40, 1)),
    "linear": X @ rotation_of(5, 1) @ np.diag([0.05, 20, 1, 3, 0.3]) @ rotation_of(5, 2),
}


def test_every_measure_declares_what_it_does_not_see():
    listed = {name for name, value in vars(geometry).items() if inspect.isfunction(value)}
    assert listed - NO_MEASURES <= {name.split(",")[0] for name in MEASURES}


@pytest.mark.parametrize("name", MEASURES)
def test_a_measure_sees_exactly_what_it_does_not_declare(name):
    measure, ignores = MEASURES[name]
    before = np.asarray(measure(X))
    for change, x in CHANGED.items():
        apart = np.abs(np.asarray(measure(x)) - before).max() / np.abs(before).max()
        if change in ignores:
            assert apart < 1e-9, change
        elif name not in COARSE:
            assert apart > 1e-4, change


def test_pwcca_sees_no_invertible_map_of_y():
    before = geometry.pwcca(OTHER, X)
    for change in ("shift", "rotation", "scale", "linear"):
        assert geometry.pwcca(OTHER, CHANGED[change]) == pytest.approx(before, rel=1e-9)
