import math
from collections import Counter
from decimal import Decimal, localcontext

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from shrink_utils.topology import prominent_features
from shrink_utils.topology.entropy import _random_positions

RULES = ["ratio", "published"]
rules = st.sampled_from(RULES)
smooth = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=14)
tied = st.lists(st.integers(1, 6).map(float), min_size=1, max_size=14)
nearly_equal = st.lists(st.floats(0, 1).map(lambda u: 1 + 1e-5 * u), min_size=2, max_size=14)
bar_lists = smooth | tied | nearly_equal


# The definitions, word for word, in fifty decimal digits. Each rule returns the lengths it keeps
# and its closest call, so that a test can pass over ties that rounding decides.


def entropy(bars):
    total = sum(bars)
    return -sum(v / total * (v / total).ln() for v in bars)


def first_below_one(bars):
    """The first i with C(i) < 1 in ℓ_1 ≥ … ≥ ℓ_{m−1}, longest; and the closest call."""
    m = len(bars)
    s = [sum(bars)]
    for i in range(1, m):
        rest = bars[i:]
        neutral = sum(rest) / entropy(rest).exp()
        s.append(sum(rest) + i * neutral)
    c = [None] + [s[i - 1] / s[i] for i in range(1, m)]
    return next(i for i in range(1, m) if c[i] < 1), min(abs(c[i] - 1) for i in range(1, m))


def bound(bars):
    m, alpha = len(bars), bars[-2] / bars[-1]
    return math.ceil(alpha * m * (alpha - 1 - alpha.ln()) / (alpha - 1) ** 2)


def by_ratio(bars):
    margin = Decimal(1)
    while True:
        i, close = first_below_one(bars)
        margin = min(margin, close)
        features = [*bars[: i - 1], bars[-1]]
        again = [*bars[: i - 1], bars[-2], bars[-1]]
        if i <= bound(bars) or len(again) >= len(bars):
            return features, margin
        bars = again


def by_published(bars):
    margin = Decimal(1)
    while len(bars) >= 4:
        i, close = first_below_one(bars)
        margin = min(margin, close)
        i = min(i, len(bars) - 3)
        if i <= bound(bars):
            return [*bars[:i], bars[-1]], margin
        bars = [*bars[:i], bars[-2], bars[-1]]
    return bars, margin


BY_DEFINITION = {"ratio": by_ratio, "published": by_published}


def by_definition(lengths, rule):
    descending = sorted((v for v in lengths if v > 0), reverse=True)
    if len(set(descending)) <= 1:
        return descending, 1.0
    with localcontext() as context:
        context.prec = 50
        bars = [Decimal(v) for v in [*descending[1:], descending[0]]]
        features, margin = BY_DEFINITION[rule](bars)
    return sorted(map(float, features), reverse=True), float(margin)


def kept(lengths, rule="ratio"):
    lengths = torch.as_tensor(lengths, dtype=torch.float64)
    return lengths[prominent_features(lengths, rule=rule)].tolist()


@given(bar_lists, rules)
def test_is_the_selection_by_definition(lengths, rule):
    expected, margin = by_definition(lengths, rule)
    assume(margin > 1e-11)
    assert kept(lengths, rule) == expected


@pytest.mark.parametrize("spread", [0.9e-3, 1.1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("rule", RULES)
def test_is_the_selection_by_definition_as_alpha_goes_to_one(rule, spread):
    generator = torch.Generator().manual_seed(0)
    noise = torch.rand(31, generator=generator, dtype=torch.float64)
    lengths = 1 - spread * (noise - noise.min()) / (noise.max() - noise.min())
    assert kept(lengths, rule) == by_definition(lengths.tolist(), rule)[0]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([], []),
        ([0.0, 0.0], []),
        ([2.0], [0]),
        ([0.0, 2.0, 0.0], [1]),
        ([1.0, 1.0], [0, 1]),
        ([0.1] * 7, [0, 1, 2, 3, 4, 5, 6]),
        ([5e-324] * 3, [0, 1, 2]),
    ],
)
def test_none_one_or_equal_bars_are_all_kept(rule, lengths, expected):
    lengths = torch.tensor(lengths, dtype=torch.float64)
    assert prominent_features(lengths, rule=rule).tolist() == expected


@pytest.mark.parametrize(("rule", "expected"), [("ratio", [1]), ("published", [1, 2, 0])])
def test_three_bars(rule, expected):
    """The code of the paper crashes on three bars; here that rule keeps them."""
    assert prominent_features(torch.tensor([1.0, 3.0, 2.0]), rule=rule).tolist() == expected
    assert rule != "published" or kept([8.0, 4.0, 2.0, 1.0], rule) == [8.0, 4.0]  # i ≤ m − 3 = 1


def test_worked_by_hand():
    """Bars 8, 4, 1, 1, 1: R_1 = {1, 1, 1, 8}, ln ℓ'_1 = 8 ln 8 / 11 > ln 4, so i* = 1.

    That is not above Q = ⌈(1/8) 5 (1/8 − 1 + ln 8) / (7/8)²⌉ = 1: the list is final.
    """
    lengths = [1.0, 8.0, 1.0, 4.0, 1.0]
    assert math.log(4) < 8 * math.log(8) / 11
    assert math.ceil(1 / 8 * 5 * (1 / 8 - 1 + math.log(8)) / (7 / 8) ** 2) == 1
    assert kept(lengths, "ratio") == [8.0]
    assert kept(lengths, "published") == [8.0, 4.0]


def test_an_exact_tie_is_not_below_one():
    """ℓ_1 = 2 before {1, 1, 1, 1, 4}: W_1/P_1 = 4 ln 4 / 8 = ln 2 exactly, C(1) = 1, i* = 2."""
    assert kept([4.0, 2.0, 1.0, 1.0, 1.0, 1.0], "ratio") == [4.0, 2.0]


def test_random_positions_take_every_set_of_bars_equally_often():
    torch.manual_seed(0)
    counts = Counter(tuple(_random_positions(4, 2).tolist()) for _ in range(1200))
    assert sorted(counts) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert min(counts.values()) > 150 and max(counts.values()) < 250  # 200 ± 13 expected
