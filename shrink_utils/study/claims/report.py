"""What `make reproduce` ends with: the claims and the comparison, as text."""

from __future__ import annotations

import shutil
import sys
import textwrap

import pandas as pd

from shrink_utils.study.claims.reference import changed_verdicts, compare_with_reference
from shrink_utils.study.profiles import Profile
from shrink_utils.study.tables import read_table

__all__ = ["PAPERS", "claims_as_text", "of_paper", "print_claims", "print_comparison"]

# By the first part of a claim's name, in the order of the table.
PAPERS = {
    "stl": "Shrink the longest (Kudriashov et al. 2025)",
    "v": "Contextuality and training (Vázquez et al. 2021, after Ethayarajh 2019; 2022)",
    "b": "Similarity, stitching, generalization (Brown et al. 2023, and whom the rows name)",
    "rp": "Geometry after fine-tuning (Rajaee & Pilehvar 2021)",
    "topology": "Is topology what helps? (claims of this study)",
}


def claims_as_text(claims: pd.DataFrame) -> pd.DataFrame:
    """The claims table as people read it: signed numbers, the interval in one column.

    The noise floor has a column where any of the claims has one.
    """
    table = pd.DataFrame(
        {
            "task": claims.task.fillna(""),  # an empty cell of a CSV file
            "arm": claims.arm.fillna(""),
            "claim": claims.statement,
            "source": claims.source,
            "paper": ["" if pd.isna(p) else f"{p:+.3f}" for p in claims.published],
            "ours": [f"{e:+.3f}" for e in claims.estimate],
            "95 % interval": [
                f"[{low:+.3f}, {high:+.3f}]"
                for low, high in zip(claims.low, claims.high, strict=True)
            ],
            "over": claims.n.astype(str) + " " + claims.unit,
            "noise floor": ["" if pd.isna(f) else f"{f:.3f}" for f in claims.floor],
            "verdict": claims.verdict,
        }
    )
    return table if claims.floor.notna().any() else table.drop(columns="noise floor")


def of_paper(claims: pd.DataFrame, paper: str) -> pd.DataFrame:
    """The claims of one of `PAPERS`, which begin with its short name."""
    return claims[claims.claim.str.startswith(f"{paper}:")]


def print_claims(profile: Profile) -> None:
    """Print the claims table of a finished study; on a terminal (80 columns) no wider than it."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    claims = read_table("claims", profile=profile)
    print()
    _say(f"Claims, profile {profile.name} ({profile.description})", width)
    _say("Estimates are mean paired differences over n units, with a 95 % t interval.", width)
    for paper, title in PAPERS.items():
        rows = of_paper(claims, paper)
        if len(rows):
            print()
            _say(f"{title}: {_counts(rows)}", width)
            print(f"\n{_fitted(claims_as_text(rows), width)}")
    print()
    _say(f"In all: {_counts(claims)}", width)


def _say(line: str, width: int | None) -> None:
    print(line if width is None else textwrap.fill(line, width))


def _fitted(table: pd.DataFrame, width: int | None) -> str:
    """The table in lines of at most `width` characters: the words of a claim above its numbers."""
    wide = _lines(table)
    if width is None or max(map(len, wide)) <= width:
        return "\n".join(wide)
    lines = []
    for (claim, source, over), rows in table.groupby(["claim", "source", "over"], sort=False):
        numbers = rows.drop(columns=["claim", "source", "over"])
        lines += ["", *textwrap.wrap(f"{claim} ({source}; over {over})", width)]
        lines += [f"  {line}" for line in _lines(numbers.loc[:, (numbers != "").any()])]
    return "\n".join(lines[1:])


def _lines(table: pd.DataFrame) -> list[str]:
    text = table.to_string(index=False, justify="left")
    return [line.rstrip() for line in text.splitlines()]


def _counts(claims: pd.DataFrame) -> str:
    return ", ".join(f"{n} {verdict}" for verdict, n in claims.verdict.value_counts().items())


def print_comparison(profile: Profile) -> bool:
    """Print how the tables compare with the reference; False when a number is out of tolerance."""
    compared = compare_with_reference(profile)
    if compared is None:
        print(f"No reference tables are committed for profile {profile.name} with this seed.")
        return True
    outside = compared[~compared.within]
    print(
        f"Reference tables: {len(compared) - len(outside)} of {len(compared)} numbers within "
        "tolerance (data/reference/tolerances.toml)."
    )
    if len(outside):
        print(outside.to_string(index=False))
    changed = changed_verdicts(profile)
    if len(changed):
        print("Verdicts that differ from the reference (an interval's bound is near zero):")
        print(changed.to_string(index=False))
    return outside.empty
