import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shrink_utils.topology import persistent_entropy

positive = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=30)


def by_definition(lengths):
    total = math.fsum(lengths)
    return -math.fsum(v / total * math.log(v / total) for v in lengths if v > 0)


def tensor(values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


@given(positive)
def test_equals_the_definition(lengths):
    assert persistent_entropy(tensor(lengths)).item() == pytest.approx(
        by_definition(lengths), rel=1e-12, abs=1e-12
    )


@given(positive)
def test_gradient_is_the_formula(lengths):
    bars = tensor(lengths)
    persistent_entropy(bars).backward()
    total, entropy = sum(lengths), by_definition(lengths)
    expected = [-(math.log(v / total) + entropy) / total for v in lengths]
    # Rounding is relative to the two terms that cancel, not to their difference.
    size = max(abs(math.log(v / total)) for v in lengths) / total
    assert bars.grad.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12 * size)


@pytest.mark.parametrize("lengths", [[], [0.0], [0.0, 0.0, 0.0], [3.7]])
def test_one_positive_bar_or_none_gives_zero_and_zero_gradient(lengths):
    bars = tensor(lengths)
    entropy = persistent_entropy(bars)
    entropy.backward()
    assert entropy.item() == 0.0
    assert bars.grad.tolist() == [0.0] * len(lengths)


def test_zero_bars_change_neither_value_nor_gradient():
    with_zeros, without = tensor([2.0, 0.0, 1.0, 0.0]), tensor([2.0, 1.0])
    for bars in (with_zeros, without):
        persistent_entropy(bars).backward()
    assert persistent_entropy(with_zeros).item() == persistent_entropy(without).item()
    assert with_zeros.grad.tolist() == [without.grad[0], 0.0, without.grad[1], 0.0]


@pytest.mark.parametrize(
    "lengths", [[1e308] * 40, [1e308, 5e-324], [5e-324, 5e-324], [1e-310, 1.0]]
)
def test_extreme_lengths_neither_overflow_nor_give_nan(lengths):
    bars = tensor(lengths)
    entropy = persistent_entropy(bars)
    entropy.backward()
    assert 0.0 <= entropy.item() <= math.log(len(lengths)) + 1e-12
    assert not bars.grad.isnan().any()


@pytest.mark.parametrize(
    ("given_dtype", "expected"),
    [
        (torch.float64, torch.float64),
        *((kind, torch.float32) for kind in (torch.float32, torch.float16, torch.bfloat16)),
        (torch.int64, torch.float32),
    ],
)
def test_dtype_of_the_result(given_dtype, expected):
    entropy = persistent_entropy(torch.tensor([1, 1, 1], dtype=given_dtype))
    assert entropy.dtype == expected
    assert entropy.item() == pytest.approx(math.log(3), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_lengths_are_numbers(dtype):
    assert float(persistent_entropy(torch.tensor([1, 1, 2]).to(dtype))) == pytest.approx(1.03972)
