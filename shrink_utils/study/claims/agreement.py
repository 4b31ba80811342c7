"""Do the models of a study agree? One verdict per claim and model, and a line per model."""

import re

import pandas as pd

from shrink_utils.study.claims.claim import OWN_TEST
from shrink_utils.study.profiles import Profile

# Claims on contextuality name the last layer by its number, which is each model's own.
LAST_LAYER = re.compile(r"^(v:[a-z-]+)-(?!0$|1$)\d+$")
# The word depends on the kind of test, which can differ between two models that decide alike.
SHARED = {own: shared for shared, own in OWN_TEST.items()}


def verdicts_by_model(claims: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """The claims that several models were tested on: a row per claim, a verdict per model.

    Verdicts are adjusted for the length of the table, and *agrees* or *disagrees* even where the
    test is a paper's own. Described rows test nothing and are left out.
    """
    found = _tested(claims, profile).pivot(index="name", columns="model", values="adjusted")
    several = found[found.notna().sum(axis=1) > 1].rename_axis("claim")
    return several.reindex(columns=[*profile.models, *profile.diagnosed])


def _tested(claims: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """The rows that test something, with their model, and their name without it."""
    rows = claims[claims.adjusted != "described"]
    models = [*profile.models, *profile.diagnosed]
    parts = rows.claim.str.split(":")
    names = [":".join(part for part in row if part not in models) for row in parts]
    return rows.assign(
        name=[LAST_LAYER.sub(r"\1-last", name) for name in names],
        model=[next((m for m in models if m in row), models[0]) for row in parts],
        adjusted=rows.adjusted.replace(SHARED),
    )


def agreement(claims: pd.DataFrame, profile: Profile) -> str:
    """A line per further model: how often it and the first one decide alike, differently, or not.

    Two rows that decide nothing are no agreement. Nothing is said where there is one model.
    """
    table = verdicts_by_model(claims, profile)
    first, *others = table.columns
    return "".join(_beside(table[[first, other]].dropna()) for other in others)


def _beside(verdicts: pd.DataFrame) -> str:
    """The line of the second model, from the claims that both were tested on."""
    if verdicts.empty:
        return ""
    first, other = verdicts.columns
    decided = verdicts[(verdicts != "inconclusive").all(axis=1)]
    alike = int((decided[first] == decided[other]).sum())
    return (
        f"{other} beside {first}: {alike} rows decided alike, {len(decided) - alike} decided "
        f"differently, {len(verdicts) - len(decided)} left undecided by at least one of the two "
        "(adjusted verdicts)\n"
    )
