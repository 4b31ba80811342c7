"""The published algorithm as published: our own plain transcription of its description.

It is here to be timed, with what costs its time: torch scalars in a loop over the bars, and a call
of itself for every bar that drops out.
"""

from __future__ import annotations

import math
import sys

import gudhi
import torch
from torch import Tensor

sys.setrecursionlimit(max(sys.getrecursionlimit(), 3000))  # a notebook's


def bars_by_gudhi(points: Tensor) -> Tensor:
    """H0 bar lengths, ascending, differentiable: gudhi pairs, torch measures again."""
    tree = gudhi.RipsComplex(points=points.detach().numpy()).create_simplex_tree(max_dimension=1)
    tree.compute_persistence(min_persistence=-1)
    edges = torch.from_numpy(tree.flag_persistence_generators()[0][:, 1:].astype("int64"))
    return (points[edges[:, 0]] - points[edges[:, 1]]).norm(dim=1)


def entropy_of_all(points: Tensor) -> Tensor:
    """Persistent entropy of every bar."""
    return _entropy(bars_by_gudhi(points))


def entropy_of_selected(points: Tensor) -> Tensor:
    """Persistent entropy of the bars that the published code selects."""
    lengths = bars_by_gudhi(points).sort(descending=True).values
    return _entropy(select(torch.cat([lengths[1:], lengths[:1]])))


def select(bars: Tensor) -> Tensor:
    """Prominent bars of ℓ_1 ≥ … ≥ ℓ_{m−1}, longest, by ``rule="published"``."""
    m = len(bars)
    i = _first_below_one(bars.detach())
    alpha = (bars[-2] / bars[-1]).item()
    bound = math.ceil(alpha * m * (alpha - 1 - math.log(alpha)) / (alpha - 1) ** 2)
    if i > bound:
        return select(torch.cat([bars[:i], bars[-2:]]))
    return torch.cat([bars[:i], bars[-1:]])


def _first_below_one(bars: Tensor) -> int:
    """The first i with C(i) < 1, at most m − 3."""
    rest = bars.flip(0).cumsum(0).flip(0)  # P_i
    weighted = (bars * bars.log()).flip(0).cumsum(0).flip(0)  # W_i
    before = rest[0]
    for i in range(1, len(bars) - 2):
        total = rest[i] + i * (weighted[i] / rest[i]).exp()
        if before / total < 1:
            return i
        before = total
    return len(bars) - 3


def _entropy(lengths: Tensor) -> Tensor:
    p = lengths / lengths.sum()
    return -(p * p.log()).sum()
