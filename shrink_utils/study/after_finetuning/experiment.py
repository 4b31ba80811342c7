"""Rajaee & Pilehvar's questions, asked of the ablation's own encoders: the shape of the space."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn.functional import normalize

from shrink_utils.geometry import (
    PrincipalAxes,
    avg_sim,
    elongated_directions,
    iso_score,
    nearest_centre,
    partition_isotropy,
    principal_axes,
)
from shrink_utils.models import Encoder, load_encoder, pool, state_batches
from shrink_utils.study.after_finetuning.probes import deal_folds, predict_classes
from shrink_utils.study.finetuned import run_encoder
from shrink_utils.study.grid import run_grid
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import measured
from shrink_utils.study.runs import Run
from shrink_utils.text import load_task
from shrink_utils.training.rows import second_texts

PRETRAINED = "pretrained"  # in the column `arm`
POOLINGS = ("cls", "mean")
ARMS = ("none", "prominent", "all")  # whose models are read layer by layer: a minute per arm
COLUMNS = "model task arm seed vectors layer n measure treatment removed skipped value".split()


@measured("after_finetuning")
def measure_after_finetuning(profile: Profile) -> pd.DataFrame:
    """Isotropy by layer; on the first task also the probe of treated vectors of the last layer.

    For the profile's first model, every task and seed, and `ARMS`. Rows are validation texts, which
    no run was trained on: two for every three `diagnostic_sentences`, or all there are.

    Returns
    -------
    DataFrame
        Columns model, task, arm, seed, vectors ("cls" or "mean" over the tokens), layer, n (rows),
        measure, treatment, removed, skipped, value. The arm "pretrained" is the model before
        fine-tuning, with a row per seed: only the halves of its probe differ between them. The arm
        "isotropic" is a Gaussian cloud of the same shape. Measures are those of `isotropy`,
        without a treatment, and "accuracy" as `treated_accuracies` gives it.
    """
    runs, frames = run_grid(profile), []
    for entry in profile.grid:
        n_rows = profile.diagnostic_sentences * 2 // 3
        rows = load_task(entry.task, max_eval=n_rows)["validation"]
        labels = np.asarray(rows["label"])
        for keys, seeds, encoder in study_encoders(profile, runs, task=entry.task):
            states = text_states(encoder, rows, max_length=entry.max_length)
            with threadpool_limits(1):  # small matrices: threads would wait for each other
                by_layer = _by_layer(states["cls"])
                found = [by_layer.assign(seed=seed) for seed in seeds]
                if entry.task == profile.tasks[0]:
                    found += [_treated(states, labels, seed) for seed in seeds]
            frames.append(pd.concat(found).assign(**keys, n=len(rows)))
        gaussian = {**keys, "arm": "isotropic", "seed": seeds[0], "n": len(rows)}
        frames.append(_isotropic(states["cls"].shape).assign(**gaussian))
    return pd.concat(frames, ignore_index=True)[COLUMNS]


def study_encoders(
    profile: Profile, runs: Iterable[Run], *, task: str
) -> Iterator[tuple[dict, list[int], Encoder]]:
    """The profile's first model, pretrained and then as the runs of `ARMS` on a task left it.

    Yields
    ------
    keys : dict
        ``model``, ``task`` and ``arm`` ("pretrained" first).
    seeds : list of int
        The run's own; for the pretrained model those of all runs, since each is compared with it.
    encoder : Encoder
        On the GPU when there is one.
    """
    model, device = profile.models[0], "cuda" if torch.cuda.is_available() else "cpu"
    of_task = [run for run in runs if (run.config.model, run.config.task) == (model, task)]
    chosen = [run for run in of_task if run.config.arm in ARMS]
    seeds = sorted({run.config.seed for run in chosen})
    keys = {"model": model, "task": task}
    yield {**keys, "arm": PRETRAINED}, seeds, load_encoder(model, device=device)
    for run in chosen:
        encoder = run_encoder(run, device=device)
        yield {**keys, "arm": run.config.arm}, [run.config.seed], encoder


def text_states(encoder: Encoder, rows: Dataset, *, max_length: int) -> dict[str, Tensor]:
    """Vectors of n texts at every layer, `cls` and `mean`, (layers, n, d) each, from one pass."""
    order, parts = [], {pooling: [] for pooling in POOLINGS}
    for batch in state_batches(
        encoder, rows["text"], text_pairs=second_texts(rows), max_length=max_length
    ):
        order += batch.rows
        for pooling, found in parts.items():
            layers = [pool([state], batch.mask, pooling=pooling) for state in batch.states]
            found.append(torch.stack(layers).float().cpu())  # (layers, b, d)
    back = torch.tensor(order).argsort()  # the batches are sorted by length
    return {pooling: torch.cat(found, dim=1)[:, back] for pooling, found in parts.items()}


def isotropy(x: Tensor) -> dict[str, float]:
    """Every measure of isotropy that is taken before and after fine-tuning, of a cloud (n, d).

    IsoScore in its bias-corrected form; log I(W) of the vectors and of their unit forms.
    """
    return {
        "log I(W)": partition_isotropy(x),
        "log I(W), unit norm": partition_isotropy(normalize(x.double(), dim=1)),
        "IsoScore": iso_score(x, bias_corrected=True),
        "AvgSim": avg_sim(x).value,
        "elongated directions": float(elongated_directions(x)),
    }


def _by_layer(states: Tensor) -> pd.DataFrame:
    """Isotropy of every layer but the first, where all [CLS] vectors are one point."""
    rows = [
        {"vectors": "cls", "layer": layer, "measure": measure, "value": value}
        for layer in range(1, len(states))
        for measure, value in isotropy(states[layer]).items()
    ]
    return pd.DataFrame(rows)


def _treated(states: dict[str, Tensor], labels: np.ndarray, seed: int) -> pd.DataFrame:
    """The probe on treated vectors of the last layer; the seed deals the texts to two halves."""
    frames = [
        treated_accuracies(layers[-1], labels, seed=seed).assign(vectors=vectors, seed=seed)
        for vectors, layers in states.items()
    ]
    return pd.concat(frames).assign(layer=len(states["cls"]) - 1)


def _isotropic(shape: torch.Size) -> pd.DataFrame:
    """The measures of a Gaussian cloud, at every layer: what a sample of this shape can reach."""
    layers, n, d = shape
    cloud = torch.from_numpy(np.random.default_rng(0).normal(size=(n, d)))
    table = pd.DataFrame(isotropy(cloud).items(), columns=["measure", "value"])
    return table.assign(vectors="cls").merge(pd.DataFrame({"layer": range(1, layers)}), how="cross")


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
        Deals the rows to two halves. Treatment, clusters and probe are fitted on one and judged on
        the other, both ways.

    Returns
    -------
    DataFrame
        Columns measure ("accuracy"), treatment, removed, skipped, value. Treatments: "untreated";
        "global" and "clusters", each with 0 (its mean or means subtracted, no more) and with
        `REMOVED` directions removed, the dominant ones (skipped 0) or, as control, the next ones
        (skipped = removed); "commonest" is the accuracy of naming the commonest class. Removals
        that a cloud of so few rows does not allow are left out.
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
    """Every treatment fitted on a cloud (n, d), by (name, directions removed, skipped)."""
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
    """Principal axes of k-means clusters, each of which varies in `rank` directions at least.

    Begins with `most` clusters and takes one less as long as one of them varies in too few.
    """
    for n_clusters in range(min(most, len(fit) // (rank + 1)), 1, -1):
        means = KMeans(n_clusters, n_init=4, random_state=0).fit(fit.numpy()).cluster_centers_
        sizes = torch.bincount(nearest_centre(fit, means), minlength=n_clusters)
        if sizes.min() > rank:
            axes = principal_axes(fit, centres=means)
            if min(map(len, axes.directions)) >= rank:
                return axes
    return principal_axes(fit)
