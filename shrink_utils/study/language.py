"""Topology on language (12): attention graphs, RTD-Lite, and lives of neighbourhoods."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, minimum_spanning_tree
from scipy.spatial import KDTree
from scipy.spatial.distance import pdist, squareform
from scipy.special import entr
from scipy.stats import mannwhitneyu
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from torch import Tensor

from shrink_utils.models import Encoder
from shrink_utils.topology.arrays import _as_rows, _power_of_two
from shrink_utils.topology.spanning_tree import prim

# --- spanning trees: bars of attention, and the divergence of two clouds --------------------------

UNIT_QUANTILE = 0.9  # the quantile of a cloud's distances that becomes 1


def tree_lengths(distances: np.ndarray) -> np.ndarray:
    """Finite H0 bars of symmetric distances (…, n, n), longest first, (…, n − 1).

    As ``h0_barcode(…, metric="precomputed")``, of many small graphs in one call.
    """
    n = distances.shape[-1]
    i, j = np.triu_indices(n, 1)
    pairs = distances.reshape(-1, n, n)[:, i, j]  # (graphs, pairs)
    first = n * np.arange(len(pairs))[:, None]  # one graph of many parts: one call of SciPy
    places = (first + i).ravel(), (first + j).ravel()
    # SciPy takes a zero for an edge that is not there: all are 1 longer meanwhile.
    whole = csr_array((pairs.ravel() + 1.0, places), shape=(n * len(pairs),) * 2)
    lengths = minimum_spanning_tree(whole).data.reshape(len(pairs), n - 1) - 1.0
    return np.sort(lengths, axis=1)[:, ::-1].reshape(*distances.shape[:-2], n - 1)


def attention_distances(attention: np.ndarray) -> np.ndarray:
    """Distances 1 − max(a_ij, a_ji) between tokens, (…, t, t), from attention of the same shape."""
    distances = 1.0 - np.maximum(attention, np.swapaxes(attention, -1, -2))
    tokens = np.arange(attention.shape[-1])
    distances[..., tokens, tokens] = 0.0
    return distances


def rtd_lite(x: ArrayLike | Tensor, y: ArrayLike | Tensor, *, matched: bool = False) -> float:
    """Divergence of the cluster structure of two clouds of the same samples (RTD-Lite).

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample; at least 2 rows.
    matched : bool
        Our addition: the k-th shortest distance of either cloud is replaced by the mean of both
        clouds' k-th. Then only the order of distances counts, and not how they are distributed.

    Returns
    -------
    float
        At least 0, up to rounding, and 0 for equal clouds; in units of the clouds' own 0.9-quantile
        of pair distances. Symmetric. Invariant to shift, rotation and scale of either side; to a
        monotone map of its distances, which keeps every cluster, only if `matched`. Grows with n:
        compare it with its value for shuffled rows.

    Raises
    ------
    ValueError
        Other shapes, different numbers of rows, fewer than 2, NaN or infinity, or a cloud most of
        whose rows are identical.

    Notes
    -----
    With A and B the matrices of Euclidean distances, each divided by its 0.9-quantile, C the entry
    by entry minimum of both, and |T(·)| the total length of a minimum spanning tree, it is

    ½ (|T(A)| − |T(C)|) + ½ (|T(B)| − |T(C)|).

    An edge of T(C) joins two clusters at its own length; in A alone they meet later, or at once.
    |T(A)| − |T(C)| is the sum of these delays, the intervals of the RTD-L barcode. The quantile is
    over pairs i < j; the authors' program takes it over all n² entries, zeros of the diagonal too,
    which makes its results up to 7 % larger at n near 10.

    References
    ----------
    Tulchinskii et al. 2025, *RTD-Lite: Scalable Topological Analysis for Comparing Weighted Graphs
    in Learning Tasks*; after Barannikov et al. 2022, *Representation Topology Divergence*, which
    compares loops too.
    """
    a, b = _normal_distances(x, "x"), _normal_distances(y, "y")
    if len(a) != len(b):
        raise ValueError("x and y must have the same rows, and they differ in number")
    if matched:
        mean = (np.sort(a) + np.sort(b)) / 2
        a, b = (mean[d.argsort(kind="stable").argsort()] for d in (a, b))  # by rank
    of_a, of_b, of_both = (
        matrix[tuple(prim(matrix).T)].sum()
        for matrix in (squareform(d, checks=False) for d in (a, b, np.minimum(a, b)))
    )
    return float((of_a + of_b) / 2 - of_both)


def _normal_distances(x: ArrayLike | Tensor, name: str) -> np.ndarray:
    """Distances of the pairs i < j, in units of their quantile."""
    rows = _as_rows(x, min_rows=2, name=name).cpu().numpy()
    pairs = pdist(rows / _power_of_two(rows))  # scaled: no square overflows
    unit = np.quantile(pairs, UNIT_QUANTILE)
    if unit == 0:
        raise ValueError(f"{name} has {len(rows)} rows, most of them identical: nothing to compare")
    return pairs / unit


# --- attention as graphs of tokens: what bars, degrees or entropies of heads say of a text --------

INVERSE_PENALTIES = {"logisticregression__C": [1e-4, 1e-3, 1e-2, 1e-1]}
N_FOLDS = 5
BATCH = 16  # texts in a forward pass


def attention_maps(
    encoder: Encoder,
    texts: Sequence[str],
    text_pairs: Sequence[str] | None = None,
    *,
    max_length: int = 64,
) -> Iterator[np.ndarray]:
    """Attention of every layer and head, text by text: (layers, heads, t, t), rows sum to 1.

    Special tokens belong to the graph, as in the papers. The model is set to attention that keeps
    its weights ("eager"), and to evaluation.
    """
    model = encoder.model.eval()
    model.set_attn_implementation("eager")
    options = dict(truncation=True, max_length=max_length, padding=True, return_tensors="pt")
    for start in range(0, len(texts), BATCH):
        several = slice(start, start + BATCH)
        given = [list(texts[several])] + ([] if text_pairs is None else [list(text_pairs[several])])
        tokens = encoder.tokenizer(*given, **options).to(model.device)
        with torch.inference_mode():
            found = model(**tokens, output_attentions=True).attentions
        stacked = torch.stack(found, dim=1).double().cpu().numpy()  # (texts, layers, heads, t, t)
        for of_text, t in zip(stacked, tokens["attention_mask"].sum(dim=1).tolist(), strict=True):
            yield of_text[..., :t, :t]  # nothing looks at padding


def barcode_features(attention: np.ndarray) -> np.ndarray:
    """Of each head's bars: mean, standard deviation, missing entropy ln m − E; (layers, heads, 3).

    References
    ----------
    Kushnareva et al. 2021, *Artificial Text Detection via Examining the Topology of Attention
    Maps*; Cherniavskii et al. 2022, *Acceptability Judgements via Examining the Topology of
    Attention Maps*: statistics of the bars of each head's graph, with weights max(a_ij, a_ji).
    """
    distances = attention_distances(attention)
    bars = tree_lengths(distances)  # (layers, heads, t − 1)
    share = bars / bars.sum(axis=-1, keepdims=True)
    missing = np.log(bars.shape[-1]) - entr(share).sum(axis=-1)
    return np.stack([bars.mean(axis=-1), bars.std(axis=-1), missing], axis=-1)


def degree_features(attention: np.ndarray) -> np.ndarray:
    """Of each head: mean and s.d. of weighted degrees, mean entropy of a row; (layers, heads, 3).

    They need the same graph, and no topology.
    """
    degrees = (1.0 - attention_distances(attention)).sum(axis=-1) - 1.0  # without the token itself
    entropy = entr(attention).sum(axis=-1).mean(axis=-1)
    return np.stack([degrees.mean(axis=-1), degrees.std(axis=-1), entropy], axis=-1)


def held_out_hits(features: np.ndarray, labels: np.ndarray, *, seed: int) -> np.ndarray:
    """Whether each text's class is found by a logistic regression that did not see it, (n,).

    Five folds; the penalty is chosen on the other four. `features` (n, f) are standardized.
    """
    regression = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    inner, outer = (
        StratifiedKFold(n, shuffle=True, random_state=seed) for n in (N_FOLDS - 2, N_FOLDS)
    )
    fitted = GridSearchCV(regression, INVERSE_PENALTIES, cv=inner)
    with threadpool_limits(1):  # small matrices: threads would wait for each other
        return cross_val_predict(fitted, features, labels, cv=outer) == labels


def auc(features: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Probability that a text of class 1 has the higher value, per column of (n, f), (f,)."""
    one, other = features[labels == 1], features[labels != 1]
    return mannwhitneyu(one, other, method="asymptotic").statistic / (len(one) * len(other))


def largest_by_chance(features: np.ndarray, labels: np.ndarray, *, seed: int) -> float:
    """95 % quantile of the largest |AUC − ½| over columns, when the labels are shuffled."""
    rng = np.random.default_rng(seed)
    largest = [np.abs(auc(features, rng.permutation(labels)) - 0.5).max() for _ in range(200)]
    return float(np.quantile(largest, 0.95))


# --- how long a neighbourhood lives through the layers ------------------------------------------

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
