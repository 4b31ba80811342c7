"""What chapters 03, 08 and 12 measure of a profile's first model, measured of all others.

Chapter 02's is in `contextuality/models.py`: it needs no fine-tuning, so any model can have it.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from shrink_utils.study.after_finetuning import (
    measure_after_finetuning,
    measure_words_after_finetuning,
)
from shrink_utils.study.language.experiment import (
    measure_attention,
    measure_dimension,
    measure_divergence,
    measure_lifetimes,
)
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import Measure, measured
from shrink_utils.study.similarity import measure_similarity

# By the name of the table that each is kept in.
OF_FIRST_MODEL = {
    "similarity": measure_similarity,
    "after_finetuning": measure_after_finetuning,
    "words_after_finetuning": measure_words_after_finetuning,
    "language_attention": measure_attention,
    "language_dimension": measure_dimension,
    "language_divergence": measure_divergence,
    "language_lifetimes": measure_lifetimes,
}


def _of_further_models(name: str, measure: Measure) -> Measure:
    """The same table of every model but the first, with the column ``model``."""

    @measured(name)
    def measure_further(profile: Profile) -> pd.DataFrame:
        alone = [replace(profile, models=(model,), partner="") for model in profile.models[1:]]
        # Not kept by itself, where it would take the place of the first model's table.
        tables = [measure.__wrapped__(one).assign(model=one.models[0]) for one in alone]
        return pd.concat(tables, ignore_index=True)

    return measure_further


OF_FURTHER_MODELS = {
    f"models_{name}": _of_further_models(f"models_{name}", measure)
    for name, measure in OF_FIRST_MODEL.items()
}
