"""Stays of edges, the filtration over layers, and what survives."""

import numpy as np

from shrink_utils.study.language.lifetimes import (
    components,
    edge_intervals,
    neighbour_graphs,
    survival,
)


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


def test_stays_add_up_to_the_edges_of_all_layers():
    graphs = np.triu(np.random.default_rng(0).random((6, 15, 15)) < 0.3, 1)
    graphs |= graphs.transpose(0, 2, 1)
    intervals = edge_intervals(graphs)
    assert (intervals[:, 3] - intervals[:, 2]).sum() == graphs.sum() / 2
    for i, j, born, died in intervals:
        assert graphs[born:died, i, j].all()
        assert born == 0 or not graphs[born - 1, i, j]
        assert died == 6 or not graphs[died, i, j]


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
