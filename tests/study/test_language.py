"""Attention graphs and their bars, RTD-Lite, and lives of neighbourhoods: known answers."""

import gudhi
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from shrink_utils.models import load_encoder
from shrink_utils.study.language import (
    attention_distances,
    attention_maps,
    auc,
    barcode_features,
    components,
    degree_features,
    edge_intervals,
    held_out_hits,
    neighbour_graphs,
    rtd_lite,
    survival,
    tree_lengths,
)


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
    for far in (1e3, 1e6):  # coordinates are off by far eps/2
        assert rtd_lite(x + far, y) == pytest.approx(rtd_lite(x, y), rel=1e-12 * far)


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


def test_maps_are_those_of_each_text_alone_whatever_it_is_padded_to():
    encoder = load_encoder("tiny-random")
    texts = ["A short one.", "A rather longer sentence, with a comma and more words.", "Two words"]
    together = list(attention_maps(encoder, texts))
    for text, found in zip(texts, together, strict=True):
        (alone,) = attention_maps(encoder, [text])
        n_tokens = len(encoder.tokenizer(text)["input_ids"])
        assert found.shape == (2, 2, n_tokens, n_tokens)
        np.testing.assert_allclose(found, alone, atol=1e-6)
        np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-6)


def test_a_weight_of_zero_adds_nothing_to_an_entropy():
    (itself,) = degree_features(np.eye(4)[None, None])[0]
    assert itself[2] == 0
    links = np.eye(4)[[1, 0, 1, 2]]  # bars of length 0 and 0 and 0: all tokens are linked fully
    links[3] = [0.5, 0, 0, 0.5]  # and now 0, 0 and ½
    (features,) = barcode_features(links[None, None])[0]
    np.testing.assert_allclose(features[[0, 2]], [1 / 6, np.log(3)])


def test_auc_is_that_of_scikit_learn(rng):
    features, labels = rng.integers(0, 9, size=(50, 4)).astype(float), np.arange(50) % 2
    expected = [roc_auc_score(labels, column) for column in features.T]
    np.testing.assert_allclose(auc(features, labels), expected)


def test_a_class_that_is_written_in_a_feature_is_found_and_noise_is_not(rng):
    labels = np.arange(100) % 2
    noise = rng.normal(size=(100, 5))
    told = np.column_stack([noise, labels + 0.1 * rng.normal(size=100)])
    assert held_out_hits(told, labels, seed=0).mean() > 0.95
    assert 0.3 < held_out_hits(noise, labels, seed=0).mean() < 0.7
    again = held_out_hits(told, labels, seed=0)
    np.testing.assert_array_equal(held_out_hits(told, labels, seed=0), again)


def _graphs(n, *layers):
    """Symmetric graphs of n points from lists of edges."""
    found = np.zeros((len(layers), n, n), dtype=bool)
    for graph, edges in zip(found, layers, strict=True):
        for i, j in edges:
            graph[i, j] = graph[j, i] = True
    return found


# Points 0, 1, 2, 3; the edge 01 always, 12 twice, 23 at the end.
BY_HAND = _graphs(4, [(0, 1), (1, 2)], [(0, 1)], [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 3)])


def test_an_edge_that_comes_back_has_two_stays():
    expected = [[0, 1, 0, 4], [1, 2, 0, 1], [1, 2, 2, 4], [2, 3, 3, 4]]
    assert edge_intervals(BY_HAND).tolist() == expected


def test_components_merge_where_an_edge_has_come_to_stay():
    assert components(BY_HAND).tolist() == [3, 3, 2, 1]
    assert components(_graphs(3, [(0, 1), (1, 2)], [(0, 1)])).tolist() == [2, 2]
    assert components(_graphs(3, [(0, 1)], [])).tolist() == [3, 3]


def test_survival_and_its_baseline_by_hand():
    lived, forgotten = survival(BY_HAND)
    np.testing.assert_allclose(lived, [1, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(forgotten, [1, 0.5, 0.5, 0.5])
    swapped = _graphs(4, [(0, 1), (1, 2)], [(0, 1), (2, 3)], [(2, 3), (0, 3)])
    lived, forgotten = survival(swapped)
    np.testing.assert_allclose(lived, [1, 0.5, 0])
    np.testing.assert_allclose(forgotten, [1, 0.5, 0.25])


def test_neighbours_are_joined_whichever_of_the_two_is_near():
    line = np.array([[0.0], [1.0], [3.0], [3.5]])
    (graph,) = neighbour_graphs(line[None], k=1)
    assert np.argwhere(np.triu(graph)).tolist() == [[0, 1], [2, 3]]
    (graph,) = neighbour_graphs(np.array([[[0.0], [1.0], [2.5]]]), k=1)
    assert np.argwhere(np.triu(graph)).tolist() == [[0, 1], [1, 2]]


def test_features_of_equal_attention_are_known():
    t = 5
    equal = np.full((1, 1, t, t), 1 / t)
    np.testing.assert_allclose(barcode_features(equal)[0, 0], [1 - 1 / t, 0, 0], atol=1e-12)
    np.testing.assert_allclose(degree_features(equal)[0, 0], [1 - 1 / t, 0, np.log(t)], atol=1e-12)
