"""What a measure declares not to see it does not see, also far away; what it does not, it sees."""

import inspect

import numpy as np
import pytest
import torch
from scipy.spatial import KDTree

from shrink_utils import geometry
from shrink_utils.geometry.dimension import _nearest_distances
from shrink_utils.topology import BarcodeRegularizer, barcode, h0_barcode
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


NO_SHIFT = {name: measure for name, (measure, ignored) in MEASURES.items() if "shift" in ignored}
NO_SHIFT |= {
    "h0_barcode": lambda x: h0_barcode(torch.from_numpy(x)).lengths,
    "barcode": lambda x: barcode(torch.from_numpy(x))[1].lengths,
    "regularizer, all": lambda x: BarcodeRegularizer("all")(torch.from_numpy(x)).entropy,
    "regularizer": lambda x: BarcodeRegularizer()(torch.from_numpy(x)).entropy,
}


@pytest.mark.parametrize("c", [1e3, 1e6])
@pytest.mark.parametrize("name", NO_SHIFT)
def test_a_shift_changes_nothing_but_rounding(name, c):
    """Coordinates are off by c eps/2; nothing here is worse conditioned than 1e4."""
    expected, found = NO_SHIFT[name](ROWS), NO_SHIFT[name](ROWS + c)
    tolerance = 1e4 * c * np.finfo(np.float64).eps  # 2e-6 at 1e6
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=tolerance)


@pytest.mark.parametrize("method", ["twonn", "ph"])
@pytest.mark.parametrize("digits", [0, 1, 9])
def test_a_plane_in_metres_far_from_the_origin_has_two_dimensions(method, digits):
    """Coordinates of a square kilometre, also in whole metres: nothing is taken for a copy."""
    x = np.random.default_rng(0).uniform(0, 1000, (600, 2)).round(digits)
    expected = geometry.intrinsic_dimension(x, method=method)
    found = geometry.intrinsic_dimension(x + np.array([5e5, 4_649_776]), method=method)
    assert found == pytest.approx(expected, rel=1e-4) and expected == pytest.approx(2, rel=0.12)


def test_nearest_distances_are_those_of_a_tree_also_of_rows_that_nearly_touch():
    x = np.random.default_rng(0).normal(size=(200, 40))
    x[:50] = x[50:100] + 1e-9 * x[:50]  # products would take them for copies
    for cloud in (x, x + 1e3, np.concatenate([1e-6 * x, 1 + 1e-6 * x])):
        expected = KDTree(cloud).query(cloud, k=3)[0][:, 1:]
        np.testing.assert_allclose(_nearest_distances(cloud, 2), expected, rtol=1e-12)
