"""Rajaee & Pilehvar's questions, asked of the ablation's own encoders: the shape of the space.

How isotropic is each layer before and after fine-tuning, and what does a linear probe of the task
lose when dominant directions are removed? Rows are validation texts: no run was trained on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn.functional import normalize

from shrink_utils.geometry import avg_sim, elongated_directions, iso_score, partition_isotropy
from shrink_utils.models import Encoder, load_encoder, pool, state_batches
from shrink_utils.study.finetuned.treated import treated_accuracies
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.ablation import run_grid
from shrink_utils.study.runs.folder import Run
from shrink_utils.study.runs.measured import measured
from shrink_utils.study.runs.run_or_load import run_encoder
from shrink_utils.text import load_task
from shrink_utils.training.rows import second_texts

__all__ = ["PRETRAINED", "isotropy", "measure_after_finetuning", "study_encoders", "text_states"]

PRETRAINED = "pretrained"  # in the column `arm`
POOLINGS = ("cls", "mean")
COLUMNS = "model task arm seed vectors layer n measure treatment removed skipped value".split()


@measured("after_finetuning")
def measure_after_finetuning(profile: Profile) -> pd.DataFrame:
    """Isotropy by layer; on the first task also the probe of treated vectors of the last layer.

    Parameters
    ----------
    profile : Profile
        Its first model, every task, arm and seed. A task gives two validation rows for every three
        `diagnostic_sentences`, or all there are.

    Returns
    -------
    DataFrame
        Columns model, task, arm, seed, vectors ("cls" or "mean" over the tokens), layer, n (rows),
        measure, treatment, removed, skipped, value. The arm "pretrained" is the model before
        fine-tuning, with a row a seed: only the halves of its probe differ between them. The arm
        "isotropic" is a Gaussian cloud of the same shape. Measures are those of
        `isotropy`, without a treatment, and "accuracy" as `treated_accuracies` gives it.
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
    """The profile's first model, pretrained and then as every run of a task left it.

    Parameters
    ----------
    profile : Profile
    runs : iterable of Run
        Of `run_grid`; those of other models and tasks are passed over.
    task : str

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
    chosen = [run for run in runs if (run.config.model, run.config.task) == (model, task)]
    seeds = sorted({run.config.seed for run in chosen})
    keys = {"model": model, "task": task}
    yield {**keys, "arm": PRETRAINED}, seeds, load_encoder(model, device=device)
    for run in chosen:
        encoder = run_encoder(run, device=device)
        yield {**keys, "arm": run.config.arm}, [run.config.seed], encoder


def text_states(encoder: Encoder, rows: Dataset, *, max_length: int) -> dict[str, Tensor]:
    """Vectors of texts at every layer, by [CLS] and by mean, from a single pass.

    Parameters
    ----------
    encoder : Encoder
    rows : Dataset
        Of `load_task`, n of them.
    max_length : int
        Tokens kept of a text.

    Returns
    -------
    dict of Tensor
        ``cls`` and ``mean``, (layers, n, d) each, in the order of the rows.
    """
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
    """Every measure of isotropy that is taken before and after fine-tuning, of one cloud.

    Parameters
    ----------
    x : Tensor, shape (n, d)

    Returns
    -------
    dict
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
