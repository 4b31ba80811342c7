"""Do the models of a study agree? One verdict per claim and model, and a line that sums them up."""

import re

import pandas as pd

from shrink_utils.study.profiles import Profile

# Claims on contextuality name the last layer by its number, which is each model's own.
LAST_LAYER = re.compile(r"^(v:[a-z-]+)-(?!0$|1$)\d+$")


def verdicts_by_model(claims: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """The claims that several models were tested on: a row per claim, a verdict per model."""
    models = [*profile.models, *profile.diagnosed]
    parts = claims.claim.str.split(":")
    of = [next((m for m in models if m in row), models[0]) for row in parts]
    names = [":".join(part for part in row if part not in models) for row in parts]
    table = pd.DataFrame(
        {"claim": [LAST_LAYER.sub(r"\1-last", n) for n in names], "model": of}, index=claims.index
    ).assign(verdict=claims.verdict)
    found = table.pivot(index="claim", columns="model", values="verdict")
    return found[found.notna().sum(axis=1) > 1].reindex(columns=models)


def agreement(claims: pd.DataFrame, profile: Profile) -> str:
    """In a few lines, whether the models of a study agree; nothing where there is one model."""
    table = verdicts_by_model(claims, profile)
    if table.empty:
        return ""
    differ = table[table.nunique(axis=1) > 1]
    lines = [
        f"Of {len(table)} claims tested on several models, {len(table) - len(differ)} have the "
        "same verdict on all of them."
    ]
    for claim, verdicts in differ.iterrows():
        said = ", ".join(f"{model}: {found}" for model, found in verdicts.dropna().items())
        lines.append(f"  {claim}: {said}")
    return "\n".join(lines) + "\n"
