"""What is taken as a batch, what is refused, and what a refusal leaves behind."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from shrink_utils.geometry import avg_sim
from shrink_utils.geometry.streaming import AvgSim, SelfSim, UnitRows
from tests.geometry.streaming.conftest import CLOUDS, N, assert_same


def test_no_rows_have_no_value(case):
    with (
        pytest.warns(UserWarning, match="was called before the ``update``"),
        pytest.raises(ValueError, match=r"needs at least \d row\(s\), it has seen 0|none of 6"),
    ):
        case.make().compute()


@pytest.mark.parametrize("read", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_batch_that_is_not_finite_is_refused_and_leaves_no_trace(case, bad, read):
    x, rows = CLOUDS["random"], np.arange(N)
    metric = case.make()
    metric.update(*case.batch(x, rows))
    damaged = x.copy()
    damaged[7, 2] = bad
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="NaN or infinity in 1 row"):
        metric.update(*_damaged_batch(case, x, read(damaged), rows))
    assert_same(metric.compute(), case.expected(x))


def _damaged_batch(case, x, damaged, rows):
    """The batch of `x` with its first matrix replaced by the damaged one."""
    first, *others = case.batch(x, rows)
    return [[damaged, *first[1:]] if isinstance(first, list) else damaged, *others]


def test_rows_of_another_width_are_refused(case):
    x = CLOUDS["random"]
    batch = _damaged_batch(case, x, x[:, :5], np.arange(N))
    with pytest.raises(ValueError, match=r"must have 6 columns, got shape \(60, 5\)"):
        case.make().update(*batch)


def test_a_matrix_is_asked_for(case):
    x = CLOUDS["random"]
    batch = _damaged_batch(case, x, x[:, 0], np.arange(N))
    with pytest.raises(ValueError, match=r"must have two axes .* got shape \(60,\)"):
        case.make().update(*batch)


def test_no_gradient_is_kept(case):
    x = CLOUDS["random"]
    grown = torch.tensor(x, requires_grad=True)
    metric = case.make()
    metric.update(*_damaged_batch(case, x, grown, np.arange(N)))
    assert not metric.compute().requires_grad


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1.0, 1e150, 1e300])
def test_unit_rows_have_length_one_at_every_scale(scale):
    x = torch.from_numpy(CLOUDS["random"])
    expected = x / torch.linalg.vector_norm(x, dim=1, keepdim=True)
    torch.testing.assert_close(UnitRows(x * scale).rows, expected, rtol=1e-15, atol=1e-15)


def test_rows_scaled_once_do_for_several_metrics():
    x = torch.randn(20, 3)
    unit, once, twice = UnitRows(x), AvgSim(3), SelfSim(2, 3)
    once.update(unit)
    twice.update(unit, torch.zeros(20, dtype=torch.long))
    assert float(once.compute()) == pytest.approx(avg_sim(x).value, rel=1e-12)
    assert float(twice.compute()[0]) == pytest.approx(avg_sim(x).value, rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_unit_rows_leave_what_was_given_as_it_was(dtype):
    x = torch.ones(3, 2, dtype=dtype)
    UnitRows(x)
    assert x.min() == 1


@pytest.mark.parametrize("tiny", [0.0, 1e-300])
def test_a_zero_row_is_told_from_a_tiny_one(tiny):
    x = torch.ones(3, 2, dtype=torch.float64)
    x[1] = tiny
    if tiny:
        assert UnitRows(x).rows.flatten().tolist() == pytest.approx([0.5**0.5] * 6)
    else:
        with pytest.raises(ValueError, match=r"1 zero row\(s\), the first at row 1"):
            UnitRows(x)
