"""The contextuality of a profile's further models: do they agree with the first?"""

from __future__ import annotations

import pandas as pd

from shrink_utils.models import load_encoder
from shrink_utils.study.contextuality.corpus import corpus_of
from shrink_utils.study.contextuality.experiment import COLUMNS, contextuality_of
from shrink_utils.study.measured import measured
from shrink_utils.study.profiles import Profile

OF_CORPUS = ("avg_sim", "self_sim")  # quantities that claims read off the whole corpus


@measured("models_contextuality")
def measure_models(profile: Profile) -> pd.DataFrame:
    """`measure_contextuality`, and two quantities of `measure_corpus`, of all models but the first.

    Returns
    -------
    DataFrame
        The columns of both, after ``model`` and ``measured_on``: "sample" or "corpus". Without
        further models it is empty.
    """
    tables = [pd.DataFrame(columns=["model", "measured_on", *COLUMNS])]
    for name in (*profile.models[1:], *profile.diagnosed):
        encoder = load_encoder(name, device="auto")
        corpus = corpus_of(encoder, profile)
        parts = {
            "sample": contextuality_of(encoder, profile),
            "corpus": corpus[corpus.quantity.isin(OF_CORPUS)],
        }
        tables += [part.assign(model=name, measured_on=on) for on, part in parts.items()]
    return pd.concat(tables[1:] or tables)[tables[0].columns]
