"""All claims of the study in one table: what notebook 11 shows and `make reproduce` ends with."""

from __future__ import annotations

import pandas as pd

from shrink_utils.study.ablation import run_grid, run_sweep
from shrink_utils.study.after_finetuning import measure_after_finetuning
from shrink_utils.study.brown import brown_claims
from shrink_utils.study.contextuality import measure_contextuality
from shrink_utils.study.corpus import measure_corpus
from shrink_utils.study.dynamics import measure_dynamics
from shrink_utils.study.dynamics_claims import dynamics_claims
from shrink_utils.study.dynamics_stability import measure_stability
from shrink_utils.study.family import measure_family
from shrink_utils.study.frontier import frontier_table
from shrink_utils.study.generalization import measure_generalization
from shrink_utils.study.generalization_claims import generalization_claims
from shrink_utils.study.profiles import Profile
from shrink_utils.study.rajaee import rajaee_claims
from shrink_utils.study.similarity import measure_similarity
from shrink_utils.study.stitched import measure_stitched
from shrink_utils.study.stitching_claims import stitching_claims
from shrink_utils.study.stl import stl_claims
from shrink_utils.study.tables import summarize
from shrink_utils.study.topology_claims import topology_claims
from shrink_utils.study.two_encoders import measure_two_encoders
from shrink_utils.study.two_encoders_claims import two_encoders_claims
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
    grid, swept = run_grid(profile), run_sweep(profile)
    return pd.concat(
        [
            stl_claims(summarize(grid)),
            vazquez_claims(measure_contextuality(profile), measure_corpus(profile)),
            two_encoders_claims(measure_two_encoders(profile)),
            dynamics_claims(measure_dynamics(profile), measure_stability(profile)),
            brown_claims(measure_similarity(profile)),
            stitching_claims(measure_stitched(profile), measure_family(profile)),
            generalization_claims(measure_generalization(profile)),
            rajaee_claims(
                measure_after_finetuning(profile), measure_words_after_finetuning(profile)
            ),
            topology_claims(frontier_table(summarize([*grid, *swept])), weight=profile.weight),
        ],
        ignore_index=True,
    )
