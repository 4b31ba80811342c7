"""Wrong answers that one might well give, and random ones: `test_course` has them rejected."""

import re

# chapter.exercise, then an answer that rests on a misunderstanding
ANSWERS = """
# 00.1
def share_of_topic(loved, hated):
    own = np.linalg.norm(loved - hated, axis=1)
    return (own[:, None] < np.linalg.norm(loved[:, None] - loved, axis=2)).mean()
# 00.1
def share_of_topic(loved, hated):
    other = np.linalg.norm(loved[:, None] - loved, axis=2) + 1e9 * np.eye(len(loved))
    return (np.linalg.norm(loved - hated, axis=1) < other.min(axis=1)).mean()
# 00.2
def majority_rate(ratings): return np.mean([r > 0 for r in ratings if abs(r) >= 0.5])
# 00.2
def majority_rate(ratings): return np.mean([r > 0 for r in ratings if r >= 0.5])
# 00.2
def majority_rate(ratings): return np.mean([r > 0 for r in ratings if r > 0 or r <= -0.5])
# 00.2
def majority_rate(ratings): return np.mean([r < 0 for r in ratings if r < 0 or r >= 0.5])
# 01.1
def avg_sim_of(n, R): return (n * R - 1) / (n - 1)
# 01.2
def by_dimension(x): return rogue_dimensions(x - x.mean(0)).numpy()
# 01.3
def rows_needed(d, factor): return d / (math.sqrt(factor) + 1) ** 2
# 01.4
def log_I_of_parallel(r): return -r
# 01.5
def pc1_share(s, d): return 1 / (s + d - 1)
# 01.6
def two_nn(r1, r2): return (1 / np.log(r2 / r1)).mean()
# 01.7
def thread(n, d):
    angle = dice.uniform(0, 2 * np.pi, size=(n, 1))
    return np.hstack([np.cos(angle), np.sin(angle), 1e-3 * dice.normal(size=(n, d - 2))])
# 01.7
def thread(n, d):
    pairs = np.repeat(dice.normal(size=(n // 2, d)), 2, axis=0)
    return pairs + 1e-6 * dice.normal(size=(n, d))
# 01.7
def thread(n, d):
    centres, ways = dice.normal(size=(2, n // 4, 1, d))
    return (centres + 1e-3 * dice.uniform(size=(n // 4, 4, 1)) * ways).reshape(n, d)
# 01.8
moves = dict.fromkeys(moves, set())
# 02.1
def alike(): return [[4, 1], [4, -1]] * 3
# 02.2
def left_of_noise(A): return 1 - A
# 02.3
def floor(m): return 1 / (m - 1)
# 02.4
changes['all vectors are turned by 40 degrees'] = {'MEV'}
# 03.1
def same_to_cca(x): return 3 * x @ np.linalg.qr(x.T @ x)[0]
# 03.1
def same_to_cca(x): return x * np.geomspace(1, 10, 8)
# 03.2
def same_to_rsa(x): return x * (np.arange(len(x)) % 2)[:, None]
# 03.3
def cka_of_grams(K, L):
    return float((K * L).sum() / np.linalg.norm(K) / np.linalg.norm(L))
# 03.4
def cka_of_nothing(n, d): return n / (n + d + 1)
# 04.1
def appears(corners): return np.linalg.norm(np.diff(corners, axis=0), axis=1).max()
# 04.2
def h0(points):
    gaps = np.linalg.norm(points[:, None] - points, axis=2)[np.triu_indices(len(points), 1)]
    return np.sort(np.sort(gaps)[: len(points) - 1])[::-1]
# 04.3
def entropy_of(s, m): return -sum(p * math.log(p) for p in (s / (s + m - 1), (m - 1) / (s + m - 1)))
# 04.4
def neutral_length(lengths): return torch.exp(-persistent_entropy(lengths)).item()
# 04.5
def loop_of(a, b): return b, math.hypot(a, b) / 2
# 04.6
def uneven(): return rng.normal(size=(64, 4)) * [50, 5, 1, 1]
# 04.7
E_goes["one point is doubled (an equal point is added)"] = "down"
# 04.8
def cloud_with(lengths): return np.array([0.0, *lengths])[:, None]
# 04b.1
def distance(p, q): return max(abs(p[0] - q[0]), abs(p[1] - q[1]))
# 04b.2
def landscape(diagram, k, t):
    tents = np.minimum(t[:, None] - diagram[:, 0], diagram[:, 1] - t[:, None]).clip(min=0)
    return np.sort(tents, axis=1)[:, -k - 1]
# 04b.3
can_change["the entropy of all bars of H0"] = "2δ"
# 04b.4
swap = {'one ring': 'two rings', 'two rings': 'one ring'}
is_a = {name: swap.get(kind, kind) for name, kind in is_a.items()}
# 05.1
def even(n): return rng.normal(size=(n, 1))
# 05.2
def slope(a, b): return math.log(b / a) / (a + b) ** 2
# 05.3
factors = {'loss': 1.0, 'gradient': 10.0}
# 05.3
factors = {'loss': 0.0, 'gradient': 0.1}
# 05.4
at_weight[1.0] = 'task pays'
# 05.5
def clumps(): return np.random.default_rng(0).normal(size=(64, 8))
# 05.6
def twelve(k): return [10.0] * k + [1.0] * (12 - k)
# 05.7
changes = {name: {'with labels': True, 'without': True} for name in changes}
# 06.1
def batch_losses(model, batch, regularizer):
    outputs = model(**batch, output_hidden_states=True)
    states, y = outputs.hidden_states[-1], batch["labels"]
    return outputs.loss, regularizer(states[:, 0]).loss if regularizer else 0.0, states
# 06.1
def batch_losses(model, batch, regularizer):
    outputs = model(**batch, output_hidden_states=True)
    states, y = outputs.hidden_states[-1], batch["labels"]
    return outputs.loss, -regularizer(states[:, 0], y).loss if regularizer else 0.0, states
# 06.1
def batch_losses(model, batch, regularizer):
    outputs = model(**batch, output_hidden_states=True)
    states, y = outputs.hidden_states[-1], batch["labels"]
    return outputs.loss, regularizer(states[:, 0].detach(), y).loss if regularizer else 0.0, states
# 06.1
def batch_losses(model, batch, regularizer):
    outputs = model(**batch, output_hidden_states=True)
    states, y = outputs.hidden_states[-1], batch["labels"]
    return outputs.loss, regularizer(states.mean(1), y).loss if regularizer else 0.0, states
# 06.1
def batch_losses(model, batch, regularizer):
    outputs = model(**batch, output_hidden_states=True)
    states, y = outputs.hidden_states[-1], batch["labels"]
    return outputs.loss, regularizer(states[:, 0], y).loss, states
# 06.2
def least(rows, weight=1.0):
    classes = [math.log(n - 1) for n in rows if n > 1]
    return -weight * sum(classes) / len(rows)
# 06.3
goes["errors"] = "up"
# 07.1
def gain(arm, none): return (np.std(arm) + np.std(none)) / np.std(arm - none)
# 07.2
def seeds_needed(s, margin): return math.ceil((stats.t.ppf(0.975, 2) * s / margin) ** 2)
# 07b.1
def frontier(arms): return {max(arms, key=lambda n: arms[n][1] - arms[n][0])}
# 07b.2
def accuracy_at(scores, accuracies, target): return np.interp(target, scores, accuracies)
# 08.1
def without_top(x, k):
    top = np.linalg.svd(x, full_matrices=False)[2][:k]
    return x - x @ top.T @ top
# 08.2
def most(d, r=5): return (d - 1) / r
# 08.3
def labelled_cloud(n):
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 10))
    x[:, 0] += 20 * y
    return x, y
# 08b.1
def only_turned(x): return 3 * x
# 08b.1
def only_turned(x): return x * [-1, -1, -1, -1, -1, 1]
# 08b.2
def distance(ckas): return float(np.sqrt((np.arccos(ckas) ** 2).mean()))
# 08b.3
def certain(n, d): return d
# 09.1
costs_nothing["its states of layer 2 rotated, to layer 2, identity"] = True
# 09.2
def affine_map(x, y):
    return torch.linalg.lstsq(x, y).solution, torch.zeros(y.shape[1], dtype=y.dtype)
# 09.3
def asymmetry(s_to_g, g_to_s, s, g): return g_to_s - s_to_g, s - g
# 09b.1
answers = dict.fromkeys(pairs, (True, True))
# 09b.1
answers = {name: 2 * (name in ("passive", "synonym", "relative"),) for name in pairs}
# 09b.2
def standard_error(similarity): return np.std([*similarity.values()], ddof=1) / np.sqrt(8)
# 09b.3
suspect = ("forgets what follows", "heuristic")
# 10.1
def allocate(gradient, before, after): return (after - before) * gradient((before + after) / 2)
# 10.2
def hurts_above(c): return 1 / c
# 10.3
def hurting_share(objective, component, layers):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row.positive / row.updates
# 11.1
def judge(p, low, high, direction, margin):
    return "open" if low <= 0 <= high else "supported" if p < 0.05 else "contradicted"
# 11.1
def judge(p, low, high, direction, margin):
    bound = -margin if direction == "no_worse" else 0
    if p < 0.05: return "supported"
    if low > 0 if direction == "less" else high < bound: return "contradicted"
    return "equivalent" if low > -margin else "open"
# 11.2
def real_coverage(n): return stats.t.cdf(1.96, n - 1)
# 11.2
widen = 1.96 / stats.t.ppf(0.975, 2)
# 11.3
def at_least_one(k): return 0.025 * k
# 12.1
def attention_bars(A): return tree_lengths(1 - A)
# 12.2
def dimension(n1, L1, n2, L2): return math.log(L2 / L1) / math.log(n2 / n1)
# 12.3
def match(a, b): return np.argsort(np.argsort(a)) + 1, np.argsort(np.argsort(b)) + 1
# 12.4
def by_chance(n, m, s): return (1 - m / (n * (n - 1) / 2)) ** s
# 13.1
def equal_signs(c): return 1 - math.acos(c) / (2 * math.pi)
# 13.2
def overlap(queries, train, k):
    far = np.linalg.norm(queries[:, None] - train, axis=2)
    sides = (-far, np.sign(queries) @ np.sign(train).T)
    full, bits = (np.argsort(-p, axis=1, kind="stable")[:, :k] for p in sides)
    return np.mean([len({*a} & {*b}) / k for a, b in zip(full, bits)])
# 13.3
def whiten(train):
    _, lengths, directions = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)
    scale = math.sqrt(len(train) - 1) / lengths
    return lambda rows: (rows - rows.mean(axis=0)) @ directions.T * scale
# 14.1
def smallest(low, high, n, k): return (high - low) / 2
# 14.1
def smallest(low, high, n, k): return high
# 14.1
def smallest(low, high, n, k): return -low
# 14.1
def smallest(low, high, n, k): return 0.01
# 14.1
def smallest(low, high, n, k):
    both = stats.t.ppf([0.975, 0.8], df=n - 1)
    return both.sum() * (high - low) / 2 / both[0]
# 14.1
def smallest(low, high, n, k):
    both = stats.t.ppf([1 - 0.05 / 6, 0.8], df=n - 1)
    return both.sum() * (high - low) / 2 / both[0]
# 14.1
def smallest(low, high, n, k):
    both = stats.t.ppf([1 - 0.05 / k, 0.8], df=n - 1)
    return both.sum() * (high - low) / 2 / both[0]
# 14.2
def judge(low, high, margin, sign):
    if low > 0 or high < 0: return "better" if sign * low > 0 else "worse"
    return "no difference"
# 14.2
def judge(low, high, margin, sign):
    if low > 0 or high < 0: return "better" if sign * low > 0 else "worse"
    return "no difference" if low > -margin else "not decided"
"""
_FOUND = re.findall(r"^# (\d\d[a-z]?)\.(\d)\n((?:(?!# \d\d[a-z]?\.).*\n)+)", ANSWERS, re.MULTILINE)
TRAPS: dict[tuple[str, int], list[str]] = {}
for _chapter, _number, _answer in _FOUND:
    TRAPS.setdefault((_chapter, int(_number)), []).append(_answer)

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
        "04.6",
        "def uneven():\n"
        "    centres = torch.randn(4, 4).repeat(16, 1)\n"
        "    return (20 * centres + 0.1 * torch.randn(64, 4)).tolist()",
    ),
    (
        "04.8",
        "def cloud_with(lengths): return torch.tensor([[0.0], *[[x] for x in lengths]]).cumsum(0)",
    ),
    (
        "05.5",
        "def clumps():\n"
        "    corners = 10 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]]).repeat(16, axis=0)\n"
        "    return corners + 0.1 * rng.normal(size=(64, 2))",
    ),
    (
        "08.1",  # centres its argument
        "def without_top(x, k):\n"
        "    x -= x.mean(axis=0)\n"
        "    for u in np.linalg.svd(x)[2][:k]:\n"
        "        x -= np.outer(x @ u, u)\n"
        "    return x",
    ),
    ("08b.1", "def only_turned(x): return x[:, [1, 2, 3, 4, 5, 0]] * [-1, 1, 1, 1, 1, 1] + 3"),
]

# What chance gives, for every exercise that asks for a construction: no structure, no thought.
# `draw` is a NumPy generator.
NULLS = [
    ("01.7", "def thread(n, d): return draw.normal(size=(n, d))"),
    ("02.1", "def alike(): return [4, 0] + draw.normal(size=(6, 2))"),
    ("03.1", "def same_to_cca(x): return draw.normal(size=x.shape)"),
    ("03.1", "def same_to_cca(x): return x @ np.linalg.qr(draw.normal(size=(8, 8)))[0]"),
    ("03.2", "def same_to_rsa(x): return draw.normal(size=x.shape)"),
    ("04.6", "def uneven(): return draw.normal(size=(64, 4)) @ draw.normal(size=(4, 4))"),
    ("04.8", "def cloud_with(lengths): return draw.normal(size=(len(lengths) + 1, 2))"),
    ("05.1", "def even(n): return draw.uniform(size=(n, 1))"),
    ("05.5", "def clumps(): return draw.normal(size=(64, 2))"),
    ("05.5", "def clumps(): return draw.normal(size=(64, 8))"),
    ("05.5", "def clumps(): return draw.normal(size=(64, 16))"),
    ("05.5", "def clumps(): return draw.normal(size=(32, 16)) @ draw.normal(size=(16, 16))"),
    ("05.6", "def twelve(k): return sorted(draw.lognormal(size=12), reverse=True)"),
    ("08.3", "def labelled_cloud(n): return draw.normal(size=(n, 10)), draw.permutation(n) % 2"),
    ("08b.1", "def only_turned(x): return draw.normal(size=x.shape)"),
    ("08b.1", "def only_turned(x): return x @ draw.normal(size=(6, 6))"),
]
