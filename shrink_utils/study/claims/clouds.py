"""What the last [CLS] vectors of a run show, before and after fine-tuning.

Of the validation rows, which every fine-tuning run keeps: STL, Rajaee & Pilehvar (RP), and Mickus,
Grönroos & Attieh 2024, *Isotropy, Clusters, and Classifiers* (arXiv 2402.03191; MGA).
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import silhouette_score
from torch import Tensor

from shrink_utils.geometry import elongated_directions, iso_score, principal_axes
from shrink_utils.study.ablation import TASK_OF_MODEL
from shrink_utils.study.claims.claim import as_table, claim, per_seed
from shrink_utils.study.claims.rajaee import about_rp
from shrink_utils.study.claims.stl import ARM, SELECTED, about_stl, table3
from shrink_utils.study.runs import Run, keys_of
from shrink_utils.text import task_spec
from shrink_utils.topology import h0_barcode

RATIO = 5.0  # RP: an elongated direction has so many times a mean eigenvalue
ALIGNED = 0.9  # |cos|, within 26 degrees; ours, and exploratory: it was set after first results
YARDSTICKS = ("own", "pretrained")  # whose mean eigenvalue


@as_table
def clouds_claims(clouds: pd.DataFrame) -> Iterator[dict]:
    """On the clouds of `measure_clouds`; RP's and MGA's on every arm."""
    for (model, task), rows in clouds.groupby(TASK_OF_MODEL, sort=False):
        yield from _of_stl(model, task, rows)
    # RP count eigenvalues above 5 times a mean. Whether the count rises depends on which mean.
    for yardstick in YARDSTICKS:
        for (model, task, arm), rows in clouds.groupby([*TASK_OF_MODEL, "arm"], sort=False):
            rise = per_seed(rows, f"elongated_{yardstick}") - per_seed(rows, "elongated_before")
            yield claim(f"rp:elongated-{yardstick}", rise, **about_rp(model, task, arm))
    for (model, task), rows in clouds.groupby(TASK_OF_MODEL, sort=False):
        if rows.classes.iloc[0] > 1 and "none" in set(rows.arm) and rows.arm.nunique() > 1:
            yield claim("mga:conflict", _conflict(rows), cell=f"{model}:{task}", task=task)


def _conflict(rows: pd.DataFrame) -> pd.Series:
    """By seed: what the arms' silhouettes gain, with the sign of what IsoScore gains."""
    wide = rows.pivot(index="seed", columns="arm", values=["isoscore", "silhouette"])
    isotropy, clusters = (
        wide[measure].drop(columns="none").sub(wide[measure]["none"], axis=0)
        for measure in ("isoscore", "silhouette")
    )
    return (np.sign(isotropy) * clusters).mean(axis=1)


def _of_stl(model: str, task: str, rows: pd.DataFrame) -> Iterator[dict]:
    name = table3(model, task)[1]
    for arm, own in rows.groupby("arm", sort=False):
        about = about_stl(model, task, arm, table3=name)
        if arm == "all" and ARM in set(rows.arm):
            # Bars are one class's; lengths scale with the cloud, so their logarithm is compared.
            shorter = per_seed(own, "log_edge") - per_seed(rows[rows.arm == ARM], "log_edge")
            yield claim("stl:shorter-tree", shorter, **about)
        if arm != "none" and own.classes.iloc[0] > 1 and "none" in set(rows.arm):
            clusters = per_seed(own, "silhouette")
            lost = clusters - per_seed(rows[rows.arm == "none"], "silhouette")
            yield claim("stl:clusters-kept", lost, **about)
            if arm in SELECTED and "all" in set(rows.arm):
                gain = clusters - per_seed(rows[rows.arm == "all"], "silhouette")
                yield claim("stl:clusters-above-all", gain, **about)
        if own.classes.iloc[0] == 2:
            # STL speak of the classifier's hyperplane; its weights are not kept with the clouds.
            beyond = per_seed(own, "class_cosine") - ALIGNED
            yield claim("stl:class-normal", beyond, aligned=ALIGNED, **about)


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
    lengths = torch.cat([h0_barcode(after[labels == one]).lengths for one in classes])
    shrunk = (before.var(dim=0).mean() / after.var(dim=0).mean()).item()  # mean eigenvalues
    return {
        **keys_of(run.config),
        "classes": len(classes) if several else 0,
        "log_edge": math.log(lengths.mean()),
        "class_cosine": _class_cosine(after, labels) if len(classes) == 2 else math.nan,
        "elongated_before": elongated_directions(before, ratio=RATIO),
        "elongated_own": elongated_directions(after, ratio=RATIO),
        "elongated_pretrained": elongated_directions(after, ratio=RATIO * shrunk),
        "isoscore": iso_score(after, bias_corrected=True),
        "silhouette": float(silhouette_score(after, labels)) if several else math.nan,
    }


def _class_cosine(x: Tensor, labels: Tensor) -> float:
    top = principal_axes(x).directions[0][0]  # (d,)
    means = [x[labels == one].mean(dim=0) for one in labels.unique()]
    return abs(torch.cosine_similarity(top, means[1] - means[0], dim=0).item())
