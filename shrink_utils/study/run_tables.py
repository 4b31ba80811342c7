"""The small tables that a fine-tuning run leaves when it ends; all that is asked later reads them.

Their columns are those of ``data/reference/<profile>``: a study on record and one in ``results``
are the same five tables in two folders.
"""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import silhouette_score
from torch import Tensor

from shrink_utils.geometry import elongated_directions, iso_score, principal_axes
from shrink_utils.text.tasks import TaskSpec, task_spec
from shrink_utils.topology import h0_barcode

# What tells the runs of a study apart: the first columns of every table of runs.
TASK_OF_MODEL = ["model", "task"]
RUN = [*TASK_OF_MODEL, "arm", "weight", "seed"]
KEYS = [*RUN, "epochs"]
TABLES = ("runs", "steps", "evaluations", "correct", "clouds")
STAMPED = ("time", "commit", "device", "precision", "threads", "seconds")
SCORES = [f"{space}_{k}" for space in ("raw", "centred") for k in (1, 2, 3)]
LAST = 0.3  # STL average over the last 30 % of the steps, and of the epochs
RATIO = 5.0  # Rajaee & Pilehvar: an elongated direction has so many times a mean eigenvalue


def _tables_of_run(
    run: Mapping[str, object],
    history: pd.DataFrame,
    evaluations: list[dict],
    embeddings: Mapping[str, Tensor],
    stamp: Mapping[str, object],
) -> dict[str, pd.DataFrame]:
    """The tables of a run, by the names of `TABLES`; each begins with the columns `KEYS`.

    Parameters
    ----------
    run : mapping
        The values of its configuration.
    history, evaluations, embeddings
        As of `finetuning._FinetuneResult`: rows by step and by evaluation, and vectors, labels and
        predictions of the validation rows.
    stamp : mapping
        Of `results.provenance`, with precision, threads and seconds.

    Returns
    -------
    dict
        ``runs``: one row, of `_summary_row`, with what `stamp` says; ``steps``: the history;
        ``evaluations``: one row per evaluation, with the task's first ``metric`` and its ``value``;
        ``correct``: of `_correctness`; ``clouds``: one row, of `_cloud_row`.
    """
    spec, found = task_spec(run["task"]), pd.DataFrame(evaluations)
    stamped = {name: stamp.get(name) for name in STAMPED}
    tables = {
        "runs": pd.DataFrame([_summary_row(spec, history, evaluations) | stamped]),
        "steps": history,
        "evaluations": found.assign(metric=spec.metrics[0], value=found[spec.metrics[0]]),
        "correct": _correctness(spec, embeddings),
        "clouds": pd.DataFrame([_cloud_row(spec, embeddings)]),
    }
    keys = {name: run[name] for name in KEYS}
    return {
        name: pd.concat([pd.DataFrame(keys, index=table.index), table], axis=1)
        for name, table in tables.items()
    }


def _summary_row(spec: TaskSpec, history: pd.DataFrame, evaluations: list[dict]) -> dict:
    """What a run comes to.

    ``raw_k`` and ``centred_k``: the anisotropy scores averaged over the last 30 % of the steps
    whose batch was full; ``raw_before``, ``raw_after``, ``centred_before``, ``centred_after``: the
    first scores of the validation rows; every metric of the task under its name, on the validation
    rows, averaged over the last 30 % of the epochs, and at least the last one (not the best one,
    which would favour whatever varies most); ``metric`` and ``value``: the first of them, which
    claims are about.
    """
    first, final = evaluations[0], evaluations[-1]
    full = history[history.rows == history.rows.max()]
    epochs = pd.DataFrame(evaluations[1:])
    metrics = spec.metrics
    scores = {name: _last(epochs[name]) for name in metrics}
    return {
        **{name: _last(full[name]) for name in SCORES},
        **{
            f"{space}_{when}": of[f"{space}_1"]
            for space in ("raw", "centred")
            for when, of in (("before", first), ("after", final))
        },
        "metric": metrics[0],
        "value": scores[metrics[0]],
        **scores,
    }


def _last(values: pd.Series) -> float:
    """Mean of the last 30 %."""
    return float(values.tail(math.ceil(LAST * len(values))).mean())


def _correctness(spec: TaskSpec, embeddings: Mapping[str, Tensor]) -> pd.DataFrame:
    """Which validation rows a run gets right: columns ``row`` and ``correct``.

    That is the share of the last 30 % of the epochs (at least the last one) in which the row's
    predicted class is its label. A regression has no rows.
    """
    if spec.is_regression:
        return pd.DataFrame({"row": np.zeros(0, int), "correct": np.zeros(0)})
    right = embeddings["predictions"][1:] == embeddings["labels"]  # (epochs, n)
    share = right[-math.ceil(LAST * len(right)) :].double().mean(dim=0)
    return pd.DataFrame({"row": range(len(share)), "correct": share})


def _cloud_row(spec: TaskSpec, embeddings: Mapping[str, Tensor]) -> dict:
    """What the last [CLS] vectors of the validation rows show, before and after fine-tuning.

    ``classes`` (0 for a regression); ``log_edge``, of the mean edge of the classes' minimum
    spanning trees; ``class_cosine``, |cos| of the top centred direction and the difference of the
    class means (NaN unless there are two classes); the number of eigenvalues above 5 times a mean,
    ``elongated_before`` fine-tuning and after it, with the cloud's ``elongated_own`` mean or that
    of before (``elongated_pretrained``); ``isoscore`` (bias-corrected) and the ``silhouette`` of
    the classes (NaN for a regression).
    """
    before, after = (embeddings[when].double() for when in ("before", "after"))
    labels = embeddings["labels"]
    if spec.is_regression:
        labels = torch.zeros(len(labels))
    classes = labels.unique()
    several = len(classes) > 1
    lengths = torch.cat([h0_barcode(after[labels == one]).lengths for one in classes])
    shrunk = (before.var(dim=0).mean() / after.var(dim=0).mean()).item()  # mean eigenvalues
    return {
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
