"""Prim's and Borůvka's algorithms on rounded distances: every comparison certified.

A rounded squared distance s stands for the interval [(1 − ε) s − τ, (1 + ε) s + τ] (see
`spanning_tree`), and lies below another by more than 3 (ε s + τ) only if their intervals do not
overlap. Otherwise both are measured again in float64. A tree edge is always measured.
"""

from __future__ import annotations

import numpy as np

from shrink_utils.topology._compiled import compiled


@compiled
def _measured(points: np.ndarray, a: int, b: int) -> float:
    """‖x_a − x_b‖² in float64."""
    total = 0.0
    for k in range(points.shape[1]):
        difference = np.float64(points[a, k]) - np.float64(points[b, k])
        total += difference * difference
    return total


@compiled
def longest_first(edges: np.ndarray, squared: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A tree's edges (m, 2) and their lengths (m,), which are given as squares."""
    order = np.argsort(-squared, kind="mergesort")  # stable
    return edges[order], np.sqrt(squared[order])


@compiled
def prim(
    points: np.ndarray, squared: np.ndarray, epsilon: float, tau: float
) -> tuple[np.ndarray, np.ndarray]:
    """Grow the minimum spanning tree from point 0, always by the nearest point outside.

    Parameters
    ----------
    points : ndarray, shape (n, d), n ≥ 1
    squared : ndarray, shape (n, n)
        Rounded squared distances, symmetric.
    epsilon, tau : float
        Of their intervals.

    Returns
    -------
    edges : ndarray of int64, shape (n − 1, 2)
    lengths : ndarray of float64, shape (n − 1,)
        Measured; see `longest_first`.
    """
    n = len(points)
    edges, squared_lengths = np.empty((n - 1, 2), np.int64), np.empty(n - 1)
    outside = np.arange(1, n)  # its first n − 1 − step entries are
    nearest = np.zeros(n, np.int64)  # the point of the tree nearest to each point outside
    distance = np.full(n, np.inf)  # and their squared distance, rounded or measured
    newest = 0
    for step in range(n - 1):
        best, least, second = 0, np.inf, np.inf
        for place in range(n - 1 - step):
            j = outside[place]
            s, held = np.float64(squared[newest, j]), distance[j]
            if s < held + 3 * (epsilon * held + tau):
                if s + 3 * (epsilon * s + tau) >= held:  # too close to call
                    held = distance[j] = _measured(points, nearest[j], j)
                    s = _measured(points, newest, j)
                if s < held:
                    nearest[j], distance[j], held = newest, s, s
            if held < least:
                best, least, second = place, held, least
            elif held < second:
                second = held
        length = _measured(points, nearest[outside[best]], outside[best])
        limit = least + 3 * (epsilon * least + tau)
        if second <= limit:  # others might be nearer than the one found
            for place in range(n - 1 - step):
                j = outside[place]
                if distance[j] <= limit:
                    distance[j] = _measured(points, nearest[j], j)
                    if distance[j] < length:
                        best, length = place, distance[j]
        newest = outside[best]
        outside[best] = outside[n - 2 - step]
        edges[step, 0], edges[step, 1], squared_lengths[step] = nearest[newest], newest, length
    return longest_first(edges, squared_lengths)


@compiled
def nearest_in_lists(
    points: np.ndarray,
    component: np.ndarray,
    squared: np.ndarray,
    neighbour: np.ndarray,
    epsilon: float,
    tau: float,
    shortest: np.ndarray,
    ends: np.ndarray,
) -> np.ndarray:
    """Shortest edge from each component to the rest, as far as the neighbour lists can tell.

    Parameters
    ----------
    points : ndarray, shape (n, d)
    component : ndarray of int64, shape (n,)
        Which of the m components each point is in.
    squared, neighbour : ndarray, shape (n, k)
        Rounded squared distances and indices of the nearest points, nearest first.
    epsilon, tau : float
    shortest : ndarray, shape (m,)
    ends : ndarray of int64, shape (m, 2)
        Written here: the measured squared length and the ends of the edge; infinite if none.

    Returns
    -------
    ndarray of bool, shape (m,)
        Whether no edge that the lists do not hold can be shorter.
    """
    m, k = len(shortest), squared.shape[1]
    hidden = np.full(m, np.inf)  # no unlisted edge of the component is shorter than this
    shortest[:] = np.inf
    for i in range(len(points)):
        c = component[i]
        for place in range(k):
            s = np.float64(squared[i, place])
            if (1 - epsilon) * s - tau >= shortest[c]:
                break  # nor is what follows any nearer
            j = neighbour[i, place]
            if component[j] != c:
                length = _measured(points, i, j)
                if length < shortest[c]:
                    shortest[c], ends[c, 0], ends[c, 1] = length, i, j
        else:  # the list has run out
            hidden[c] = min(hidden[c], (1 - epsilon) * s - tau)
    return (shortest <= hidden) | (shortest == 0.0)


@compiled
def nearest_in_block(
    points: np.ndarray,
    block: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    component: np.ndarray,
    epsilon: float,
    tau: float,
    shortest: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Shorten the shortest edge of each component by those between two blocks of points.

    Parameters
    ----------
    block : ndarray
        Rounded squared distances between the points `rows` and the points `columns`; only those
        above the diagonal where the two are the same.
    shortest, ends : ndarray, shape (m,) and (m, 2)
        As in `nearest_in_lists`; changed in place. A component with −∞ is not looked at.
    """
    same = rows[0] == columns[0]
    for p, i in enumerate(rows):
        a = component[i]
        for q in range(p + 1 if same else 0, len(columns)):
            j = columns[q]
            b = component[j]
            low = (1 - epsilon) * np.float64(block[p, q]) - tau
            if a != b and (low < shortest[a] or low < shortest[b]):
                length = _measured(points, i, j)
                if length < shortest[a]:
                    shortest[a], ends[a, 0], ends[a, 1] = length, i, j
                if length < shortest[b]:
                    shortest[b], ends[b, 0], ends[b, 1] = length, i, j


@compiled
def join(
    component: np.ndarray, chosen: np.ndarray, ends: np.ndarray, edges: np.ndarray, n_edges: int
) -> np.ndarray:
    """Enter the chosen components' edges into the tree and number the components afresh.

    Parameters
    ----------
    component : ndarray of int64, shape (n,)
        Changed in place.
    chosen : ndarray of int64
        Components whose edge to the rest is a shortest one.
    ends : ndarray of int64, shape (m, 2)
    edges : ndarray of int64, shape (n − 1, 2)
        The first `n_edges` are there; the new ones are written behind them.

    Returns
    -------
    ndarray of int64
        ``[number of edges, number of components]`` now.

    Notes
    -----
    Two components that chose each other, or several in a ring of equal lengths, would close a
    cycle: an edge whose ends are joined already is passed over. What is entered is still part of
    a minimum spanning tree, since the edges of such a ring are all equally long.
    """
    parent = np.arange(len(ends))
    for c in chosen:
        a, b = component[ends[c, 0]], component[ends[c, 1]]
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if a != b:
            parent[max(a, b)] = min(a, b)
            edges[n_edges, 0], edges[n_edges, 1] = ends[c, 0], ends[c, 1]
            n_edges += 1
    number, m = np.empty_like(parent), 0
    for c in range(len(parent)):  # a parent has a lower number than its children
        if parent[c] == c:
            number[c], m = m, m + 1
        else:
            number[c] = number[parent[c]]
    for i in range(len(component)):
        component[i] = number[component[i]]
    return np.array([n_edges, m])
