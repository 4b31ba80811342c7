"""RTD-Lite has known answers; bars of attention are those of its graph."""

import gudhi
import numpy as np
import pytest

from shrink_utils.study.language.trees import attention_distances, rtd_lite, tree_lengths


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_attention_is_symmetrized_by_the_maximum():
    attention = np.array([[0.2, 0.7, 0.1], [0.3, 0.3, 0.4], [0.0, 1.0, 0.0]])
    distances = attention_distances(attention)
    expected = [[0.0, 0.3, 0.9], [0.3, 0.0, 0.0], [0.9, 0.0, 0.0]]
    np.testing.assert_allclose(distances, expected, atol=1e-12)
    np.testing.assert_allclose(tree_lengths(distances), [0.3, 0.0], atol=1e-12)


def test_bars_of_attention_are_those_of_the_rips_complex_of_the_distances(rng):
    attention = rng.dirichlet(np.full(12, 0.3), size=12)
    distances = attention_distances(attention)
    rips = gudhi.RipsComplex(distance_matrix=distances).create_simplex_tree(max_dimension=1)
    rips.compute_persistence(min_persistence=-1)
    deaths = rips.persistence_intervals_in_dimension(0)[:, 1]
    expected = np.sort(deaths[np.isfinite(deaths)])[::-1]
    np.testing.assert_allclose(tree_lengths(distances), expected, atol=1e-12)


def test_a_cloud_does_not_diverge_from_itself_moved_turned_or_scaled(rng):
    x = rng.normal(size=(40, 6))
    turn = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    assert rtd_lite(x, x) == 0
    assert rtd_lite(x, 7 * x @ turn + 3) == pytest.approx(0, abs=1e-12)
    y = rng.normal(size=(40, 3))
    assert rtd_lite(0.1 * x @ turn - 5, y) == pytest.approx(rtd_lite(x, y))


def test_divergence_is_symmetric_positive_and_largest_for_shuffled_rows(rng):
    x = rng.normal(size=(60, 4)) + 8 * np.eye(4)[np.arange(60) % 4]
    near, far = x + 0.3 * rng.normal(size=x.shape), rng.permutation(x)
    assert rtd_lite(x, near) == pytest.approx(rtd_lite(near, x))
    assert 0 < rtd_lite(x, near) < rtd_lite(x, far) / 3


def test_divergence_of_three_points_by_hand():
    # Distances 1, 1, 2 and 1, 2, 1 (points 0, 1, 3 reordered), each over its 0.9-quantile.
    x, y = np.array([[0.0], [1.0], [2.0]]), np.array([[1.0], [0.0], [2.0]])
    # d(x) = (01: 1, 02: 2, 12: 1), d(y) = (01: 1, 02: 1, 12: 2); the quantile of 1, 1, 2 is 1.8.
    # Trees: 2 and 2; the minimum has all three edges of length 1, so its tree has length 2.
    assert rtd_lite(x, y) == pytest.approx(0)
    # Two clusters that swap a point: the minimum joins in one edge what x and y join in a long one.
    x, y = np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([[0.0], [1.0], [0.0], [1.0]])
    # Trees of x and of y have length 1 each; the minimum joins all points at length 0.
    assert rtd_lite(x, y) == pytest.approx(1)


def test_matched_divergence_sees_the_order_of_distances_alone(rng):
    # Triangles with sides in the same order, and of other ratios.
    x = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 2.0]])
    y = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.1]])
    assert rtd_lite(x, y) > 0.01
    assert rtd_lite(x, y, matched=True) == pytest.approx(0)
    cloud = rng.normal(size=(30, 3))
    other = rng.normal(size=(30, 3)) ** 3
    found = rtd_lite(cloud, other, matched=True)
    assert found == pytest.approx(rtd_lite(other, cloud, matched=True)) and found > 0.5
    shuffled = rng.permutation(cloud)  # of the same distances: nothing to match
    assert rtd_lite(cloud, shuffled, matched=True) == pytest.approx(rtd_lite(cloud, shuffled))
