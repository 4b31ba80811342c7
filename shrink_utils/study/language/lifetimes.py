"""How long a neighbourhood lives through the layers: intervals of edges, and a filtration."""

import numpy as np
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

N_NEIGHBOURS = 10


def neighbour_graphs(layers: np.ndarray, *, k: int = N_NEIGHBOURS) -> np.ndarray:
    """Graph of each layer, (layers, n, n): an edge where one is of the other's k nearest.

    `layers` is (layers, n, d). A ``ValueError`` unless 1 ≤ k < n.
    """
    n = layers.shape[1]
    if not 1 <= k < n:
        raise ValueError(f"k: {k}, expected 1 to {n - 1} for {n} points")
    graphs = np.zeros((len(layers), n, n), dtype=bool)
    rows = np.arange(n)[:, None]
    for graph, points in zip(graphs, layers, strict=True):
        nearest = KDTree(points).query(points, k=k + 1)[1]
        graph[rows, nearest] = True
        graph |= graph.T
        np.fill_diagonal(graph, False)
    return graphs


def edge_intervals(graphs: np.ndarray) -> np.ndarray:
    """Every stay of an edge in consecutive layers: rows (i, j, first layer, layer after the last).

    They are the bars of the edges in the zigzag of the layers' graphs: an edge that comes back has
    two. `graphs` is (layers, n, n), symmetric; i < j.
    """
    upper = np.triu(graphs, 1).astype(np.int8)
    none = np.zeros_like(upper[:1])
    change = np.diff(np.concatenate([none, upper, none]), axis=0)  # (layers + 1, n, n)
    # Ordered by edge, then by layer: births and deaths of the same stay stand at the same place.
    i, j, born = np.nonzero(np.moveaxis(change == 1, 0, -1))
    *_, died = np.nonzero(np.moveaxis(change == -1, 0, -1))
    return np.stack([i, j, born, died], axis=1)


def components(graphs: np.ndarray) -> np.ndarray:
    """Components at each layer, (layers,), of edges that stay to the end once they are there.

    All points are there from layer 0; edges that the last layer does not have never count.
    """
    lasting = np.logical_and.accumulate(graphs[::-1])[::-1]  # there from this layer to the last
    return np.array([connected_components(graph)[0] for graph in lasting])


def survival(graphs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Share of the first layer's edges that every layer so far has had, (layers,); and a baseline.

    The baseline multiplies the shares that each step keeps of the layer before it: what would be
    left if a step forgot edges at random, whatever their age.
    """
    n_edges = graphs.sum(axis=(1, 2))
    lived = np.logical_and.accumulate(graphs, axis=0).sum(axis=(1, 2)) / n_edges[0]
    kept = (graphs[1:] & graphs[:-1]).sum(axis=(1, 2)) / n_edges[:-1]
    return lived, np.concatenate([[1.0], np.cumprod(kept)])
