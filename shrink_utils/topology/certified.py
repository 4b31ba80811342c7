"""Prim's and Borůvka's algorithms on rounded distances: every comparison certified."""

from __future__ import annotations

import numpy as np

from shrink_utils.topology.arrays import compiled

BLOCK = 96  # points a side: two blocks of 768 float32 coordinates fit a core's second-level cache


@compiled
def squared_distances(a: np.ndarray, b: np.ndarray, same: bool, out: np.ndarray) -> None:
    """Write ‖a_i − b_j‖² to ``out[i, j]``, in the precision of the points.

    Differences are taken first, so that nothing cancels. Three rows meet three at a time: six
    coordinates are then read for nine products. At the border the last row is taken again.
    With `same`, a and b are the same points: half is worked out, and mirrored.
    """
    zero = out.dtype.type(0)
    last_a, last_b, d = len(a) - 1, len(b) - 1, a.shape[1]
    for i in range(0, len(a), 3):
        i1, i2 = min(i + 1, last_a), min(i + 2, last_a)
        for j in range(i if same else 0, len(b), 3):
            j1, j2 = min(j + 1, last_b), min(j + 2, last_b)
            s00 = s01 = s02 = s10 = s11 = s12 = s20 = s21 = s22 = zero
            for k in range(d):
                x0, x1, x2, y0, y1, y2 = a[i, k], a[i1, k], a[i2, k], b[j, k], b[j1, k], b[j2, k]
                s00 += (x0 - y0) * (x0 - y0)
                s01 += (x0 - y1) * (x0 - y1)
                s02 += (x0 - y2) * (x0 - y2)
                s10 += (x1 - y0) * (x1 - y0)
                s11 += (x1 - y1) * (x1 - y1)
                s12 += (x1 - y2) * (x1 - y2)
                s20 += (x2 - y0) * (x2 - y0)
                s21 += (x2 - y1) * (x2 - y1)
                s22 += (x2 - y2) * (x2 - y2)
            out[i2, j], out[i2, j1], out[i2, j2] = s20, s21, s22
            out[i1, j], out[i1, j1], out[i1, j2] = s10, s11, s12
            out[i, j], out[i, j1], out[i, j2] = s00, s01, s02
            if same:
                out[j2, i], out[j2, i1], out[j2, i2] = s02, s12, s22
                out[j1, i], out[j1, i1], out[j1, i2] = s01, s11, s21
                out[j, i], out[j, i1], out[j, i2] = s00, s10, s20


@compiled
def enter(block: np.ndarray, i0: int, j0: int, p: int, q: int, out: np.ndarray) -> None:
    """Write a block (p, q) into a symmetric matrix, at row i0 and column j0 and mirrored."""
    for i in range(p):
        for j in range(q):
            out[i0 + i, j0 + j] = block[i, j]
    for j in range(q):  # along the rows of `out` again: the other way costs a cache line a number
        for i in range(p):
            out[j0 + j, i0 + i] = block[i, j]


@compiled
def keep_nearest(
    block: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    component: np.ndarray,
    squared: np.ndarray,
    neighbour: np.ndarray,
) -> None:
    """Enter a block of squared distances into the neighbour lists of its rows and its columns.

    Only points of other components are entered. `rows` and `columns` are the same points, or no
    point is in both. The lists `squared` and `neighbour` (n, k), nearest first, change in place.
    """
    last = squared.shape[1] - 1
    same = rows[0] == columns[0]
    for p, i in enumerate(rows):
        for q in range(p + 1 if same else 0, len(columns)):
            value, j = block[p, q], columns[q]
            if value < squared[i, last] and component[i] != component[j]:
                _insert(value, j, squared[i], neighbour[i])
            if value < squared[j, last] and component[i] != component[j]:
                _insert(value, i, squared[j], neighbour[j])


@compiled
def _insert(value: float, index: int, squared: np.ndarray, neighbour: np.ndarray) -> None:
    """Put a neighbour in its place in an ascending list; the farthest drops out."""
    place = len(squared) - 1
    while place > 0 and squared[place - 1] > value:
        squared[place], neighbour[place] = squared[place - 1], neighbour[place - 1]
        place -= 1
    squared[place], neighbour[place] = value, index


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

    `squared` (n, n) holds the rounded squared distances. Returns edges (n − 1, 2) and measured
    lengths (n − 1,), longest first.
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

    `component` (n,) says in which of the m components a point is. Writes the measured squared
    length and the ends of each edge to `shortest` (m,), infinite if none, and `ends` (m, 2).
    Returns (m,) bool: whether no edge that the lists do not hold can be shorter.
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

    `block` holds rounded squared distances between the points `rows` and `columns`, only those
    above the diagonal where the two are the same. `shortest` and `ends` are as in
    `nearest_in_lists`, changed in place; a component with −∞ is not looked at.
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

    `component` (n,) is changed in place; new edges are written behind the first `n_edges`. Two
    components that chose each other, or several in a ring of equal lengths, would close a cycle:
    an edge whose ends are joined already is passed over. Returns the numbers of edges and of
    components now.
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
