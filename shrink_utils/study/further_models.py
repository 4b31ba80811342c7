"""What chapters 03, 08 and 12 measure of a profile's first model, measured of all others.

The functions of 12 stand in the chapter, which keeps their tables. Chapter 02's is in
`contextuality/models.py`: it needs no fine-tuning, so any model can have it.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from shrink_utils.study.after_finetuning import (
    measure_after_finetuning,
    measure_words_after_finetuning,
)
from shrink_utils.study.profiles import Profile
from shrink_utils.study.results import Measure, kept, measured
from shrink_utils.study.similarity import measure_similarity

LANGUAGE = [f"language_{part}" for part in ("attention", "dimension", "divergence", "lifetimes")]
# By the name of the table that each is kept in.
OF_FIRST_MODEL = {
    "similarity": measure_similarity,
    "after_finetuning": measure_after_finetuning,
    "words_after_finetuning": measure_words_after_finetuning,
}


def of_further_models(name: str, measure: Measure) -> Measure:
    """The same table of every model but the first, with the column ``model``."""

    @measured(name, of=measure.__wrapped__)
    def measure_further(profile: Profile) -> pd.DataFrame:
        alone = [replace(profile, models=(model,), partner="") for model in profile.models[1:]]
        # Not kept by itself, where it would take the place of the first model's table.
        tables = [measure.__wrapped__(one).assign(model=one.models[0]) for one in alone]
        return pd.concat(tables, ignore_index=True)

    return measure_further


OF_FURTHER_MODELS = {
    f"models_{name}": of_further_models(f"models_{name}", measure)
    for name, measure in OF_FIRST_MODEL.items()
}
# What chapter 12 keeps is only read here.
OF_FIRST_MODEL |= {name: kept(name) for name in LANGUAGE}
OF_FURTHER_MODELS |= {f"models_{n}": kept(f"models_{n}") for n in LANGUAGE}
