"""Clouds in the plane (chapters 04 and 04b)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from shrink_utils.names import unknown_name


def example_cloud(name: str) -> Tensor:
    """One of `CLOUDS`, the same points every time, float64, shape (n, 2), within 10 by 6."""
    if name not in CLOUDS:
        raise unknown_name("name", "cloud", name, CLOUDS)
    generator = torch.Generator().manual_seed(0)
    return CLOUDS[name](lambda n: torch.randn(n, 2, generator=generator, dtype=torch.float64))


def _groups(centres: list[tuple[float, float]], n: int, spread: float, noise: Callable) -> Tensor:
    middle = torch.tensor(centres, dtype=torch.float64).repeat_interleave(n, dim=0)
    return middle + spread * noise(len(middle))


def _circle(noise: Callable) -> Tensor:
    angle = 2 * math.pi * torch.arange(16, dtype=torch.float64) / 16
    return torch.stack([5 + 2.4 * angle.cos(), 3 + 2.4 * angle.sin()], dim=1) + 0.12 * noise(16)


def _line(noise: Callable) -> Tensor:
    along = torch.linspace(0.8, 9.2, 12, dtype=torch.float64)
    return torch.stack([along, 1 + 0.45 * along], dim=1) + 0.15 * noise(12)


def _far(noise: Callable) -> Tensor:
    near = _groups([(2.5, 3.0)], 12, 0.9, noise)
    return torch.cat([near, _groups([(9.0, 4.5)], 4, 0.08, noise)])


def _grid(noise: Callable) -> Tensor:
    return torch.cartesian_prod(torch.arange(2.0, 9, 2), torch.arange(1.0, 6, 2)).double()


CLOUDS: dict[str, Callable[[Callable], Tensor]] = {
    "two clusters": lambda noise: _groups([(2.5, 2.0), (7.0, 4.0)], 7, 0.5, noise),
    "a circle": _circle,
    "a line": _line,
    "a tight cluster far away": _far,
    "an even grid": _grid,
    "one round cloud": lambda noise: _groups([(5.0, 3.0)], 16, 1.1, noise),
}
