"""Clouds in which topology must matter: two sub-clusters per class, and one long noise direction.

A reward alone trains a linear map of the points until the noise direction has lost half of its
share of the variance. Who keeps the sub-clusters, which are long bars of H0? Chapter 07b compares.
"""

from typing import NamedTuple

import torch
from sklearn.metrics import silhouette_score
from torch import Tensor, nn

D, SEPARATION = 16, 4.0  # dimensions; half of the distance between sub-clusters, in noise units
CLASS_ROWS = 32  # per class and batch, as in a batch of 64
STEP, MOST_STEPS = 0.02, 600  # length of a step of the map (Frobenius), whatever the gradient's


class _Clouds(NamedTuple):
    """A batch: points (n, D), class (n,) and sub-cluster within the class (n,)."""

    points: Tensor
    classes: Tensor
    parts: Tensor


def draw_clouds(rows: int, noise: float, generator: torch.Generator) -> _Clouds:
    """Two classes, each of two sub-clusters with unit noise and an axis of its own.

    Parameters
    ----------
    rows : int
        Per class, even.
    noise : float
        Standard deviation along axis 0, which all rows share. Classes lie apart on axis 1, their
        sub-clusters on axes 2 and 3.
    """
    classes = torch.arange(2).repeat_interleave(rows)
    parts = torch.arange(2 * rows) % 2
    x = torch.randn(2 * rows, D, generator=generator, dtype=torch.float64)
    x[:, 0] *= noise
    x[:, 1] += 2 * SEPARATION * classes
    x[torch.arange(2 * rows), 2 + classes] += SEPARATION * (2.0 * parts - 1)
    return _Clouds(x, classes, parts)


def trained_map(reward: nn.Module, noise: float, seed: int) -> Tensor:
    """The map (D, D) of a reward, from the identity on; all rewards of a seed see equal batches.

    Raises
    ------
    ValueError
        After 600 steps more than half of the noise's share is left.
    """
    generator = torch.Generator().manual_seed(seed)
    judged = draw_clouds(500, noise, torch.Generator().manual_seed(20_000 + seed))
    weights = torch.eye(D, dtype=torch.float64)
    target = noise_share(judged, weights) / 2
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)  # of the arms that draw bars or directions
        for _ in range(MOST_STEPS):
            if noise_share(judged, weights) <= target:
                return weights
            batch = draw_clouds(CLASS_ROWS, noise, generator)
            weights.requires_grad_()
            loss = reward(batch.points @ weights, batch.classes).loss
            (gradient,) = torch.autograd.grad(loss, weights)
            weights = weights.detach() - STEP * gradient / torch.linalg.vector_norm(gradient)
    raise ValueError(f"reward: {MOST_STEPS} steps did not halve the noise's share of the variance")


def noise_share(clouds: _Clouds, weights: Tensor) -> float:
    """The noise's share of the variance inside classes, after the map `weights` (D, D)."""
    of_class = [clouds.points[clouds.classes == c] for c in (0, 1)]
    noise = sum((x[:, :1] @ weights[:1]).var(dim=0).sum() for x in of_class)
    return float(noise / sum((x @ weights).var(dim=0).sum() for x in of_class))


def silhouette(clouds: _Clouds, weights: Tensor) -> float:
    """Mean silhouette of the sub-clusters inside their class, after the map `weights` (D, D)."""
    of_class = [clouds.classes == c for c in (0, 1)]
    values = [silhouette_score(clouds.points[x] @ weights, clouds.parts[x]) for x in of_class]
    return float(sum(values) / 2)
