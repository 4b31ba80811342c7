"""Wrong answers that one might well give: each is rejected, with a message that names its trap."""

from __future__ import annotations

from pathlib import Path

import pytest

from shrink_utils.study.publishing.course import read_section

ROOT = Path(__file__).resolve().parents[2]

# chapter, exercise, an answer, words of what the check says
TRAPS = [
    (
        "00",
        1,
        """
def digest(path):
    text = path.read_text(encoding="latin-1")
    return hashlib.sha256(text.encode("latin-1")).hexdigest()
""",
        "binary",
    ),
    (
        "00",
        2,
        """
def majority_rate(ratings):
    kept = [r for r in ratings if abs(r) > 0.5]
    return max(np.mean(np.array(kept) > 0), np.mean(np.array(kept) < 0))
""",
        "at least half a point|Three of the four",
    ),
    ("00", 3, "def groups(documents, texts): return list(texts)", "one document"),
    ("00", 4, "obligation = 'c'", "copyleft"),
    (
        "01",
        1,
        """
def only_avg_sim(n, d): return rng.normal(size=(n, d))
def only_iso_score(n, d): return 10 + rng.normal(size=(n, d))
""",
        "Stretch it",
    ),
    ("01", 2, "def avg_sim_of(n, R): return R**2", "with itself"),
    (
        "01",
        3,
        """
def first_score(s, d): return s / (s + d - 1)
def spiked_iso_score(s, d): return 1 - s / (s + d - 1)
""",
        "IsoScore at",
    ),
    (
        "01",
        4,
        """
moves = dict.fromkeys(moves, set())
""",
        "of 12 are right",
    ),
    (
        "02",
        1,
        """
def null(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return float((unit @ unit.T).mean())
""",
        "no pair",
    ),
    ("02", 2, "def left_of_noise(A): return 0.0\nworst_A = 0.5", "long sentences have"),
    (
        "02",
        3,
        """
def mev(rows):
    energies = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False) ** 2
    return float(energies[0] / energies.sum())
def floor(m): return 1 / m
""",
        "Do not centre",
    ),
    ("03", 1, "def same_to_cca(x): return 3 * x @ np.linalg.qr(x.T @ x)[0]", "Rotations"),
    ("03", 2, "def same_to_rsa(x): return 5 * x", "One factor for all rows"),
    (
        "03",
        3,
        """
def cka_of_grams(K, L):
    return float((K * L).sum() / np.linalg.norm(K) / np.linalg.norm(L))
""",
        "centre both",
    ),
    ("03", 4, "def cka_of_nothing(n, d): return d / n", "limit for n"),
    (
        "04",
        1,
        """
def h0(points):
    gaps = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(gaps, np.inf)
    return np.sort(gaps.min(axis=1))[1:][::-1]
""",
        "Nearest neighbours",
    ),
    (
        "04",
        2,
        """
def entropy(s, m):
    p = np.array([s] + [1.0] * (m - 1)) / (s + m - 1)
    return float(-(p * np.log2(p)).sum())
""",
        "in bits",
    ),
    ("04", 3, "def turning_length(lengths): return float(lengths.mean())", "Not the mean"),
    ("04", 4, "E_goes = dict.fromkeys(E_goes, 'down')", "2 of 4 are right"),
    ("05", 1, "dropped = 6.6", "still a feature"),
    (
        "05",
        2,
        """
def cloud():
    one = [[0.0, 0], [0.1, 0], [0, 0.1], [0.1, 0.12]]
    return np.array(one + [[x + 9, 2 * y] for x, y in one])
""",
        "silent",
    ),
    ("05", 3, "def slope(a, b): return b * math.log(a / b) / (a + b) ** 2", "sign"),
    ("05", 4, "factors = {'loss': 1.0, 'gradient': 1.0}", "a tenth of the cloud"),
    (
        "06",
        1,
        """
def learning_rate(step, *, steps, peak=8e-5, warmup=0.1):
    return peak * min(1.0, (step + 1) / math.ceil(warmup * steps))
""",
        "nothing is finished",
    ),
    (
        "06",
        2,
        """
def least(rows, weight=1.0):
    return -weight * sum(math.log(n) for n in rows)
""",
        "n − 1 bars",
    ),
    ("06", 3, "def n_bars(batch, parts, classes=2): return batch - classes", "Each part loses"),
    (
        "07",
        1,
        """
def interval(arm, none):
    d = arm - none
    half = 1.96 * d.std(ddof=1) / math.sqrt(len(d))
    return d.mean() - half, d.mean() + half
""",
        "4.30",
    ),
    (
        "07",
        2,
        """
def seeds_needed(s, margin): return math.ceil((1.96 * s / margin) ** 2)
""",
        "normal quantile",
    ),
    (
        "07",
        3,
        """
def frontier(arms):
    def beats(b, a): return b[0] >= a[0] and b[1] >= a[1] and a != b
    return {n for n, a in arms.items() if not any(beats(b, a) for b in arms.values())}
""",
        "left is better",
    ),
    (
        "08",
        1,
        """
def without_top(x, k):
    top = np.linalg.svd(x, full_matrices=False)[2][:k]
    return x - x @ top.T @ top
""",
        "mean is still there",
    ),
    ("08", 2, "def most(d, r=5): return d // r", "more than all of it"),
    (
        "08",
        3,
        """
def labelled_cloud(n):
    y = np.arange(n) % 2
    x = rng.normal(size=(n, 10))
    x[:, 0] += 20 * y
    return x, y
""",
        "on the longest direction",
    ),
    ("09", 1, "costs_nothing = dict.fromkeys(costs_nothing, True)", "2 of 6 are right"),
    (
        "09",
        2,
        """
def affine_map(x, y):
    return torch.linalg.lstsq(x, y).solution, torch.zeros(y.shape[1], dtype=y.dtype)
""",
        "keeps the origin",
    ),
    (
        "09",
        3,
        """
def asymmetry(s_to_g, g_to_s, s, g): return s_to_g - g_to_s, g - s
""",
        "model on TOP",
    ),
    (
        "10",
        1,
        """
def allocate(gradient, before, after): return (after - before) * gradient(before)
""",
        "Euler's rule",
    ),
    (
        "10",
        2,
        """
def contribution(lr, c, theta): return -lr * (c * theta) ** 2
""",
        "no gradient step hurts",
    ),
    (
        "10",
        3,
        """
def share(objective, component):
    row = counts[(counts.objective == objective) & (counts.component == component)].iloc[0]
    return row.positive / row.updates
""",
        "one a layer",
    ),
    (
        "11",
        1,
        """
def judge(low, high, direction, margin=0.0):
    if low <= 0 <= high:
        return "replicated" if direction == "no_worse" else "inconclusive"
    return "replicated" if (high < 0) == (direction == "less") else "not replicated"
""",
        "Holding 0 is not enough",
    ),
    ("11", 2, "def real_coverage(n): return 2 * stats.t.cdf(1.96, n) - 1", "degrees of freedom"),
    ("11", 3, "def expected_replications(k): return 0.05 * k", "wrong side"),
]


def _chapter(number):
    (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return read_section(path)


def test_every_exercise_has_a_trap():
    chapters = sorted({trap[0] for trap in TRAPS})
    exercises = {(c, k + 1) for c in chapters for k in range(len(_chapter(c).exercises))}
    assert len(chapters) == 12 and {trap[:2] for trap in TRAPS} == exercises


@pytest.mark.parametrize(
    ("chapter", "number", "answer", "message"), TRAPS, ids=[f"{t[0]}-{t[1]}" for t in TRAPS]
)
def test_a_plausible_wrong_answer_is_told_what_is_wrong(chapter, number, answer, message):
    section = _chapter(chapter)
    exercise, names = section.exercises[number - 1], {}
    exec(section.setup.source, names)
    exec(exercise.solution.source, names)  # where the trap is in one part, the others are right
    exec(answer, names)
    with pytest.raises(AssertionError, match=message):
        exec(exercise.check.source, names)
