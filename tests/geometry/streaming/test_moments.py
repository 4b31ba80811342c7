"""Moments of every order against their definition, in exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from shrink_utils.geometry.streaming.cka import ScatterMoments
from shrink_utils.geometry.streaming.moments import over_columns
from shrink_utils.geometry.streaming.spectrum import TriangleMoments

WIDTHS = (3, 2)


def _x(offset):
    x = np.random.default_rng(0).normal(size=(12, 5)) + offset
    x[:, 3:] *= 4
    return x


def _by_definition(x):
    """Σ k_i, Σ k_i k_j, Σ k_i z and Σ z zᵀ without any rounding until the end."""
    rows = [[Fraction(float(v)) for v in row] for row in x]
    mean = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    z = np.array([[v - m for v, m in zip(row, mean, strict=True)] for row in rows], dtype=object)
    k = np.stack([(z[:, :3] ** 2).sum(1), (z[:, 3:] ** 2).sum(1)], axis=1)
    values = (np.array(mean, dtype=object), k.sum(0), k.T @ k, k.T @ z, z.T @ z)
    return [value.astype(float) for value in values]


def _read(moments):
    """Mean and moments of the rows as they came, the scale taken out."""
    unit = torch.exp2(moments.exponent)
    columns = over_columns(unit, moments.widths)
    return [
        (moments.origin + moments.mean) * columns,
        moments.norms * unit**2,
        moments.norm_products * torch.outer(unit**2, unit**2),
        moments.norm_rows * torch.outer(unit**2, columns),
    ]


def _assert_close(found, expected):
    for value, truth in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, truth, rtol=1e-12, atol=1e-13 * np.abs(truth).max())


@pytest.mark.parametrize("offset", [0, 1e3])
@pytest.mark.parametrize("sizes", [[12], [1, 11], [5, 7], [1] * 12])
def test_moments_follow_the_mean_without_losing_digits(offset, sizes):
    x = _x(offset)
    moments = ScatterMoments(torch.zeros(ScatterMoments.size(WIDTHS)).double(), WIDTHS)
    for batch in torch.from_numpy(x).split(sizes):
        moments.add(batch.split(WIDTHS, dim=1))
    *expected, scatter = _by_definition(x)
    _assert_close(_read(moments), expected)
    unit = torch.exp2(moments.exponent)
    for i, j, block in moments.blocks():
        truth = scatter[i * 3 : 3 + i * 2, j * 3 : 3 + j * 2]
        np.testing.assert_allclose(
            block * unit[i] * unit[j], truth, rtol=1e-12, atol=1e-13 * np.abs(truth).max()
        )


@pytest.mark.parametrize("offset", [0, 1e3])
@pytest.mark.parametrize("n_first", [0, 1, 5, 12])
def test_folded_states_have_the_moments_of_all_rows(offset, n_first):
    x, states = _x(offset), []
    for batch in (x[:n_first], x[n_first:], x[:0]):
        state = torch.zeros(ScatterMoments.size(WIDTHS)).double()
        if len(batch):
            ScatterMoments(state, WIDTHS).add(torch.from_numpy(batch).split(WIDTHS, dim=1))
        states.append(state)
    folded = ScatterMoments(ScatterMoments.fold(torch.stack(states), WIDTHS), WIDTHS)
    assert folded.n == 12
    _assert_close(_read(folded), _by_definition(x)[:4])


def test_folding_leaves_the_states_as_they_were():
    states = torch.zeros(2, TriangleMoments.size((5,))).double()
    for state, batch in zip(states, torch.from_numpy(_x(1e3)).split([4, 8]), strict=True):
        TriangleMoments(state, (5,)).add([batch])
    before = states.clone()
    TriangleMoments.fold(states, (5,))
    assert torch.equal(states, before)


@pytest.mark.parametrize("offset", [0, 1e3])
def test_the_triangle_is_a_root_of_the_scatter(offset):
    x = _x(offset)
    moments = TriangleMoments(torch.zeros(TriangleMoments.size((5,))).double(), (5,))
    for batch in torch.from_numpy(x).split(5):
        moments.add([batch])
    root = moments.triangle * torch.exp2(moments.exponent)
    assert len(moments.second) == 15  # only the upper half is kept
    np.testing.assert_allclose(root.T @ root, _by_definition(x)[4], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-160, 1e-320])
def test_rows_that_grow_by_many_orders_keep_their_moments(scale):
    small, large = torch.randn(6, 5).double() * scale, torch.randn(6, 5).double() * 1e-150
    once, twice = (
        ScatterMoments(torch.zeros(ScatterMoments.size(WIDTHS)).double(), WIDTHS) for _ in "ab"
    )
    once.add(torch.cat([small, large]).split(WIDTHS, dim=1))
    twice.add(small.split(WIDTHS, dim=1))
    twice.add(large.split(WIDTHS, dim=1))
    assert torch.equal(once.exponent, twice.exponent)
    assert once.norm_products.min() > 0
    torch.testing.assert_close(twice.norm_products, once.norm_products, rtol=1e-12, atol=0)
    torch.testing.assert_close(
        twice.second, once.second, rtol=1e-12, atol=1e-14 * once.second.abs().max()
    )
