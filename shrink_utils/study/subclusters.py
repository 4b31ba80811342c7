"""Clouds in which topology must matter: two sub-clusters per class, and one long noise direction.

Each arm's reward alone trains a linear map of the points until the noise direction has lost half of
its share of the variance. Who keeps the sub-clusters, which are long bars of H0?
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import pandas as pd
import torch
from sklearn.metrics import silhouette_score
from torch import Tensor

from shrink_utils.training import make_regularizer

ARMS = ("prominent", "all", "random", "isoscore", "sigreg")
D, APART = 16, 4.0  # dimensions; half of the distance between sub-clusters, in noise units
CLASS_ROWS = 32  # per class and batch, as in a batch of 64
STEP, MOST_STEPS = 0.02, 600  # length of a step of the map (Frobenius), whatever the gradient's


class Clouds(NamedTuple):
    """A batch: points (n, D), class (n,) and sub-cluster within the class (n,)."""

    points: Tensor
    classes: Tensor
    parts: Tensor


def draw_clouds(rows: int, noise: float, generator: torch.Generator) -> Clouds:
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
    x[:, 1] += 2 * APART * classes
    x[torch.arange(2 * rows), 2 + classes] += APART * (2.0 * parts - 1)
    return Clouds(x, classes, parts)


def subclusters_kept(
    *,
    noises: Collection[float] = (4.0, 6.0, 8.0),
    seeds: Collection[int] = range(10),
    arms: Collection[str] = ARMS,
) -> pd.DataFrame:
    """Train a map with each arm's reward until half of the noise's share is removed.

    Returns
    -------
    DataFrame
        One row per noise, arm and seed: ``steps``, ``reached`` (whether half was removed), and of
        1,000 fresh points ``noise_share`` (of the within-class variance) and the mean
        ``silhouette`` of the sub-clusters inside classes, both before and after.
    """
    rows = []
    for noise in noises:
        for seed in seeds:
            generator = torch.Generator().manual_seed(10_000 + seed)
            fresh = draw_clouds(500, noise, generator)
            identity = torch.eye(D, dtype=torch.float64)
            before = _measured(fresh, identity)
            for arm in arms:
                steps, weights = _trained(arm, noise, seed, before["noise_share"] / 2)
                after = _measured(fresh, weights)
                keys = {"noise": noise, "arm": arm, "seed": seed, "steps": steps}
                keys["reached"] = steps < MOST_STEPS
                keys |= {f"{name}_before": value for name, value in before.items()}
                rows.append(keys | {f"{name}_after": value for name, value in after.items()})
    return pd.DataFrame(rows)


def _trained(arm: str, noise: float, seed: int, target: float) -> tuple[int, Tensor]:
    """Steps and map (D, D), from the identity on; all arms of a seed see the same batches."""
    generator = torch.Generator().manual_seed(seed)
    judged = draw_clouds(500, noise, torch.Generator().manual_seed(20_000 + seed))
    reward = make_regularizer(arm)
    weights = torch.eye(D, dtype=torch.float64, requires_grad=True)
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)  # of the arms that draw bars or directions
        for step in range(MOST_STEPS):
            if _measured(judged, weights.detach(), silhouette=False)["noise_share"] <= target:
                return step, weights.detach()
            batch = draw_clouds(CLASS_ROWS, noise, generator)
            loss = reward(batch.points @ weights, batch.classes).loss
            (gradient,) = torch.autograd.grad(loss, weights)
            weights = weights - STEP * gradient / torch.linalg.vector_norm(gradient)
            weights = weights.detach().requires_grad_()
    return MOST_STEPS, weights.detach()


def _measured(clouds: Clouds, weights: Tensor, *, silhouette: bool = True) -> dict[str, float]:
    """The noise's share of the variance inside classes, and the sub-clusters' silhouette there."""
    of_class = [clouds.classes == c for c in (0, 1)]
    mapped = [clouds.points[rows] @ weights for rows in of_class]
    along = [clouds.points[rows, :1] @ weights[:1] for rows in of_class]  # the noise's own part
    share = sum(x.var(dim=0).sum() for x in along) / sum(x.var(dim=0).sum() for x in mapped)
    found = {"noise_share": float(share)}
    if silhouette:
        parts = [clouds.parts[rows] for rows in of_class]
        values = [silhouette_score(x, y) for x, y in zip(mapped, parts, strict=True)]
        found["silhouette"] = float(sum(values) / 2)
    return found
