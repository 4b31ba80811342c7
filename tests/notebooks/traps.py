"""Wrong answers that one might well give: `test_course` has each rejected by its name."""

import re

# chapter.exercise: words of what the check says, then the answer
ANSWERS = """
# 00.1: at least half a point
def majority_rate(ratings):
    kept = [r for r in ratings if abs(r) > 0.5]
    return max(np.mean(np.array(kept) > 0), np.mean(np.array(kept) < 0))
# 00.1: at least half a point
def majority_rate(ratings): return np.mean([r > 0 for r in ratings if r > 0.5 or r <= -0.5])
# 00.1: One number
def majority_rate(ratings):
    kept = np.array([r > 0 for r in ratings if abs(r) >= 0.5])
    return np.array([np.mean(kept), np.mean(~kept)])
# 00.1: nearer to zero
def majority_rate(ratings): return np.mean(np.array(ratings) > 0)
# 00.1: not of all
def majority_rate(ratings): return np.mean(np.array(ratings) >= 0.5)
# 00.1: rarer class
def majority_rate(ratings):
    positive = np.mean([r > 0 for r in ratings if abs(r) >= 0.5])
    return min(positive, 1 - positive)
# 00.1: divide by the number
def majority_rate(ratings): return sum(r > 0 for r in ratings if abs(r) >= 0.5)
# 00.1: which part of it
def majority_rate(ratings): return np.mean(np.abs(ratings) >= 0.5)
# 00.1: on the negative side
def majority_rate(ratings): return np.mean([r > 0 for r in ratings if r > -0.5])
# 00.1: need not be the positive
def majority_rate(ratings): return np.mean([r > 0 for r in ratings if abs(r) >= 0.5])

# 01.1: with itself
def avg_sim_of(n, R): return R**2
# 01.1: still in the sum
def avg_sim_of(n, R): return n * R**2 / (n - 1)
# 01.1: not n²
def avg_sim_of(n, R): return R**2 - 1 / n
# 01.1: R is squared
def avg_sim_of(n, R): return (n * R - 1) / (n - 1)
# 01.1: n² times as large
def avg_sim_of(n, R): return (n * R**2 - n) / (n**2 - n)
# 01.1: both orders
def avg_sim_of(n, R): return 2 * (n * R**2 - 1) / (n - 1)
# 01.1: n of them
def avg_sim_of(n, R): return (n**2 * R**2 - 1) / (n**2 - n)
# 01.2: its own
def contributions(x):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return (unit.sum(0) ** 2 - len(x)) / (len(x) ** 2 - len(x))
# 01.2: its own
def contributions(x):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return (unit.sum(0) ** 2 - len(x) / x.shape[1]) / (len(x) ** 2 - len(x))
# 01.2: is squared
def contributions(x):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return (unit.sum(0) - (unit**2).sum(0)) / (len(x) ** 2 - len(x))
# 01.2: divide each row by its norm
def contributions(x): return (x.sum(0) ** 2 - (x**2).sum(0)) / (len(x) ** 2 - len(x))
# 01.2: not each column
def contributions(x):
    unit = x / np.linalg.norm(x, axis=0)
    return (unit.sum(0) ** 2 - 1) / (len(x) ** 2 - len(x))
# 01.2: number of pairs
def contributions(x): return (len(x) ** 2 - len(x)) * rogue_dimensions(x).numpy()
# 01.2: both orders
def contributions(x): return 2 * rogue_dimensions(x).numpy()
# 01.2: they sum to 1
def contributions(x): return (rogue_dimensions(x) / rogue_dimensions(x).sum()).numpy()
# 01.2: Do not centre
def contributions(x): return rogue_dimensions(x - x.mean(0)).numpy()
# 01.2: not by n²
def contributions(x):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return (unit.sum(0) ** 2 - (unit**2).sum(0)) / len(x) ** 2
# 01.2: do not halve
def contributions(x):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return (unit.sum(0) ** 2 - (unit**2).sum(0)) / (len(x) ** 2 - len(x)) / 2
# 01.2: root
def contributions(x):
    unit = x / (x**2).sum(axis=1, keepdims=True)
    return (unit.sum(0) ** 2 - (unit**2).sum(0)) / (len(x) ** 2 - len(x))
# 01.2: one of squares
def contributions(x):
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    return (unit.sum(0) ** 2 - unit.sum(0)) / (len(x) ** 2 - len(x))
# 01.3: take the root
def rows_needed(d, factor): return d / (factor - 1)
# 01.3: Upside down
def rows_needed(d, factor): return d * (math.sqrt(factor) - 1) ** 2
# 01.3: Upside down
def rows_needed(d, factor): return d * factor
# 01.3: not its square
def rows_needed(d, factor): return d / (factor**2 - 1) ** 2
# 01.3: The 1 of the bracket is missing
def rows_needed(d, factor): return d / factor
# 01.3: changes sides
def rows_needed(d, factor): return d / (math.sqrt(factor) + 1) ** 2
# 01.3: it cancels
def rows_needed(d, factor): return d / (math.sqrt(factor * d) - 1) ** 2
# 01.3: do not round
def rows_needed(d, factor): return math.ceil(d / (math.sqrt(factor) - 1) ** 2)
# 01.3: That is √n
def rows_needed(d, factor): return math.sqrt(d) / (math.sqrt(factor) - 1)
# 01.3: squared as a whole
def rows_needed(d, factor): return (d / (math.sqrt(factor) - 1)) ** 2
# 01.4: is for r = 1
def log_I_of_parallel(r): return -2
# 01.4: w·c is r
def log_I_of_parallel(r): return -2 * r**2
# 01.4: w·c is r
def log_I_of_parallel(r): return -(r**2)
# 01.4: least and the largest
def log_I_of_parallel(r): return 0.0
# 01.4: number of rows cancels
def log_I_of_parallel(r): return -2 * 30 * r
# 01.4: direction across
def log_I_of_parallel(r): return -r
# 01.4: The sign
def log_I_of_parallel(r): return 2 * r
# 01.4: take its logarithm
def log_I_of_parallel(r): return math.exp(-2 * r)
# 01.5: IsoScore at
def first_score(s, d): return s / (s + d - 1)
def spiked_iso_score(s, d): return 1 - s / (s + d - 1)
# 01.5: numerator is its variance
def first_score(s, d): return 1 / (s + d - 1)
# 01.5: is squared, too
def spiked_iso_score(s, d): return ((s + d - 1) ** 2 / math.sqrt(s**2 + d - 1) - 1) / (d - 1)
# 01.5: not the square of their sum
def spiked_iso_score(s, d): return ((s + d - 1) ** 2 / (s + d - 1) ** 2 - 1) / (d - 1)
# 01.5: take 1 from both
def spiked_iso_score(s, d): return (s + d - 1) ** 2 / (s**2 + d - 1) / d
# 01.5: one of the d
def first_score(s, d): return s / (s + d)
# 01.5: do not square it again
def first_score(s, d): return s**2 / (s**2 + d - 1)
# 01.5: take 1 from PR
def spiked_iso_score(s, d): return (s + d - 1) ** 2 / (s**2 + d - 1) / (d - 1)
# 01.5: sum of squares is
def spiked_iso_score(s, d): return ((s + d - 1) ** 2 / (s**2 + d) - 1) / (d - 1)
# 01.5: ones: the trace
def spiked_iso_score(s, d): return ((s + d) ** 2 / (s**2 + d - 1) - 1) / (d - 1)
# 01.5: squares
def spiked_iso_score(s, d): return (s + d - 2) / (d - 1)
# 01.6: First the logarithm
def two_nn(r1, r2): return 1 / np.log((r2 / r1).mean())
# 01.6: First the logarithm
def two_nn(r1, r2): return 1 / (r2 / r1).mean()
# 01.6: not the sum
def two_nn(r1, r2): return 1 / np.log(r2 / r1).sum()
# 01.6: natural logarithm
def two_nn(r1, r2): return 1 / np.log10(r2 / r1).mean()
# 01.6: then its inverse
def two_nn(r1, r2): return (1 / np.log(r2 / r1)).mean()
# 01.6: larger distance over
def two_nn(r1, r2): return 1 / np.log(r1 / r2).mean()
# 01.7: has to use all directions
def thread(n, d):
    angle = dice.uniform(0, 2 * np.pi, size=(n, 1))
    return np.hstack([np.cos(angle), np.sin(angle), 1e-3 * dice.normal(size=(n, d - 2))])
# 01.8: of 12 are right
moves = dict.fromkeys(moves, set())
# 01.8: A set, please
moves = dict.fromkeys(moves, "AvgSim")

# 02.1: every cosine rises
def alike(): return [[1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [1, -1]]
# 02.1: equally alike
def alike(): return np.ones((6, 2))
# 02.1: a place of its own
def alike(): return [[4, 1], [4, -1]] * 3
# 02.2: Nothing left
def left_of_noise(A): return 0.0
worst_A = 0.5
# 02.2: IntraSim itself
def left_of_noise(A): return math.sqrt(A)
# 02.2: does not tend to 1
def left_of_noise(A): return 1 - A
# 02.2: The sign: IntraSim minus A
def left_of_noise(A): return A - math.sqrt(A)
# 02.2: slope of √A
worst_A = 0.5
# 02.2: 1 / L goes to 0
def left_of_noise(A): return math.sqrt(1 + A) - A
# 02.3: Do not centre
def mev_of_two(c): return 1.0
# 02.3: shares are of squares
def mev_of_two(c): return math.cos(math.acos(c) / 2)
# 02.3: opposite vectors
def mev_of_two(c): return (1 + c) / 2
# 02.3: still has half
def mev_of_two(c): return c
# 02.3: one of them has a share
def floor(m): return 0
# 02.3: of one of the two
def mev_of_two(c): return (1 + c**2) / 2
# 02.3: count both
def mev_of_two(c): return c**2
# 02.3: shares are of squares
def floor(m): return 1 / math.sqrt(m)
# 02.3: none is lost
def floor(m): return 1 / (m - 1)
# 02.4: a common factor cancels
changes = dict.fromkeys(changes, {'SelfSim', 'IntraSim', 'MEV'})
# 02.4: do not see a rotation
changes['all vectors are turned by 40 degrees'] = {'MEV'}
# 02.4: A set, please
changes['in sentence 2, my and bank swap their vectors'] = 'SelfSim'
# 02.4: A set, please
changes['every vector is three times as long'] = {}
# 02.4: No such measure
changes['in sentence 2, my and bank swap their vectors'] = {'Selfsim'}

# 03.1: Rotations
def same_to_cca(x): return 3 * x @ np.linalg.qr(x.T @ x)[0]
# 03.1: right so far
def same_to_cca(x): return x * np.geomspace(1, 10, 8)
# 03.2: One factor for all rows
def same_to_rsa(x): return 5 * x
# 03.2: right so far
def same_to_rsa(x): return x / np.linalg.norm(x, axis=1, keepdims=True)
# 03.2: keep every factor above 0
def same_to_rsa(x): return x * (np.arange(len(x)) % 2)[:, None]
# 03.3: centre both
def cka_of_grams(K, L):
    return float((K * L).sum() / np.linalg.norm(K) / np.linalg.norm(L))
# 03.3: numerator
def cka_of_grams(K, L):
    H = np.eye(len(K)) - 1 / len(K)
    return float(np.trace(K @ H @ L @ H))
# 03.3: root of the product
def cka_of_grams(K, L):
    H = np.eye(len(K)) - 1 / len(K)
    K, L = H @ K @ H, H @ L @ H
    return float((K * L).sum() / ((K * K).sum() * (L * L).sum()))
# 03.3: one side only
def cka_of_grams(K, L):
    K, L = K - K.mean(0), L - L.mean(0)
    return float((K * L).sum() / np.linalg.norm(K) / np.linalg.norm(L))
# 03.3: divided by n
def cka_of_grams(K, L):
    H = np.eye(len(K)) - 1
    K, L = H @ K @ H, H @ L @ H
    return float((K * L).sum() / np.linalg.norm(K) / np.linalg.norm(L))
# 03.3: CKA squared
def cka_of_grams(K, L):
    H = np.eye(len(K)) - 1 / len(K)
    K, L = H @ K @ H, H @ L @ H
    return float((K * L).sum() ** 2 / ((K * K).sum() * (L * L).sum()))
# 03.4: limit for n
def cka_of_nothing(n, d): return d / n
# 03.4: changed places
def cka_of_nothing(n, d): return n / (n + d + 1)
# 03.4: is 3, not 1
def cka_of_nothing(n, d): return d / (n + d - 1)
# 03.4: off the diagonal as well
def cka_of_nothing(n, d): return d / (n + 2)
# 03.4: no root is left
def cka_of_nothing(n, d): return math.sqrt(d / (n + d + 1))
# 03.4: Off by one
def cka_of_nothing(n, d): return d / (n + d)
# 03.4: ratio of the two means
def cka_of_nothing(n, d): return d / (n + d + 2)

# 04.1: radius of the balls
def appears(corners): return np.linalg.norm(corners[:, None] - corners, axis=2).max() / 2
# 04.1: At the mean edge
def appears(corners):
    gaps = np.linalg.norm(corners[:, None] - corners, axis=2)
    return gaps[np.triu_indices(len(gaps), 1)].mean()
# 04.1: take the root
def appears(corners): return ((corners[:, None] - corners) ** 2).sum(axis=2).max()
# 04.1: all of its edges
def appears(corners): return h0_barcode(torch.from_numpy(corners)).lengths[0].item()
# 04.1: that follow each other
def appears(corners): return np.linalg.norm(np.diff(corners, axis=0), axis=1).max()
# 04.1: one edge decides
def appears(corners):
    gaps = np.linalg.norm(corners[:, None] - corners, axis=2)
    return gaps[np.triu_indices(len(gaps), 1)].sum()
# 04.1: at the first corner
def appears(corners): return np.linalg.norm(corners - corners[0], axis=1).max()
# 04.1: largest difference
def appears(corners): return np.abs(corners[:, None] - corners).max()
# 04.2: Nearest neighbours
def h0(points):
    gaps = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(gaps, np.inf)
    return np.sort(gaps.min(axis=1))[1:][::-1]
# 04.2: Longest first
def h0(points): return h0_barcode(torch.from_numpy(points)).lengths.numpy()[::-1]
# 04.2: never dies
def h0(points): return np.array([np.inf, *h0_barcode(torch.from_numpy(points)).lengths])
# 04.2: point of the tree
def h0(points): return np.sort(np.linalg.norm(points[1:] - points[0], axis=1))[::-1]
# 04.2: from each row to the next
def h0(points): return np.sort(np.linalg.norm(np.diff(points, axis=0), axis=1))[::-1]
# 04.2: can close a cycle
def h0(points):
    gaps = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(len(points), 1)]
    return np.sort(np.sort(gaps)[: len(points) - 1])[::-1]
# 04.2: drops zeros
def h0(points):
    lengths = h0_barcode(torch.from_numpy(points)).lengths.numpy()
    return lengths[lengths > 0]
# 04.2: relabel
def h0(points):
    gaps, labels, bars = np.linalg.norm(points[:, None] - points, axis=2), [*range(len(points))], []
    for i, j in zip(*np.unravel_index(np.argsort(gaps, axis=None), gaps.shape), strict=True):
        if labels[i] != labels[j]:
            labels[i] = labels[j]
            bars.append(gaps[i, j])
    return np.array(bars[::-1])
# 04.2: compare components
def h0(points):
    gaps, seen, bars = np.linalg.norm(points[:, None] - points, axis=2), set(), []
    for i, j in zip(*np.unravel_index(np.argsort(gaps, axis=None), gaps.shape), strict=True):
        if i != j and not {i, j} <= seen:
            seen |= {i, j}
            bars.append(gaps[i, j])
    return np.array(bars[::-1])
# 04.2: leave out the 0
def h0(points): return np.append(h0_barcode(torch.from_numpy(points)).lengths.numpy(), 0)
# 04.2: longest of all distances
def h0(points):
    gaps = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(len(points), 1)]
    return np.sort(gaps)[::-1][: len(points) - 1]
# 04.2: take the root
def h0(points): return h0_barcode(torch.from_numpy(points)).lengths.numpy() ** 2
# 04.3: in bits
def entropy(s, m):
    p = np.array([s] + [1.0] * (m - 1)) / (s + m - 1)
    return float(-(p * np.log2(p)).sum())
# 04.3: the total is
def entropy(s, m): return math.log(s + m) - s * math.log(s) / (s + m)
# 04.3: take the logarithm
def entropy(s, m): return (s + m - 1) * s ** (-s / (s + m - 1))
# 04.3: has its own term
def entropy(s, m): return math.log(s + m - 1)
# 04.3: is a share
def entropy(s, m): return math.log(s + m - 1) - s * math.log(s)
# 04.3: its term is missing
def entropy(s, m): return (m - 1) / (s + m - 1) * math.log(s + m - 1)
# 04.3: the bar a alone
def entropy(s, m): return -s / (s + m - 1) * math.log(s / (s + m - 1))
# 04.3: has the weight p
def entropy(s, m):
    total = s + m - 1
    return math.log(total) - s / total * math.log(s / total)
# 04.3: not one together
def entropy(s, m): return -sum(p * math.log(p) for p in (s / (s + m - 1), (m - 1) / (s + m - 1)))
# 04.3: its a is missing
def entropy(s, m): return math.log(s + m - 1) - math.log(s) / (s + m - 1)
# 04.3: the largest entropy
def entropy(s, m): return math.log(m)
# 04.4: Not the mean
def turning_length(lengths): return float(lengths.mean())
# 04.4: p times the total
def turning_length(lengths): return torch.exp(-persistent_entropy(lengths)).item()
# 04.4: counts all bars alike
def turning_length(lengths): return lengths.log().mean().exp().item()
# 04.4: Not the median
def turning_length(lengths): return lengths.median().item()
# 04.4: changes all shares
def turning_length(lengths): return lengths.sum().item() / math.e
# 04.4: The sign
def turning_length(lengths): return (lengths.sum() * persistent_entropy(lengths).exp()).item()
# 04.5: two short sides
def loop(a, b): return a, np.hypot(a, b)
# 04.5: birth first
def loop(a, b): return math.hypot(a, b), b
# 04.5: live for ever
def loop(a, b): return b, math.inf
# 04.5: take the root
def loop(a, b): return b, a**2 + b**2
# 04.5: Half the diagonal
def loop(a, b): return b, math.hypot(a, b) / 2
# 04.5: A pair
def loop(a, b): return math.hypot(a, b) - b
# 04.5: when it closes
def loop(a, b): return 0, math.hypot(a, b)
# 04.5: along two sides
def loop(a, b): return a + b, math.hypot(a, b)
# 04.5: sides are there before
def loop(a, b): return math.hypot(a, b), 2 * b
# 04.6: in the covariance
def uneven(): return rng.normal(size=(64, 4)) * [50, 5, 1, 1]
# 04.7: 2 of 4 are right
E_goes = dict.fromkeys(E_goes, 'down')
# 04.7: 3 of 4 are right. The doubled point
E_goes["one point is doubled (an equal point is added)"] = "down"
# 04.8: gaps, not places
def cloud(lengths): return np.array([0.0, *lengths])[:, None]
# 04.8: a dimension each
def cloud(lengths):
    turns = np.exp(2j * np.pi * np.arange(len(lengths)) / len(lengths)) * lengths
    return np.array([[0, 0], *zip(turns.real, turns.imag)])
# 04.8: radii
def cloud(lengths): return np.cumsum([0.0, *lengths])[:, None] / 2

# 04b.1: go to the diagonal
def distance(p, q): return max(abs(p[0] - q[0]), abs(p[1] - q[1]))
# 04b.1: not the sum
def distance(p, q):
    return min(np.abs(np.subtract(p, q)).max(), (p[1] - p[0] + q[1] - q[0]) / 2)
# 04b.1: not the smaller
def distance(p, q):
    return min(np.abs(np.subtract(p, q)).max(), (p[1] - p[0]) / 2, (q[1] - q[0]) / 2)
# 04b.1: not the distance in the plane
def distance(p, q):
    return min(np.hypot(p[0] - q[0], p[1] - q[1]), max(p[1] - p[0], q[1] - q[0]) / 2)
# 04b.1: matched with each other
def distance(p, q): return max(p[1] - p[0], q[1] - q[0]) / 2
# 04b.1: not the mean
def distance(p, q):
    return min(np.abs(np.subtract(p, q)).max(), (p[1] - p[0] + q[1] - q[0]) / 4)
# 04b.2: fade out
def image(diagram, x, y, sigma):
    total = np.zeros((len(y), len(x)))
    for birth, death in diagram:
        total += np.exp(-((x - birth) ** 2 + (y[:, None] - (death - birth)) ** 2) / (2 * sigma**2))
    return total
# 04b.2: of its two slopes
def landscape(diagram, k, t):
    births, deaths = diagram.T[..., None]
    return np.sort(np.maximum(t - births, deaths - t).clip(min=0), axis=0)[-k]
# 04b.2: from the smallest
def landscape(diagram, k, t):
    tents = np.minimum(t - diagram[:, :1], diagram[:, 1:] - t).clip(min=0)
    return np.sort(tents, axis=0)[k - 1]
# 04b.2: at every t anew
def landscape(diagram, k, t):
    birth, death = diagram[k - 1]
    return np.minimum(t - birth, death - t).clip(min=0)
# 04b.2: second coordinate
def image(diagram, x, y, sigma):
    total = 0
    for b, d in diagram:
        total += (d - b) * np.exp(-((x - b) ** 2 + (y[:, None] - d) ** 2) / (2 * sigma**2))
    return total
# 04b.2: square σ
solved = image
def image(diagram, x, y, sigma): return solved(diagram, x, y, sigma**0.5)
# 04b.2: not their mean
solved = image
def image(diagram, x, y, sigma): return solved(diagram, x, y, sigma) / len(diagram)
# 04b.2: it is not flat
def landscape(diagram, k, t):
    births, deaths = diagram.T[..., None]
    return np.sort(((births < t) & (t < deaths)) * (deaths - births) / 2, axis=0)[-k]
# 04b.2: no root
def image(diagram, x, y, sigma):
    total = 0
    for b, d in diagram:
        total += (d - b) * np.exp(-np.hypot(x - b, y[:, None] - d + b) / (2 * sigma**2))
    return total
# 04b.2: Shape
solved = image
def image(diagram, x, y, sigma): return solved(diagram, x, y, sigma).ravel()
# 04b.3: 2 of 4 are right
can_change = dict.fromkeys(can_change, 'more')
# 04b.3: 3 of 4 are right. The entropy
can_change["the entropy of all bars of H0"] = "2δ"
# 04b.3: The words are
can_change = dict.fromkeys(can_change, "2d")
# 04b.4: 1 of 5 are right
is_a = dict.fromkeys(hunt, 'noise')
# 04b.4: rings are swapped
swap = {'one ring': 'two rings', 'two rings': 'one ring'}
is_a = {name: swap.get(kind, kind) for name, kind in is_a.items()}
# 04b.4: very uneven bars
is_a = {name: {'noise': 'a line', 'a line': 'noise'}.get(kind, kind) for name, kind in is_a.items()}

# 05.1: bars are the gaps
def even(n): return rng.normal(size=(n, 1))
# 05.2: sign
def slope(a, b): return b * math.log(a / b) / (a + b) ** 2
# 05.2: total is squared
def slope(a, b): return b * math.log(b / a) / (a + b)
# 05.2: a b above the line: b
def slope(a, b): return math.log(b / a) / (a + b) ** 2
# 05.2: That is ∂E/∂b
def slope(a, b): return a * math.log(a / b) / (a + b) ** 2
# 05.2: times ∂p/∂a
def slope(a, b): return math.log(b / a)
# 05.2: sign of E
def slope(a, b):
    p = a / (a + b)
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    return -(math.log(p) - entropy) / (a + b)
# 05.2: times ∂E/∂p
def slope(a, b): return b / (a + b) ** 2
# 05.2: share of b changes
def slope(a, b): return -(math.log(a / (a + b)) + 1) / (a + b)
# 05.2: its slope in a
def slope(a, b): return math.log(a + b) - (a * math.log(a) + b * math.log(b)) / (a + b)
# 05.2: of b changes, too: ∂E/∂p
def slope(a, b): return -(math.log(a / (a + b)) + 1) * b / (a + b) ** 2
# 05.2: One of two terms
def slope(a, b): return -(math.log(a / (a + b)) + 1)
# 05.2: two logarithms
def slope(a, b): return -b * math.log(a / (a + b)) / (a + b) ** 2
# 05.2: flat only where
def slope(a, b): return 0.0
# 05.3: a tenth of the cloud
factors = {'loss': 1.0, 'gradient': 1.0}
# 05.3: not larger
factors = {'loss': 1.0, 'gradient': 10.0}
# 05.3: One factor of ten
factors = {'loss': 1.0, 'gradient': 0.01}
# 05.3: without quotation marks
factors = {'loss': '1', 'gradient': '1/10'}
# 05.3: not negative
factors = {'loss': 1.0, 'gradient': -0.1}
# 05.4: 1 of 3 are right
at_weight = dict.fromkeys(at_weight, 'rounder')
# 05.4: 2 of 3 are right. Think again of weight 1:
at_weight[1.0] = 'task pays'
# 05.5: no gradient
def cloud():
    one = [[0.0, 0], [0.1, 0], [0, 0.1], [0.1, 0.12]]
    return np.array(one + [[x + 9, 2 * y] for x, y in one])
# 05.6: Equal bars
def bars(k): return [1.0] * 12
# 05.6: cuts again, and keeps 4
def bars(k):
    return [10.0] * 4 + [4.25] * 2 + [2.0] * 6 if k == 6 else [10.0] * k + [0.1] * (12 - k)
# 05.7: 3 of 6 are right
changes = {name: {'with labels': True, 'without': True} for name in changes}
# 05.7: swap their labels, without
changes["two points of different classes swap their labels"]["without"] = True
# 05.7: quotation marks
changes = {name: {'with labels': 'yes', 'without': 'no'} for name in changes}

# 06.1: n − 1 bars
def least(rows, weight=1.0):
    return -weight * sum(math.log(n) for n in rows)
# 06.1: a class of one row
def least(rows, weight=1.0):
    with np.errstate(divide='ignore'):
        return -weight * sum(np.log(n - 1) for n in rows)
# 06.1: weight multiplies
def least(rows, weight=1.0): return -sum(math.log(n - 1) for n in rows if n > 1)
# 06.1: not averaged
def least(rows, weight=1.0): return -weight * np.mean([math.log(n - 1) for n in rows if n > 1])
# 06.1: of a sum
def least(rows, weight=1.0): return -weight * math.log(sum(rows) - len(rows))
# 06.1: not none
def least(rows, weight=1.0): return 0.0
# 06.1: In nats
def least(rows, weight=1.0): return -weight * sum(math.log2(n - 1) for n in rows if n > 1)
# 06.1: not m
def least(rows, weight=1.0): return -weight * sum(n - 1 for n in rows)
# 06.1: before the logarithm
def least(rows, weight=1.0): return -sum(math.log(weight * (n - 1)) for n in rows if n > 1)
# 06.1: the largest alone
def least(rows, weight=1.0): return -weight * math.log(max(rows) - 1)
# 06.1: without the task
def least(rows, weight=1.0):
    return math.log(2) - weight * sum(math.log(n - 1) for n in rows if n > 1)
# 06.2: Each part loses
def n_bars(batch, parts, classes=2): return batch - classes
# 06.2: edges of a tree
def n_bars(batch, parts, classes=2):
    rows = batch // parts // classes
    return parts * classes * rows * (rows - 1) // 2
# 06.2: n points have
def n_bars(batch, parts, classes=2): return batch
# 06.2: of a part has a barcode
def n_bars(batch, parts, classes=2): return batch - parts
# 06.2: That is one part
def n_bars(batch, parts, classes=2): return batch // parts - classes
# 06.2: half of the rows
def n_bars(batch, parts, classes=2): return parts * classes * (batch // parts - 1)
# 06.3: occur twice
mine = [('It plays well.', k % 2) for k in range(64)]
# 06.3: 2 of 3 are right. The errors
goes["errors"] = "up"
# 06.3: The words are
goes = dict.fromkeys(goes, 'lower')

# 07.1: standard deviations do not
def gain(arm, none): return (np.std(arm) + np.std(none)) / np.std(arm - none)
# 07.1: not their mean
def gain(arm, none): return math.sqrt((np.var(arm) + np.var(none)) / 2 / np.var(arm - none))
# 07.1: both arms vary equally
def gain(arm, none): return 1 / math.sqrt(1 - np.corrcoef(arm, none)[0, 1])
# 07.1: the other by n
def gain(arm, none):
    return math.sqrt((np.var(arm, ddof=1) + np.var(none, ddof=1)) / np.var(arm - none))
# 07.1: variances add
def gain(arm, none): return math.sqrt(abs(np.var(arm) - np.var(none)) / np.var(arm - none))
# 07.1: not at their sum
def gain(arm, none): return math.sqrt((np.var(arm) + np.var(none)) / np.var(arm + none))
# 07.1: Both arms vary
def gain(arm, none): return np.std(arm) / np.std(arm - none)
# 07.1: the unpaired deviation alone
def gain(arm, none): return math.sqrt(np.var(arm, ddof=1) + np.var(none, ddof=1))
# 07.1: not by the mean difference
def gain(arm, none):
    return math.sqrt(np.var(arm, ddof=1) + np.var(none, ddof=1)) / abs(np.mean(arm - none))
# 07.1: it cancels
def gain(arm, none):
    error = math.sqrt((np.var(arm, ddof=1) + np.var(none, ddof=1)) / len(arm))
    return error / np.std(arm - none, ddof=1)
# 07.2: normal quantile
def seeds_needed(s, margin): return math.ceil((1.96 * s / margin) ** 2)
# 07.2: take that of t
def spread(low, high, n): return (high - low) / 2 * math.sqrt(n) / 1.96
# 07.2: degrees of freedom
def spread(low, high, n): return (high - low) / 2 * math.sqrt(n) / stats.t.ppf(0.975, n)
# 07.2: two sides
def spread(low, high, n): return (high - low) / 2 * math.sqrt(n) / stats.t.ppf(0.95, n - 1)
# 07.2: not n
def seeds_needed(s, margin):
    return next(n for n in range(2, 99) if stats.t.ppf(0.975, n) * s / n**0.5 < margin)
# 07.2: the quantile at 0.95
def seeds_needed(s, margin):
    return next(n for n in range(2, 99) if stats.t.ppf(0.95, n - 1) * s / n**0.5 < margin)
# 07.2: only t has n
def spread(low, high, n): return (high - low) / 2 * math.sqrt(n - 1) / stats.t.ppf(0.975, n - 1)
# 07.2: not with the whole
def seeds_needed(s, margin):
    return next(n for n in range(2, 199) if 2 * stats.t.ppf(0.975, n - 1) * s / n**0.5 < margin)
# 07.2: the root of n
def seeds_needed(s, margin):
    return next(n for n in range(2, 99) if stats.t.ppf(0.975, n - 1) * s / n < margin)
# 07.2: less than needed
def seeds_needed(s, margin):
    return next(n for n in range(2, 99) if stats.t.ppf(0.975, n) * s / (n + 1) ** 0.5 < margin)
# 07.2: s is its root
def spread(low, high, n): return ((high - low) / 2 * math.sqrt(n) / stats.t.ppf(0.975, n - 1)) ** 2
# 07.2: has the root of n
def spread(low, high, n): return (high - low) / 2 * n / stats.t.ppf(0.975, n - 1)
# 07.2: begin at n = 2
def seeds_needed(s, margin):
    n = 1
    while stats.t.ppf(0.975, n - 1) * s / n**0.5 >= margin: n += 1
    return n
# 07.2: go on until it is below
def seeds_needed(s, margin):
    n = 2
    while stats.t.ppf(0.975, n - 1) * s / n**0.5 < margin: n += 1
    return n
# 07.2: not round 0
def spread(low, high, n): return high * math.sqrt(n) / stats.t.ppf(0.975, n - 1)
# 07.2: half width itself
def spread(low, high, n): return (high - low) / 2
# 07.2: has a factor t
def spread(low, high, n): return (high - low) / 2 * math.sqrt(n)
# 07.2: only t has n
def seeds_needed(s, margin):
    return next(n for n in range(2, 99) if stats.t.ppf(0.975, n - 1) * s / (n - 1) ** 0.5 < margin)
# 07.2: Two seeds have a spread
def seeds_needed(s, margin):
    return next(n for n in range(3, 99) if stats.t.ppf(0.975, n - 1) * s / n**0.5 < margin)
# 07.2: one seed more than needed
def seeds_needed(s, margin):
    return 1 + next(n for n in range(2, 99) if stats.t.ppf(0.975, n - 1) * s / n**0.5 < margin)
# 07b.1: e has the best metric
def frontier(arms): return {max(arms, key=lambda n: arms[n][1])}
# 07b.1: left is better
def frontier(arms):
    def beats(b, a): return b[0] >= a[0] and b[1] >= a[1] and a != b
    return {n for n, a in arms.items() if not any(beats(b, a) for b in arms.values())}
# 07b.1: one more that nobody beats
def frontier(arms):
    return {min(arms, key=lambda n: arms[n][0]), max(arms, key=lambda n: arms[n][1])}
# 07b.1: exchange rate
def frontier(arms): return {max(arms, key=lambda n: arms[n][1] - arms[n][0])}
# 07b.1: Nobody is left
def frontier(arms):
    def beats(b, a): return b[0] < a[0] or b[1] > a[1]
    return {n for n, a in arms.items() if not any(beats(b, a) for b in arms.values())}
# 07b.1: A higher metric is better
def frontier(arms):
    def beats(b, a): return b[0] <= a[0] and b[1] <= a[1] and a != b
    return {n for n, a in arms.items() if not any(beats(b, a) for b in arms.values())}
# 07b.1: At one score
def frontier(arms):
    def beats(b, a): return b[0] < a[0] and b[1] >= a[1]
    return {n for n, a in arms.items() if not any(beats(b, a) for b in arms.values())}
# 07b.2: wants rising scores
def accuracy_at(scores, accuracies, target): return np.interp(target, scores, accuracies)
# 07b.2: nearest weight
def accuracy_at(scores, accuracies, target):
    return accuracies[np.abs(np.subtract(scores, target)).argmin()]
# 07b.2: The middle of the two
def accuracy_at(scores, accuracies, target):
    for k in range(len(scores) - 1):
        if scores[k] >= target >= scores[k + 1]:
            return (accuracies[k] + accuracies[k + 1]) / 2
# 07b.2: Turned round
def accuracy_at(scores, accuracies, target):
    for k in range(len(scores) - 1):
        if scores[k] >= target >= scores[k + 1]:
            way = (scores[k] - target) / (scores[k] - scores[k + 1])
            return way * accuracies[k] + (1 - way) * accuracies[k + 1]
# 07b.2: neither nan
def accuracy_at(scores, accuracies, target):
    return np.interp(-target, -np.array(scores), accuracies, right=np.nan)
# 07b.2: fall all the way
def accuracy_at(scores, accuracies, target):
    if min(scores) <= target <= max(scores):
        return np.interp(-target, -np.array(scores), accuracies)
# 07b.2: nor the value at the end
def accuracy_at(scores, accuracies, target):
    return np.interp(-target, -np.array(scores), accuracies)
# 07b.2: do not sort by score
def accuracy_at(scores, accuracies, target):
    if min(scores) <= target <= max(scores):
        order = np.argsort(scores)
        return np.interp(target, np.array(scores)[order], np.array(accuracies)[order])
# 07b.2: may be the larger
def accuracy_at(scores, accuracies, target):
    for k in range(len(scores) - 1):
        if scores[k] <= target <= scores[k + 1]:
            way = (target - scores[k]) / (scores[k + 1] - scores[k])
            return accuracies[k] + way * (accuracies[k + 1] - accuracies[k])
# 07b.2: whose scores rise
def accuracy_at(scores, accuracies, target):
    for k in range(len(scores) - 1):
        if scores[k] >= target >= scores[k + 1]:
            way = (target - scores[k]) / (scores[k + 1] - scores[k])
            return accuracies[k] + way * (accuracies[k + 1] - accuracies[k])
# 07b.2: return at the first
def accuracy_at(scores, accuracies, target):
    found = None
    for k in range(len(scores) - 1):
        if (scores[k] - target) * (scores[k + 1] - target) <= 0:
            way = (target - scores[k]) / (scores[k + 1] - scores[k])
            found = accuracies[k] + way * (accuracies[k + 1] - accuracies[k])
    return found
# 07b.2: weight itself is enclosed
def accuracy_at(scores, accuracies, target):
    for k in range(len(scores) - 1):
        if (scores[k] - target) * (scores[k + 1] - target) < 0:
            way = (target - scores[k]) / (scores[k + 1] - scores[k])
            return accuracies[k] + way * (accuracies[k + 1] - accuracies[k])
# 07b.2: As a share
def accuracy_at(scores, accuracies, target):
    for k in range(len(scores) - 1):
        if scores[k] >= target >= scores[k + 1]:
            return accuracies[k] + (accuracies[k + 1] - accuracies[k]) * (scores[k] - target)
# 07b.2: The wrong way
def accuracy_at(scores, accuracies, target):
    for k in range(len(scores) - 1):
        if scores[k] >= target >= scores[k + 1]:
            way = (scores[k] - target) / (scores[k] - scores[k + 1])
            return accuracies[k] + way * (accuracies[k] - accuracies[k + 1])
# 07b.2: fitted to all weights
def accuracy_at(scores, accuracies, target):
    return np.polyval(np.polyfit(scores, accuracies, 1), target)
# 07b.2: from the first weight to the last
def accuracy_at(scores, accuracies, target):
    way = (target - scores[0]) / (scores[-1] - scores[0])
    return accuracies[0] + way * (accuracies[-1] - accuracies[0])

# 08.1: mean is still there
def without_top(x, k):
    top = np.linalg.svd(x, full_matrices=False)[2][:k]
    return x - x @ top.T @ top
# 08.1: mean is still there
def without_top(x, k):
    top = np.linalg.svd(x - x.mean(0))[2][:k]
    return x - (x - x.mean(0)) @ top.T @ top
# 08.1: rows, not its columns
def without_top(x, k):
    c = x - x.mean(0)
    top = np.linalg.svd(c)[2][:, :k]
    return c - c @ top @ top.T
# 08.1: direction of the mean
def without_top(x, k):
    c, top = x - x.mean(0), np.linalg.svd(x)[2][:k]
    return c - c @ top.T @ top
# 08.1: shortest direction
def without_top(x, k):
    c = x - x.mean(0)
    top = np.linalg.svd(c)[2][len(c.T) - k :]
    return c - c @ top.T @ top
# 08.1: keep the rest
def without_top(x, k):
    c = x - x.mean(0)
    top = np.linalg.svd(c)[2][:k]
    return c @ top.T @ top
# 08.1: go back to the columns of x
def without_top(x, k):
    c = x - x.mean(0)
    z = c @ np.linalg.svd(c)[2].T
    z[:, :k] = 0
    return z
# 08.1: stay in 6 dimensions
def without_top(x, k):
    c = x - x.mean(0)
    return c @ np.linalg.svd(c)[2][k:].T
# 08.1: is no column
def without_top(x, k):
    c = x - x.mean(0)
    c[:, np.argsort(-c.var(0))[:k]] = 0
    return c
# 08.1: by their standard deviations
def without_top(x, k):
    z = (x - x.mean(0)) / x.std(0)
    top = np.linalg.svd(z)[2][:k]
    return z - z @ top.T @ top
# 08.1: Only the mean is gone
def without_top(x, k): return x - x.mean(0)
# 08.1: only the third is gone
def without_top(x, k):
    c = x - x.mean(0)
    top = np.linalg.svd(c)[2][k - 1 : k]
    return c - c @ top.T @ top
# 08.1: removes no direction
def without_top(x, k):
    c = x - x.mean(0)
    top = np.linalg.svd(c)[2][:1]
    return c - c @ top.T @ top
# 08.1: only the first is gone
def without_top(x, k):
    c = x - x.mean(0)
    top = np.linalg.svd(c)[2][: min(k, 1)]
    return c - c @ top.T @ top
# 08.2: more than all of it
def most(d, r=5): return d // r
# 08.2: more than all of it
def most(d, r=5): return d - 1
# 08.2: number of directions is whole
def most(d, r=5): return (d - 1) / r
# 08.2: there can be four
def most(d, r=5): return d // r - 1
# 08.2: there can be four
def most(d, r=5): return d // (r + 1)
# 08.2: Is r in your formula
def most(d, r=5): return (d - 1) // 5
# 08.3: on the longest direction
def labelled_cloud(n):
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 10))
    x[:, 0] += 20 * y
    return x, y
# 08.3: on the second longest direction
def labelled_cloud(n):
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 10)) * [20, 14, 1, 1, 1, 1, 1, 1, 1, 1]
    x[:, 2] += 8 * y
    return x, y
# 08.3: move the classes apart
def labelled_cloud(n):
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 10)) * [20, 2, 1, 1, 1, 1, 1, 1, 1, 1]
    x[:, 1] += y
    return x, y

# 08b.1: change of scale alone
def only_turned(x): return 3 * x
# 08b.1: nothing is turned
def only_turned(x): return 0.3 * x
# 08b.1: turn further
def only_turned(x): return x * [-1, 1, 1, 1, 1, 1]
# 08b.1: changed places
def only_turned(x): return x[::-1]
# 08b.1: it sees this change
def only_turned(x): return x**3
# 08b.1: nothing is left to compare
def only_turned(x): return 0 * x
# 08b.1: after centring it is x again
def only_turned(x): return x + 100
# 08b.1: it sees this change
def only_turned(x): return -x * np.arange(1, 7)
# 08b.2: adds the angles
def distance(ckas): return float(np.arccos(ckas).sum())
# 08b.2: Those are degrees
def distance(ckas): return float(np.linalg.norm(np.degrees(np.arccos(ckas))))
# 08b.2: root is missing
def distance(ckas): return float((np.arccos(ckas) ** 2).sum())
# 08b.2: not a mean
def distance(ckas): return float(np.sqrt((np.arccos(ckas) ** 2).mean()))
# 08b.2: the mean angle
def distance(ckas): return float(np.arccos(ckas).mean())
# 08b.2: each layer has its own angle
def distance(ckas): return float(np.arccos(np.mean(ckas)))
# 08b.2: would be farthest apart
def distance(ckas): return float(np.linalg.norm(np.arcsin(ckas)))
# 08b.2: before you add them
def distance(ckas): return float(np.sqrt(np.arccos(ckas).sum()))
# 08b.2: combine the layers
def distance(ckas): return np.arccos(ckas)
# 08b.2: not 1 − CKA
def distance(ckas): return float(np.sqrt(((1 - np.asarray(ckas)) ** 2).sum()))
# 08b.2: take their angles first
def distance(ckas): return float(np.linalg.norm(ckas))
# 08b.2: every layer counts
def distance(ckas): return float(np.arccos(ckas).max())
# 08b.2: its angle is the
def distance(ckas): return float(np.linalg.norm(np.cos(ckas)))
# 08b.2: sines of the angles
def distance(ckas): return float(np.sqrt((1 - np.asarray(ckas) ** 2).sum()))
# 08b.3: fewer than none
def certain(n, d): return 2 * d - (n - 1)
# 08b.3: Centring takes one dimension
def certain(n, d): return max(0, 2 * d - n)
# 08b.3: find room in 99
def certain(n, d): return d
# 08b.3: Not all 8
def certain(n, d): return d if 2 * d > n - 1 else 0
# 08b.3: cannot avoid each other
def certain(n, d): return 0
# 08b.3: but unrelated clouds have
def certain(n, d): return 0 if 2 * d < n else d // 2 + 1

# 09.1: 2 of 6 are right
costs_nothing = dict.fromkeys(costs_nothing, True)
# 09.1: no map brings them back. Not another seed
for name in [*costs_nothing][-2:]: costs_nothing[name] = True
# 09.1: know only their own axes
costs_nothing["its states of layer 2 rotated, to layer 2, identity"] = True
# 09.2: keeps the origin
def affine_map(x, y):
    return torch.linalg.lstsq(x, y).solution, torch.zeros(y.shape[1], dtype=y.dtype)
# 09.2: take .solution
def affine_map(x, y): return torch.linalg.lstsq(x - x.mean(dim=0), y - y.mean(dim=0)), y.mean(dim=0)
# 09.2: b one vector
def affine_map(x, y):
    x0, y0 = x.mean(dim=0, keepdim=True), y.mean(dim=0, keepdim=True)
    A = torch.linalg.lstsq(x - x0, y - y0).solution
    return A, y0 - x0 @ A
# 09.3: model on TOP
def asymmetry(s_to_g, g_to_s, s, g): return s_to_g - g_to_s, g - s
# 09.3: are the two penalties
def asymmetry(s_to_g, g_to_s, s, g): return s_to_g - g, s - g_to_s
# 09.3: turned round
def asymmetry(s_to_g, g_to_s, s, g): return g_to_s - s_to_g, s - g
# 09.3: Return two numbers
def asymmetry(s_to_g, g_to_s, s, g): return (s_to_g - g) - (g_to_s - s)
# 09.3: the model BELOW
def asymmetry(s_to_g, g_to_s, s, g): return s_to_g - s, g_to_s - g
# 09.3: in the other order
def asymmetry(s_to_g, g_to_s, s, g): return s - g, s_to_g - g_to_s

# 09b.1: It knows no meaning
answers = {name: 2 * (name in ("passive", "synonym", "relative"),) for name in pairs}
# 09b.1: the truth differs
answers = dict.fromkeys(pairs, (True, True))
# 09b.1: give two values
answers = dict.fromkeys(pairs, True)
# 09b.2: for independent
def standard_error(similarity): return np.std([*similarity.values()], ddof=1) / np.sqrt(28)
# 09b.2: n − 1 times as far
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i not in pair]) for i in range(8)]
    return np.std(means, ddof=1) / np.sqrt(8)
# 09b.2: √n times less
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i not in pair]) for i in range(8)]
    return 7 * np.std(means, ddof=1)
# 09b.2: not √28
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i not in pair]) for i in range(8)]
    return 7 * np.std(means, ddof=1) / np.sqrt(28)
# 09b.2: ddof=1
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i not in pair]) for i in range(8)]
    return 7 * np.std(means) / np.sqrt(8)
# 09b.2: pairs without it
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i in pair]) for i in range(8)]
    return 7 * np.std(means, ddof=1) / np.sqrt(8)
# 09b.2: each model's own mean
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i in pair]) for i in range(8)]
    return np.std(means, ddof=1) / np.sqrt(8)
# 09b.2: the spread of the pairs
def standard_error(similarity): return np.std([*similarity.values()], ddof=1)
# 09b.2: not 27
def standard_error(similarity): return np.std([*similarity.values()]) / np.sqrt(28)
# 09b.2: one number
def standard_error(similarity): return np.mean([*similarity.values()]), 0.05
# 09b.2: take its square root
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i not in pair]) for i in range(8)]
    return (7 * np.std(means, ddof=1) / np.sqrt(8)) ** 2
# 09b.2: not by n
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i not in pair]) for i in range(8)]
    return 7 * np.std(means, ddof=1) / 8
# 09b.2: the mean itself
def standard_error(similarity): return np.mean([*similarity.values()])
# 09b.2: has the weight n
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i not in pair]) for i in range(8)]
    return 6 * np.std(means, ddof=1) / np.sqrt(8)
# 09b.2: not of pairs
def standard_error(similarity):
    means = [np.mean([x for pair, x in similarity.items() if i not in pair]) for i in range(8)]
    return 27 * np.std(means, ddof=1) / np.sqrt(8)

# 09b.3: reads both values
stitched_says = dict.fromkeys(stitched_says, (True, True))
# 09b.3: reads the first value alone
stitched_says = dict.fromkeys(stitched_says, (True, False))
# 09b.3: give two values
stitched_says = dict.fromkeys(stitched_says, True)
# 09b.3: wrong about counter-examples
suspect = ("forgets what follows", "heuristic")
# 09b.3: it can know
suspect = ("keeps both", "generalizing")
# 09b.3: one of the four keys
suspect = "generalizing"
# 09b.3: one of the four keys
suspect = ["forgets what follows", "generalizing"]

# 10.1: Euler's rule
def allocate(gradient, before, after): return (after - before) * gradient(before)
# 10.1: at the end alone
def allocate(gradient, before, after): return (after - before) * gradient(after)
# 10.1: half of their sum
def allocate(gradient, before, after):
    return (after - before) * (gradient(before) + gradient(after))
# 10.1: multiplied by the step
def allocate(gradient, before, after): return (gradient(before) + gradient(after)) / 2
# 10.1: gradient at the middle
def allocate(gradient, before, after): return (after - before) * gradient((before + after) / 2)
# 10.1: the sign of the step
def allocate(gradient, before, after):
    return np.abs(after - before) * (gradient(before) + gradient(after)) / 2
# 10.1: not of their difference
def allocate(gradient, before, after):
    return (after - before) * (gradient(after) - gradient(before)) / 2
# 10.1: not squared
def allocate(gradient, before, after):
    return (after - before) ** 2 * (gradient(before) + gradient(after)) / 2
# 10.1: not shares of it
def allocate(gradient, before, after):
    parts = (after - before) * (gradient(before) + gradient(after)) / 2
    return parts / parts.sum()
# 10.1: Simpson's rule
def allocate(gradient, before, after):
    middle = 4 * gradient((before + after) / 2)
    return (after - before) * (gradient(before) + middle + gradient(after)) / 6
# 10.2: no gradient step hurts
def contribution(lr, c, theta): return -lr * (c * theta) ** 2
# 10.2: The sign
def contribution(lr, c, theta): return lr * (c * theta) ** 2 * (1 - lr * c / 2)
# 10.2: a factor ½
def contribution(lr, c, theta): return c * theta**2 * ((1 - lr * c) ** 2 - 1)
# 10.2: slope at the end alone
def contribution(lr, c, theta): return -lr * (c * theta) ** 2 * (1 - lr * c)
# 10.2: depends on c
def hurts_above(c): return 2
# 10.2: lands in the minimum
def hurts_above(c): return 1 / c
# 10.2: the lower the limit
def hurts_above(c): return c / 2
# 10.2: the loss before it
def contribution(lr, c, theta): return 0.5 * c * (theta - lr * c * theta) ** 2
# 10.2: One c is missing
def contribution(lr, c, theta): return -lr * c * theta**2 * (1 - lr * c / 2)
# 10.2: One θ is missing
def contribution(lr, c, theta): return -lr * c**2 * theta * (1 - lr * c / 2)
# 10.2: The step goes down
def contribution(lr, c, theta): return -lr * (c * theta) ** 2 * (1 + lr * c / 2)
# 10.2: one of them has cancelled
def hurts_above(c): return 2 / c**2
# 10.2: Twice too large: the sign
def hurts_above(c): return 4 / c
# 10.3: one per layer
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row.positive / row.updates
# 10.3: not a percentage
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return 100 * row.positive / (row.updates * 6)
# 10.3: not of those that hurt
def share(objective, component):
    rows = counts[counts.objective == objective]
    return rows.positive[rows.component == component].iloc[0] / rows.positive.sum()
# 10.3: Divide by the six layers
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return 6 * row.positive / row.updates
# 10.3: not both stacks
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row.positive / (row.updates * 12)
# 10.3: for translation, too
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row.positive / (row.updates * (12 if objective == "mt" else 6))
# 10.3: One number, not a row
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)]
    return row.positive / (row.updates * 6)
# 10.3: not a count
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row.positive
# 10.3: not per thousand
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return 1000 * row.positive / (row.updates * 6)
# 10.3: those that help
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return 1 - row.positive / (row.updates * 6)
# 10.3: Upside down
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row.updates * 6 / row.positive
# 10.3: you counted all six
def share(objective, component):
    rows = counts[counts.objective == objective]
    return rows.positive.sum() / (125_000 * 6)
# 10.3: so are the components
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row.positive / (row.updates * 6 * 6)
# 10.3: use `positive`
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row["last"] / (row.updates * 6)
# 10.3: not of those that hurt
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row.positive / counts.positive.sum()

# 11.1: p decides first
def judge(p, low, high, direction, margin):
    return "open" if low <= 0 <= high else "supported" if p < 0.05 else "contradicted"
# 11.1: contradicted comes before equivalent
def judge(p, low, high, direction, margin):
    if p < 0.05: return "supported"
    if -margin < low and high < margin: return "equivalent"
    return "open" if low <= 0 <= high else "contradicted"
# 11.1: not the interval
def judge(p, low, high, direction, margin):
    bound = -margin if direction == "no_worse" else 0
    if (high < bound if direction == "less" else low > bound): return "supported"
    if (low > bound if direction == "less" else high < bound): return "contradicted"
    return "equivalent" if -margin < low and high < margin else "open"
# 11.1: Claimed greater
def judge(p, low, high, direction, margin):
    bound = -margin if direction == "no_worse" else 0
    if p < 0.05: return "supported"
    if (high < bound if direction == "no_worse" else low > bound): return "contradicted"
    return "equivalent" if -margin < low and high < margin else "open"
# 11.1: not 0: nothing is contradicted
def judge(p, low, high, direction, margin):
    if p < 0.05: return "supported"
    if (low > 0 if direction == "less" else high < 0): return "contradicted"
    return "equivalent" if -margin < low and high < margin else "open"
# 11.2: degrees of freedom: the mean
def real_coverage(n): return 2 * stats.t.cdf(1.96, n) - 1
# 11.2: That is one side
def real_coverage(n): return stats.t.cdf(1.96, n - 1)
# 11.2: divide it by 1.96
widen = stats.t.ppf(0.975, 2)
# 11.2: here 2
widen = stats.t.ppf(0.975, 3) / 1.96
# 11.2: two sides
widen = stats.t.ppf(0.95, 2) / 1.96
# 11.2: take 1
def real_coverage(n): return 2 * stats.t.cdf(1.96, n - 1)
# 11.2: misses
def real_coverage(n): return 2 * stats.t.sf(1.96, n - 1)
# 11.2: not a percentage
def real_coverage(n): return 100 * (2 * stats.t.cdf(1.96, n - 1) - 1)
# 11.2: in t already
def real_coverage(n): return 2 * stats.t.cdf(1.96 / math.sqrt(n), n - 1) - 1
# 11.2: Upside down
widen = 1.96 / stats.t.ppf(0.975, 2)
# 11.2: in proportion
widen = 0.95 / real_coverage(3)
# 11.3: wrong side
def expected_agreements(k): return 0.05 * k
# 11.3: the inconclusive rows
def expected_agreements(k): return 0.95 * k
# 11.3: not all rows agree
def at_least_one(k): return 1 - 0.025**k
# 11.3: one row; there are k
def expected_agreements(k): return 0.025
# 11.3: not .05
def at_least_one(k): return 1 - 0.95**k
# 11.3: count twice
def at_least_one(k): return 0.025 * k
# 11.3: chance of none
def at_least_one(k): return 0.975**k
# 11.3: all intervals contain 0
def at_least_one(k): return 0.95**k
# 11.3: Exactly one
def at_least_one(k): return k * 0.025 * 0.975 ** (k - 1)

# 12.1: not the mean
def attention_bars(A): return tree_lengths(1 - (A + A.T) / 2)
# 12.1: not the smaller
def attention_bars(A): return tree_lengths(1 - np.minimum(A, A.T))
# 12.1: you read one
def attention_bars(A): return tree_lengths(1 - A)
# 12.1: other one
def attention_bars(A):
    D, new, inside, bars = 1 - A.T, 0, [0], []
    nearest = np.full(len(A), np.inf)
    while len(inside) < len(A):
        nearest = np.minimum(nearest, D[new])
        new = min(set(range(len(A))) - {*inside}, key=nearest.__getitem__)
        inside.append(new)
        bars.append(nearest[new])
    return np.sort(bars)[::-1]
# 12.1: not the sum
def attention_bars(A): return tree_lengths(1 - (A + A.T))
# 12.1: longest tree
def attention_bars(A): return 1 - tree_lengths(np.maximum(A, A.T))[::-1]
# 12.1: not −ln w
def attention_bars(A): return tree_lengths(-np.log(np.maximum(A, A.T) + 1e-12))
# 12.1: distances between rows
def attention_bars(A): return tree_lengths(squareform(pdist(A)))
# 12.1: for no edge
def attention_bars(A):
    lengths = tree_lengths(attention_distances(A))
    return lengths[lengths > 0]
# 12.1: not its root
def attention_bars(A): return tree_lengths(np.sqrt(1 - np.maximum(A, A.T)))
# 12.1: not 1/w
def attention_bars(A): return tree_lengths(1 / (np.maximum(A, A.T) + 1e-9))
# 12.1: not a product
def attention_bars(A): return tree_lengths(1 - A * A.T)
# 12.1: not a product
def attention_bars(A): return tree_lengths(1 - np.sqrt(A * A.T))
# 12.2: That is the slope
def dimension(n1, L1, n2, L2): return math.log(L2 / L1) / math.log(n2 / n1)
# 12.2: inverse of D
def dimension(n1, L1, n2, L2): return 1 - math.log(L2 / L1) / math.log(n2 / n1)
# 12.2: of logarithms
def dimension(n1, L1, n2, L2): return 1 / (1 - L2 * n1 / (L1 * n2))
# 12.2: of logarithms
def dimension(n1, L1, n2, L2): return 1 / (1 - (L2 - L1) / (n2 - n1))
# 12.2: of logarithms
def dimension(n1, L1, n2, L2): return 1 / (1 - math.log(L2) / math.log(n2))
# 12.2: of logarithms
def dimension(n1, L1, n2, L2): return 1 / (1 - math.log(L2 / L1) / (n2 - n1))
# 12.2: as fast as the sample
def dimension(n1, L1, n2, L2):
    slope = math.log(L2 / L1) / math.log(n2 / n1)
    return math.inf if slope > 1 else 1 / (1 - slope)
# 12.2: upside down
def dimension(n1, L1, n2, L2):
    slope = math.log(n2 / n1) / math.log(L2 / L1)
    return math.inf if slope >= 1 else 1 / (1 - slope)
# 12.2: not ln n by ln L
def dimension(n1, L1, n2, L2): return 1 / (1 - math.log(n2 / n1) / math.log(L2 / L1))
# 12.3: two arrays
def match(a, b): return ((np.sort(a) + np.sort(b)) / 2)[np.argsort(np.argsort(a))]
# 12.3: pair by pair
def match(a, b): return (a + b) / 2, (a + b) / 2
# 12.3: argsort says
def match(a, b): return tuple(((np.sort(a) + np.sort(b)) / 2)[np.argsort(d)] for d in (a, b))
# 12.3: place of its pair
def match(a, b): return ((np.sort(a) + np.sort(b)) / 2,) * 2
# 12.3: Exchanged
def match(a, b):
    mean = (np.sort(a) + np.sort(b)) / 2
    return tuple(mean[np.argsort(np.argsort(d))] for d in (b, a))
# 12.3: Those are ranks
def match(a, b): return np.argsort(np.argsort(a)), np.argsort(np.argsort(b))
# 12.3: kept its own values
def match(a, b): return a, np.sort(a)[np.argsort(np.argsort(b))]
# 12.3: kept its own values
def match(a, b): return ((np.sort(a) + np.sort(b)) / 2)[np.argsort(np.argsort(a))], b
# 12.3: divide by 2
def match(a, b): return tuple((np.sort(a) + np.sort(b))[np.argsort(np.argsort(d))] for d in (a, b))
# 12.4: not added
def by_chance(n, m, s): return s * m / (n * (n - 1) / 2)
# 12.4: not in any
def by_chance(n, m, s): return 1 - (1 - m / (n * (n - 1) / 2)) ** s
# 12.4: none of the layers
def by_chance(n, m, s): return (1 - m / (n * (n - 1) / 2)) ** s
# 12.4: for certain
def by_chance(n, m, s): return (m / (n * (n - 1) / 2)) ** (s + 1)
# 12.4: pairs
def by_chance(n, m, s): return (m / n**2) ** s
# 12.4: m edges, not one
def by_chance(n, m, s): return (2 / (n * (n - 1))) ** s
# 12.4: not the share that is lost
def by_chance(n, m, s): return 1 - (2 * m / (n * (n - 1))) ** s
# 12.4: not a division by s
def by_chance(n, m, s): return 2 * m / (n * (n - 1)) / s

# 13.1: linear in the angle
def equal_signs(c): return (1 + c) / 2
# 13.1: by chance, in half
def equal_signs(c): return 1 - math.acos(c) / (2 * math.pi)
# 13.1: signs that differ
def equal_signs(c): return math.acos(c) / math.pi
# 13.1: negative cosines
def equal_signs(c): return 1 - math.acos(abs(c)) / math.pi
# 13.2: divide by k
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) for a, b in zip(full, bits)])
# 13.2: the farthest
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, -k:] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.2: size of the union
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / len({*a} | {*b}) for a, b in zip(full, bits)])
# 13.2: not by distance
def overlap(queries, train, k):
    far = np.linalg.norm(queries[:, None] - train, axis=2)
    sides = (-far, np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.2: not by product
def overlap(queries, train, k):
    sides = (queries @ train.T, np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.2: argsort begins with the least
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.2: order among the k
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return (full == bits).mean()
# 13.2: take ±1
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, (queries > 0) @ (1.0 * (train > 0)).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.2: nothing is centred
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    signs = [np.sign(x - train.mean(axis=0)) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, signs[0] @ signs[1].T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.2: k is an argument
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :10] for p in sides)
    return np.mean([len({*a} & {*b}) / 10 for a, b in zip(full, bits)])
# 13.2: Signs on both sides
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, np.sign(queries) @ train.T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.2: fewest signs
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    sides = (unit[0] @ unit[1].T, -np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.2: the earlier comes first
def overlap(queries, train, k):
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (queries, train)]
    last = np.arange(len(train)) * 1e-6  # of ties, the later row
    sides = (unit[0] @ unit[1].T, np.sign(queries) @ np.sign(train).T + last)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.3: the root of an eigenvalue
def whiten(train):
    mean = train.mean(axis=0)
    values, axes = np.linalg.eigh(np.cov(train.T))
    return lambda rows: (rows - mean) @ axes / values
# 13.3: rounding alone
def whiten(train):
    mean = train.mean(axis=0)
    _, lengths, directions = np.linalg.svd(train - mean, full_matrices=False)
    return lambda rows: (rows - mean) @ directions.T * (math.sqrt(len(train) - 1) / lengths)
# 13.3: off the plane
def whiten(train):
    mean = train.mean(axis=0)
    values, axes = np.linalg.eigh(np.cov(train.T))
    return lambda rows: (rows - mean) @ axes / np.sqrt(np.abs(values) + 1e-9)
# 13.3: still correlated
def whiten(train): return lambda rows: (rows - train.mean(axis=0)) / train.std(axis=0, ddof=1)
# 13.3: still correlated
def whiten(train): return lambda rows: (rows - train.mean(axis=0)) / train.std(axis=0)
# 13.3: by themselves
def whiten(train):
    _, lengths, directions = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)
    scale = math.sqrt(len(train) - 1) / lengths
    return lambda rows: (rows - rows.mean(axis=0)) @ directions.T * scale
# 13.3: keep a mean
def whiten(train):
    _, lengths, directions = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)
    return lambda rows: rows @ directions.T * (math.sqrt(len(train) - 1) / lengths)
# 13.3: Turned, but not scaled
def whiten(train):
    mean = train.mean(axis=0)
    _, _, directions = np.linalg.svd(train - mean, full_matrices=False)
    return lambda rows: (rows - mean) @ directions.T
# 13.3: yours multiplies
def whiten(train):
    mean = train.mean(axis=0)
    values, axes = np.linalg.eigh(np.cov(train.T))
    return lambda rows: (rows - mean) @ axes * np.sqrt(values)
# 13.3: times as long as a standard deviation
def whiten(train):
    mean = train.mean(axis=0)
    _, lengths, directions = np.linalg.svd(train - mean, full_matrices=False)
    return lambda rows: (rows - mean) @ directions.T / lengths
# 13.3: queries come later
def whiten(train):
    _, lengths, directions = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)
    return (train - train.mean(axis=0)) @ directions.T * math.sqrt(len(train) - 1) / lengths
"""
_FOUND = re.findall(
    r"^# (\d\d[a-z]?)\.(\d): (.*)\n((?:(?!# \d\d[a-z]?\.).*\n)+)", ANSWERS, flags=re.MULTILINE
)
TRAPS: dict[tuple[str, int], list[tuple[str, str]]] = {}
for _chapter, _number, _message, _answer in _FOUND:
    TRAPS.setdefault((_chapter, int(_number)), []).append((_message, _answer))

# Right answers unlike the solution's that checks once refused: a curve of evenly spaced points,
# a row of chapter 03's first table, a list of lists, and a tensor of single precision.
UNUSUAL = [
    (
        "01.7",
        "def thread(n, d):\n"
        "    angle = 2 * np.pi * np.arange(n)[:, None] / n * np.arange(1, d // 2 + 1)\n"
        "    return np.hstack([np.cos(angle), np.sin(angle)])",
    ),
    ("03.1", "def same_to_cca(x): return x * np.geomspace(0.05, 20, 8)"),
    ("03.1", "def same_to_cca(x): return x * np.geomspace(1, 1000, 8)"),
    (
        "08.1",  # centres its argument
        "def without_top(x, k):\n"
        "    x -= x.mean(axis=0)\n"
        "    for u in np.linalg.svd(x)[2][:k]:\n"
        "        x -= np.outer(x @ u, u)\n"
        "    return x",
    ),
    ("08b.1", "def only_turned(x): return 5 * x[:, [1, 2, 3, 4, 5, 0]] * [-1, 1, 1, 1, 1, 1] + 3"),
    (
        "04.6",
        "def uneven():\n"
        "    centres = torch.randn(4, 4).repeat(16, 1)\n"
        "    return (20 * centres + 0.1 * torch.randn(64, 4)).tolist()",
    ),
    ("04.8", "def cloud(lengths): return torch.tensor([[0.0], *[[x] for x in lengths]]).cumsum(0)"),
]
