"""Two families of tests that were planned with two rules, each under both.

`python data/reference/cohort/rules.py` writes ``rules.csv`` beside it, from the records of the
profiles cohort and glue; a test computes it again.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from shrink_utils.study.claims.claim import MARGIN
from shrink_utils.study.full_length import full_length
from shrink_utils.study.results import atomic_write

DECIDE = runpy.run_path(str(Path(__file__).with_name("decide.py")))
LEVEL = DECIDE["LEVEL"]
PLANNED = {  # docs/preregistration.md
    "cohort": "one-sided, Holm over the twelve",
    "glue": "two-sided, Benjamini & Hochberg over the table of rows",
}


def both_rules(decided: pd.DataFrame, asked: pd.DataFrame) -> pd.DataFrame:
    """The cohort's hypotheses and the planned rows of glue, each family under either rule.

    Parameters
    ----------
    decided : DataFrame
        Of ``decide.py``.
    asked : DataFrame
        Claims, those that were planned alone.

    Returns
    -------
    DataFrame
        Columns family, planned (its own rule), hypothesis, estimate; p after Holm, of one-sided
        tests, and its verdict; p after Benjamini and Hochberg, of two-sided ones, and its verdict.
        Either adjusts for the rows of the family. NaN, and "not tested", without a p.
    """
    less = asked.claim.str.contains(":lowers-")
    towards = np.where(less, asked.estimate < 0, asked.estimate > -MARGIN)
    cells = asked.claim.str.split(":").str[3]
    of_glue = pd.DataFrame(
        {
            "family": "glue",
            "hypothesis": cells + " · " + asked.statement,
            "estimate": asked.estimate,
            "p": np.where(towards, asked.p / 2, 1 - asked.p / 2),
        }
    )
    of_cohort = decided.assign(family="cohort", hypothesis=decided.id + " · " + decided.statement)
    both = pd.concat([of_cohort[list(of_glue)], of_glue], ignore_index=True)
    both.insert(1, "planned", both.family.map(PLANNED))
    by_family = both.groupby("family").p
    both["holm"] = by_family.transform(DECIDE["holm"])
    both["verdict by Holm"] = np.where(both.holm < LEVEL, "supported", "not supported")
    both["bh"] = by_family.transform(_two_sided)
    found = np.where(both.p < 0.5, "supported", "contradicted")
    both["verdict by BH"] = np.where(both.bh < LEVEL, found, "open")
    both.loc[both.p.isna(), ["verdict by Holm", "verdict by BH"]] = "not tested"
    return both.drop(columns="p")


def _two_sided(p: pd.Series) -> pd.Series:
    """Adjusted two-sided p values, of one-sided ones."""
    tested = p.dropna()
    two = 2 * np.minimum(tested, 1 - tested)
    return pd.Series(false_discovery_control(two), tested.index).reindex(p.index)


def rules() -> pd.DataFrame:
    """Of the committed records."""
    asked = full_length("glue").claims
    asked = asked[~asked.kind.str.endswith("exploratory")]
    return both_rules(DECIDE["decide"](DECIDE["read_tables"]()), asked)


if __name__ == "__main__":
    with atomic_write(Path(__file__).with_suffix(".csv")) as part:
        rules().to_csv(part, index=False, float_format="%.6f")
