"""What a run does to the shape of its validation cloud: its tree's length, its first direction."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd
import torch
from torch import Tensor

from shrink_utils.study.runs import Run
from shrink_utils.study.tables import keys_of
from shrink_utils.topology import h0_barcode, persistent_entropy


def cloud_numbers(x: Tensor, labels: Tensor) -> dict[str, float]:
    """Size and direction of a labelled cloud.

    Parameters
    ----------
    x : Tensor, shape (n, d)
    labels : Tensor, shape (n,)
        Two classes.

    Returns
    -------
    dict
        ``tree``, the length of the minimum spanning tree; ``spread``, the root mean square distance
        from the mean, which a tree's length grows with; ``entropy`` of the tree's edges (natural
        logarithm); ``class_normal``, the |cosine| between the first principal direction and the
        difference of the class means: 1 where the widest direction is the one that tells the
        classes apart.
    """
    x = x.double()
    lengths = h0_barcode(x).lengths  # (n - 1,)
    centred = x - x.mean(dim=0)
    first = torch.linalg.svd(centred, full_matrices=False).Vh[0]  # (d,)
    one, other = (x[labels == label].mean(dim=0) for label in labels.unique().tolist())
    return {
        "tree": float(lengths.sum()),
        "spread": float(centred.square().sum(dim=1).mean().sqrt()),
        "entropy": float(persistent_entropy(lengths)),
        "class_normal": float(torch.cosine_similarity(first, one - other, dim=0).abs()),
    }


def measure_clouds(runs: Iterable[Run]) -> pd.DataFrame:
    """`cloud_numbers` of every run's validation rows, ``when`` being "before" and "after"."""
    rows = [
        keys_of(run.config)
        | {"when": when}
        | cloud_numbers(run.embeddings[when], run.embeddings["labels"])
        for run in runs
        for when in ("before", "after")
    ]
    return pd.DataFrame(rows)
