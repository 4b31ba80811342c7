"""Rajaee & Pilehvar's own yardstick where GLUE is at hand: treated vectors on STS-B."""

from __future__ import annotations

import numpy as np
import pandas as pd
from datasets import Dataset
from scipy.stats import spearmanr
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from shrink_utils.geometry import partition_isotropy
from shrink_utils.models import Encoder, hidden_states
from shrink_utils.study.finetuned.geometry import study_encoders
from shrink_utils.study.finetuned.treated import treatments
from shrink_utils.study.profiles import Profile
from shrink_utils.study.runs.ablation import run_grid
from shrink_utils.study.runs.measured import measured
from shrink_utils.text import load_task, task_spec
from shrink_utils.text.glue import GLUE, glue_dir

__all__ = ["has_stsb", "measure_stsb_after_finetuning", "treated_spearman"]

PAIRS = 400
MAX_LENGTH = 64


def has_stsb(profile: Profile) -> bool:
    """Whether STS-B is at hand: in a folder of GLUE, or from where the profile takes its tasks."""
    root = glue_dir()
    if root is not None:
        return (root / GLUE["stsb"].folder).is_dir()
    return not all(task_spec(task).offline for task in profile.tasks)


@measured("stsb_after_finetuning")
def measure_stsb_after_finetuning(profile: Profile) -> pd.DataFrame:
    """Spearman correlation of cosine similarity with people's scores, after every treatment.

    Parameters
    ----------
    profile : Profile
        Its first model and first task, every arm, its first seed.

    Returns
    -------
    DataFrame
        Columns model, task (what the encoder was fine-tuned on), arm, seed, n (pairs), and those of
        `treated_spearman`.

    Raises
    ------
    FileNotFoundError, ConnectionError
        STS-B cannot be had; see `has_stsb`.
    """
    pairs = load_task("stsb", max_eval=PAIRS)["validation"]
    first = [run for run in run_grid(profile) if run.config.seed == profile.runs()[0].seed]
    frames = [
        _spearman(encoder, pairs).assign(**keys, seed=seeds[0], n=len(pairs))
        for keys, seeds, encoder in study_encoders(profile, first, task=profile.tasks[0])
    ]
    return pd.concat(frames, ignore_index=True)


def _spearman(encoder: Encoder, pairs: Dataset) -> pd.DataFrame:
    texts = [*pairs["text"], *pairs["text_pair"]]
    options = {"layers": [-1], "pooling": "mean", "max_length": MAX_LENGTH}
    states = hidden_states(encoder, texts, **options)[0].double()  # (2 n_pairs, d)
    with threadpool_limits(1):  # small matrices: threads would wait for each other
        return treated_spearman(states, np.asarray(pairs["label"]))


def treated_spearman(x: Tensor, scores: np.ndarray) -> pd.DataFrame:
    """How well the cosines of treated vectors rank pairs, and how isotropic the vectors are.

    Parameters
    ----------
    x : Tensor, shape (2n, d)
        Vectors of the first texts of n pairs, then of the second ones.
    scores : ndarray, shape (n,)
        How alike people find the two.

    Returns
    -------
    DataFrame
        Columns treatment, removed, skipped as of `treatments`, fitted on the 2n vectors (they never
        see a score); spearman; isotropy, the log I(W) of the treated vectors at unit length.

    References
    ----------
    Rajaee & Pilehvar 2021, *How Does Fine-tuning Affect the Geometry of Embedding Space*.
    """
    rows = []
    for (name, removed, skipped), treat in treatments(x).items():
        treated = treat(x)
        cosines = cosine_similarity(*treated.chunk(2))  # (n,)
        rows.append(
            {
                "treatment": name,
                "removed": removed,
                "skipped": skipped,
                "spearman": float(spearmanr(cosines.numpy(), scores).statistic),
                "isotropy": partition_isotropy(normalize(treated, dim=1)),
            }
        )
    return pd.DataFrame(rows)
