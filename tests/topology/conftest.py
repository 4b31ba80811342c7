"""Point clouds that a barcode must survive."""

import math

import gudhi
import numpy as np
import pytest
import torch


def gaussian(n, d, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


def _clouds():
    centres = 10 * gaussian(3, 5, seed=1)
    direction = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    side = torch.arange(5, dtype=torch.float64)
    far = 1e-3 * gaussian(128, 16, seed=3)
    far[64:] += 1e4
    angle = 2 * math.pi * torch.arange(16, dtype=torch.float64) / 16
    return {
        "gaussian": gaussian(24, 5),
        "clustered": centres.repeat_interleave(8, dim=0) + 0.1 * gaussian(24, 5, seed=2),
        "duplicated": gaussian(8, 3).repeat(3, 1),
        "collinear": torch.outer(gaussian(20, 1)[:, 0], direction),
        "grid": torch.cartesian_prod(side, side),
        "far_tight_clusters": far,
        "circle": torch.stack([angle.cos(), angle.sin()], dim=1),
        "offset": gaussian(24, 5) + 1e6,
    }


CLOUDS = _clouds()


def gudhi_intervals(dimension, **given):
    """Finite intervals of gudhi's own Rips persistence of points or a distance_matrix, (m, 2).

    Longest first; components of copies have length 0, other bars of length 0 are left out.
    """
    tree = gudhi.RipsComplex(**given).create_simplex_tree(max_dimension=dimension + 1)
    tree.compute_persistence(min_persistence=0.0 if dimension else -1.0)
    found = tree.persistence_intervals_in_dimension(dimension).reshape(-1, 2)
    found = found[np.isfinite(found[:, 1])]
    return found[np.argsort(found[:, 0] - found[:, 1], kind="stable")]


@pytest.fixture(params=CLOUDS)
def cloud(request):
    """Each of the clouds in turn, float64 (n, d)."""
    return CLOUDS[request.param].clone()


@pytest.fixture
def clouds():
    """All of the clouds by name."""
    return {name: points.clone() for name, points in CLOUDS.items()}
