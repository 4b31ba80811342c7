"""Language models of two activations, compared layer by layer without a stitch."""

from __future__ import annotations

from itertools import combinations

import pandas as pd
import torch

from shrink_utils.geometry import similarity_grid
from shrink_utils.models import hidden_states
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import measured
from shrink_utils.study.scratch import scratch_encoder
from shrink_utils.study.stitching.experiment import stitching_runs
from shrink_utils.text import load_pairs


@measured("activations")
def measure_activations(profile: Profile) -> pd.DataFrame:
    """Debiased CKA between all layers of the models that `measure_stitched` stitches.

    Rows of the comparison are held-out sentences, each the mean of its tokens.

    Returns
    -------
    DataFrame
        One value per row: ``relation`` ("seed" within an activation, "activation" across),
        ``front``, ``front_number``, ``back``, ``back_number``, ``front_layer``, ``back_layer`` and
        ``cka``. Each pair of models stands once, the GeLU model first where they differ.

    References
    ----------
    Brown et al. 2023, section 3 and figures 4 and 5.
    """
    torch.set_num_threads(profile.threads)
    source = load_pairs(profile.pretraining.source, n=profile.pretraining.sentences)
    texts = source["held_out"]["text"][: profile.family.sentences]
    length = profile.pretraining.max_length
    states = {
        name: list(hidden_states(scratch_encoder(run), texts, pooling="mean", max_length=length))
        for name, run in sorted(stitching_runs(profile).items())
    }
    rows = []
    for front, back in combinations(states, 2):
        relation = "seed" if front[0] == back[0] else "activation"
        grid = similarity_grid("cka_debiased", states[front], states[back]).tolist()
        cells = [(i, j, value) for i, row in enumerate(grid) for j, value in enumerate(row)]
        rows += [(relation, *front, *back, *cell) for cell in cells]
    columns = "relation front front_number back back_number front_layer back_layer cka"
    return pd.DataFrame(rows, columns=columns.split())
