"""Claims on the [CLS] vectors that every fine-tuning run keeps, before and after."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import silhouette_score
from torch import Tensor

from shrink_utils.geometry import elongated_directions, iso_score
from shrink_utils.study.ablation import CELL
from shrink_utils.study.claims.claim import Evidence, judge, quantity
from shrink_utils.study.claims.pretrained import ARM, stl_table3
from shrink_utils.study.runs import Run
from shrink_utils.study.tables import keys_of
from shrink_utils.text import task_spec
from shrink_utils.topology import h0_barcode

RATIO = 5.0  # Rajaee & Pilehvar: an elongated direction has so many times a mean eigenvalue


def clouds_claims(clouds: pd.DataFrame) -> pd.DataFrame:
    """STL and RP on the clouds of `measure_clouds`, and isotropy against clusters.

    References
    ----------
    Mickus, Grönroos & Attieh 2024, *Isotropy, Clusters, and Classifiers* (arXiv 2402.03191).
    """
    table3 = stl_table3(clouds)[[*CELL, "table3"]].drop_duplicates()
    arms = clouds.groupby(CELL).arm
    clouds = clouds.assign(
        n_arms=arms.transform("nunique"),
        has_prominent=arms.transform(lambda names: ARM in set(names)),
    )
    return judge("clouds", {"clouds": clouds.merge(table3, on=CELL, how="left")})


def measure_clouds(runs: Iterable[Run]) -> pd.DataFrame:
    """One row per run.

    Returns
    -------
    DataFrame
        Columns model, task, arm, weight, seed; classes (0 for a regression); ``log_edge``, of the
        mean edge of the classes' minimum spanning trees; ``class_cosine``, |cos| of the top centred
        direction and the difference of the class means (NaN unless there are two classes); the
        number of eigenvalues above 5 times a mean, ``elongated_before`` fine-tuning and after it,
        with the cloud's ``elongated_own`` mean or that of before (``elongated_pretrained``);
        ``isoscore`` (bias-corrected) and the ``silhouette`` of the classes (NaN for a regression).
    """
    return pd.DataFrame([_cloud(run) for run in runs])


def _cloud(run: Run) -> dict:
    before, after = (run.embeddings[when].double() for when in ("before", "after"))
    labels = run.embeddings["labels"]
    if task_spec(run.config.task).is_regression:
        labels = torch.zeros(len(labels))
    classes = labels.unique()
    several = len(classes) > 1
    return {
        **keys_of(run.config),
        "classes": len(classes) if several else 0,
        "log_edge": _log_edge([after[labels == one] for one in classes]),
        "class_cosine": _class_cosine(after, labels) if len(classes) == 2 else math.nan,
        "elongated_before": elongated_directions(before, ratio=RATIO),
        "elongated_own": elongated_directions(after, ratio=RATIO),
        "elongated_pretrained": elongated_directions(after, ratio=RATIO * _spread(before, after)),
        "isoscore": iso_score(after, bias_corrected=True),
        "silhouette": float(silhouette_score(after, labels)) if several else math.nan,
    }


def _log_edge(classes: list[Tensor]) -> float:
    return math.log(torch.cat([h0_barcode(points).lengths for points in classes]).mean())


def _class_cosine(x: Tensor, labels: Tensor) -> float:
    top = torch.linalg.svd(x - x.mean(dim=0), full_matrices=False)[2][0]  # (d,)
    means = [x[labels == one].mean(dim=0) for one in labels.unique()]
    return abs(torch.cosine_similarity(top, means[1] - means[0], dim=0).item())


def _spread(x: Tensor, y: Tensor) -> float:
    """Mean eigenvalue of the covariance of x over that of y."""
    return (x.var(dim=0).mean() / y.var(dim=0).mean()).item()


@quantity
def isotropy_against_clusters(rows: pd.DataFrame, difference: dict) -> Evidence:
    """Pearson's r of IsoScore and silhouette over the arms, by seed."""
    by_seed = rows.groupby("seed")[["isoscore", "silhouette"]]
    return Evidence([float(np.corrcoef(seed.to_numpy().T)[0, 1]) for _, seed in by_seed])
