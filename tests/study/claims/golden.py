"""The claims of a whole study on planted tables: ``python -m tests.study.claims.golden``.

It writes ``golden.csv`` beside it, which `make tables` does as well.
"""

from pathlib import Path

import pandas as pd

from shrink_utils.study.claims.brown import _brown_claims, generalization_claims, stitching_claims
from shrink_utils.study.claims.claim import _combined_table
from shrink_utils.study.claims.stl import (
    _clouds_claims,
    _rajaee_claims,
    _stl_claims,
    _topology_claims,
)
from shrink_utils.study.claims.vazquez import _models_claims, _vazquez_claims, dynamics_claims
from shrink_utils.study.claims.verdicts import (
    _further_models_claims,
    _language_claims,
    machine_text_claims,
)
from shrink_utils.study.tables import _add_best_epoch
from tests.study.claims import planted

GOLDEN = Path(__file__).with_name("golden.csv")


def every_claim():
    """The table of a whole study, of planted tables."""
    models = [
        planted.contextuality().assign(model="mpnet", measured_on="sample"),
        planted.corpus().assign(model="mpnet", measured_on="corpus"),
    ]
    own = planted.summary("google-bert/bert-base-uncased", "mrpc")
    graded = pd.concat([planted.summary(), own], ignore_index=True)
    further = {"similarity": planted.similarity(), **planted.language()}
    further |= {"after_finetuning": planted.after_finetuning()}
    further |= {"words_after_finetuning": planted.words_after_finetuning()}
    return _combined_table(
        [
            _stl_claims(_add_best_epoch(planted.with_rows(graded), planted.evaluations(graded))),
            _clouds_claims(planted.clouds()),
            _vazquez_claims(planted.contextuality(), planted.corpus()),
            *_models_claims(pd.concat(models)),
            dynamics_claims(planted.objectives()),
            _brown_claims(planted.similarity()),
            stitching_claims(planted.stitches()),
            generalization_claims(planted.generalization()),
            _rajaee_claims(planted.after_finetuning(), planted.words_after_finetuning()),
            _language_claims(planted.language()),
            machine_text_claims(planted.machine_text()),
            *_further_models_claims(
                {f"models_{k}": t.assign(model="mpnet") for k, t in further.items()}
            ),
            _topology_claims(planted.frontier(planted.THREE, scores=planted.WEAK)),
        ]
    )


if __name__ == "__main__":
    every_claim().to_csv(GOLDEN, index=False, float_format="%.6f")
