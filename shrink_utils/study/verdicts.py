"""All claims of the study in one table: what notebook 11 shows and `make reproduce` ends with."""

from __future__ import annotations

import pandas as pd

from shrink_utils.study.ablation import run_grid
from shrink_utils.study.after_finetuning import measure_after_finetuning
from shrink_utils.study.brown import brown_claims
from shrink_utils.study.contextuality import measure_contextuality
from shrink_utils.study.corpus import measure_corpus
from shrink_utils.study.profiles import Profile
from shrink_utils.study.rajaee import rajaee_claims
from shrink_utils.study.similarity import measure_similarity
from shrink_utils.study.stl import stl_claims
from shrink_utils.study.tables import summarize
from shrink_utils.study.vazquez import vazquez_claims
from shrink_utils.study.words_after_finetuning import measure_words_after_finetuning

__all__ = ["all_claims"]


def all_claims(profile: Profile) -> pd.DataFrame:
    """Test every claim of every paper; what has been run or measured is loaded.

    Parameters
    ----------
    profile : Profile

    Returns
    -------
    DataFrame
        Of `claims.evaluate`; `report.of_paper` picks those of one paper.
    """
    return pd.concat(
        [
            stl_claims(summarize(run_grid(profile))),
            vazquez_claims(measure_contextuality(profile), measure_corpus(profile)),
            brown_claims(measure_similarity(profile)),
            rajaee_claims(
                measure_after_finetuning(profile), measure_words_after_finetuning(profile)
            ),
        ],
        ignore_index=True,
    )
