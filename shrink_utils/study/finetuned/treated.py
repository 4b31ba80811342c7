"""What a linear probe can still read once means or dominant directions are taken away."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from shrink_utils.geometry import PrincipalAxes, nearest_centre, principal_axes
from shrink_utils.study.finetuned.probes import deal_folds, predict_classes

__all__ = ["REMOVED", "cluster_axes", "treated_accuracies", "treatments"]

REMOVED = (1, 3, 10)  # directions
MOST_CLUSTERS = 8


def treated_accuracies(x: Tensor, labels: np.ndarray, *, seed: int = 0) -> pd.DataFrame:
    """Accuracy of a linear probe on a cloud after each treatment; every row is held out once.

    Parameters
    ----------
    x : Tensor, shape (n, d)
        Vectors of labelled texts.
    labels : ndarray, shape (n,)
        Their classes.
    seed : int
        Deals the rows to two halves.

    Returns
    -------
    DataFrame
        Columns measure ("accuracy"), treatment, removed, skipped, value. Treatments: "untreated";
        "global" and "clusters", each with 0 (its mean or means subtracted, no more) and with
        `REMOVED` directions removed, the dominant ones (skipped 0) or, as control, the next ones
        (skipped = removed); "commonest" is no treatment but the accuracy of naming the commonest
        class. Removals that a cloud of so few rows does not allow are left out.

    Notes
    -----
    Two halves: treatment, clusters and probe are fitted on one and judged on the other, both ways.
    """
    x, right = x.double(), {}
    folds = deal_folds(np.arange(len(labels)), n_folds=2, seed=seed)
    for fold in np.unique(folds):
        fit, rest = folds != fold, folds == fold
        for key, treat in treatments(x[fit]).items():
            predicted = predict_classes(treat(x[fit]), labels[fit], treat(x[rest]))
            right.setdefault(key, []).append(predicted == labels[rest])
        classes, counts = np.unique(labels[fit], return_counts=True)
        guess = classes[counts.argmax()]
        right.setdefault(("commonest", 0, 0), []).append(labels[rest] == guess)
    rows = [(*key, np.concatenate(hits).mean()) for key, hits in right.items() if len(hits) == 2]
    columns = ["treatment", "removed", "skipped", "value"]
    return pd.DataFrame(rows, columns=columns).assign(measure="accuracy")


def treatments(fit: Tensor) -> dict[tuple[str, int, int], Callable[[Tensor], Tensor]]:
    """Every treatment fitted on a cloud, by (name, directions removed, directions skipped).

    Parameters
    ----------
    fit : Tensor, shape (n, d)
    """
    found: dict = {("untreated", 0, 0): lambda rows: rows}
    whole = principal_axes(fit)
    # The control removes the directions k + 1 … 2k.
    removals = [k for k in REMOVED if 2 * k <= len(whole.directions[0])]
    clusters = cluster_axes(fit, rank=2 * max(removals, default=0))
    for name, axes in (("global", whole), ("clusters", clusters)):
        found[name, 0, 0] = axes.treatment()
        for k in removals:
            for skip in (0, k):
                found[name, k, skip] = axes.treatment(remove=k, skip=skip)
    return found


def cluster_axes(fit: Tensor, *, rank: int, most: int = MOST_CLUSTERS) -> PrincipalAxes:
    """Principal axes of k-means clusters, as many as vary in enough directions each.

    Parameters
    ----------
    fit : Tensor, shape (n, d)
    rank : int
        Directions in which every cluster must vary. It takes one row more than that.
    most : int
        Clusters to try first; one less as long as one of them varies in too few.
    """
    for n_clusters in range(min(most, len(fit) // (rank + 1)), 1, -1):
        means = KMeans(n_clusters, n_init=4, random_state=0).fit(fit.numpy()).cluster_centers_
        sizes = torch.bincount(nearest_centre(fit, means), minlength=n_clusters)
        if sizes.min() > rank:
            axes = principal_axes(fit, centres=means)
            if min(map(len, axes.directions)) >= rank:
                return axes
    return principal_axes(fit)
