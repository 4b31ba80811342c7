"""Batches that every penalty must survive."""

from __future__ import annotations

import pytest
import torch

from shrink_utils.training.penalties import AverageCosine, IsoScoreStar, SpectralEntropy


def _gaussian(n, d, *, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, d, generator=generator, dtype=torch.float64)


@pytest.fixture(params=[AverageCosine, IsoScoreStar, SpectralEntropy])
def penalty_class(request):
    """Each of the penalties in turn."""
    return request.param


@pytest.fixture
def gaussian():
    """A function of (n, d, seed) that draws rows, float64."""
    return _gaussian


@pytest.fixture
def cloud():
    """One class: 12 anisotropic rows off the origin, float64 (12, 5)."""
    return _gaussian(12, 5) * torch.tensor([3.0, 1.0, 1.0, 0.5, 0.2]) + 0.7


@pytest.fixture
def batch():
    """Rows of three classes, float64 (24, 6), that wait for a gradient, and their labels."""
    embeddings = _gaussian(24, 6, seed=1) * torch.linspace(0.2, 2.0, 6) + 0.3
    return embeddings.requires_grad_(), torch.arange(24) % 3
