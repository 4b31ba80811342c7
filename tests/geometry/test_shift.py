"""What is said not to depend on where a cloud lies does not, up to a million times its size."""

import numpy as np
import pytest
import torch
from scipy.spatial import KDTree

from shrink_utils import geometry
from shrink_utils.geometry.dimension import nearest_distances
from shrink_utils.study.language.trees import rtd_lite
from shrink_utils.topology import BarcodeRegularizer, barcode, h0_barcode

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(2, 40, 5))
LENGTHS = X * [9, 3, 1, 1, 1]

MEASURES = {
    "anisotropy": lambda x: geometry.anisotropy(x, center=True),
    "iso_score": geometry.iso_score,
    "iso_score, bias_corrected": lambda x: geometry.iso_score(x, bias_corrected=True),
    "effective_rank": geometry.effective_rank,
    "participation_ratio": geometry.participation_ratio,
    "twonn": geometry.intrinsic_dimension,
    "ph": lambda x: geometry.intrinsic_dimension(x, method="ph"),
    "mean_squared_distance": geometry.mean_squared_distance,
    "cka": lambda x: geometry.cka(x, Y),
    "cka, debiased": lambda x: geometry.cka(x, Y, debiased=True),
    "minibatch_cka": lambda x: geometry.minibatch_cka([(x[:20], Y[:20]), (x[20:], Y[20:])]),
    "cca": lambda x: geometry.cca(x, Y),
    "svcca": lambda x: geometry.svcca(x, Y),
    "pwcca": lambda x: geometry.pwcca(x, Y),
    "rtd_lite": lambda x: rtd_lite(x, Y),
    "h0_barcode": lambda x: h0_barcode(torch.from_numpy(x)).lengths,
    "barcode": lambda x: barcode(torch.from_numpy(x))[1].lengths,
    "regularizer, all": lambda x: BarcodeRegularizer("all")(torch.from_numpy(x)).entropy,
    "regularizer": lambda x: BarcodeRegularizer()(torch.from_numpy(x)).entropy,
}


@pytest.mark.parametrize("c", [1e3, 1e6])
@pytest.mark.parametrize("name", MEASURES)
def test_a_shift_changes_nothing_but_rounding(name, c):
    """Coordinates are off by c eps/2; nothing here is worse conditioned than 1e4."""
    expected, found = MEASURES[name](LENGTHS), MEASURES[name](LENGTHS + c)
    tolerance = 1e4 * c * np.finfo(np.float64).eps  # 2e-6 at 1e6
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=tolerance)


@pytest.mark.parametrize("method", ["twonn", "ph"])
@pytest.mark.parametrize("digits", [0, 1, 9])
def test_a_plane_in_metres_far_from_the_origin_has_two_dimensions(method, digits):
    """Coordinates of a square kilometre, also in whole metres: nothing is taken for a copy."""
    x = RNG.uniform(0, 1000, (600, 2)).round(digits)
    expected = geometry.intrinsic_dimension(x, method=method)
    found = geometry.intrinsic_dimension(x + np.array([5e5, 4_649_776]), method=method)
    assert found == pytest.approx(expected, rel=1e-4) and expected == pytest.approx(2, rel=0.12)


def test_nearest_distances_are_those_of_a_tree_also_where_products_lose_them():

    x = RNG.normal(size=(200, 40))
    x[:50] = x[50:100] + 1e-9 * x[:50]  # pairs that a product cannot tell from copies
    for cloud in (x, x + 1e3, np.concatenate([1e-6 * x, 1 + 1e-6 * x])):
        expected = KDTree(cloud).query(cloud, k=3)[0][:, 1:]
        np.testing.assert_allclose(nearest_distances(cloud, 2), expected, rtol=1e-12)
