"""A claim, the verdict on it, and the table of claims."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, fields
from fnmatch import fnmatchcase
from functools import cache, wraps
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control

from shrink_utils.paths import data_dir
from shrink_utils.study.statistics import Interval, mean_of, pseudo_values

Direction = Literal["less", "greater", "no_worse", "described"]
Kind = Literal["paper's test", "scaled test", "analogue", "our control"]
Verdict = Literal[
    "replicated", "agrees", "inconclusive", "disagrees", "not replicated", "described"
]
Unit = Literal["seeds", "models", "words", "sentences"]

OWN_TEST: dict[str, Verdict] = {"agrees": "replicated", "disagrees": "not replicated"}
CONFIDENCE = 0.95  # of an interval; with several tries, of all of them together
FALSE_DISCOVERIES = 0.05  # share of the adjusted verdicts that may be accidents
MARGIN = 0.02  # of every "no_worse": a loss, of a metric or a correlation, that counts as none
COLUMNS = (
    "claim source kind statement task arm published estimate low high n unit floor p verdict "
    "adjusted departures"
).split()


@dataclass(frozen=True)
class Claim:
    """A published claim about the mean of a difference, and the differences that were measured."""

    id: str  # unique in the table
    statement: str
    direction: Direction  # the claimed sign; "no_worse": more than −MARGIN; "described": no claim
    differences: ArrayLike  # (units,), or (units, rows) of correctness
    _: KW_ONLY
    source: str  # where it is claimed, such as "STL §4, Table 3"
    kind: Kind = "scaled test"  # how near the test is to the paper's own
    task: str = ""
    arm: str = ""
    published: float = math.nan  # the paper's own difference
    unit: Unit = "seeds"  # the interval speaks of more of these, and of nothing else
    floor: float = math.nan  # how much models differ that differ in their seed alone
    tries: int = 1  # the differences are the most favourable of so many: the interval allows for it
    departures: str = ""  # from the paper's protocol, which no profile removes

    @property
    def margin(self) -> float:
        """The loss that still counts as none."""
        return MARGIN if self.direction == "no_worse" else 0.0


FIELDS = {field.name for field in fields(Claim)}


def claim(name: str, differences: ArrayLike, **given: object) -> Claim:
    """A claim of the list ``data/published/claims.csv``, about differences that were measured.

    Parameters
    ----------
    name : str
        The first two parts of its name there, such as ``"stl:metric-kept"``.
    differences : array_like
        As of `Claim`.
    **given
        Words for the places in braces of its texts (``margin`` is known), and fields of `Claim`
        that the list does not have: task, arm, published, floor, tries.

    Raises
    ------
    KeyError
        The list has no such claim, or a place of it was given no word.
    """
    words = {"margin": MARGIN} | given
    row = _claims_by_name(data_dir() / "published" / "claims.csv")[name]
    texts = {column: text.format(**words) for column, text in row.items()}
    rest = {field: given[field] for field in FIELDS & given.keys() - texts.keys()}
    return Claim(differences=differences, **texts, **rest)


@cache
def _claims_by_name(path: Path) -> dict[str, dict[str, str]]:
    """Rows of the list of claims by the first two parts of their names."""
    rows = pd.read_csv(path, keep_default_na=False).rename(columns={"claim": "id"})
    return {":".join(row["id"].split(":")[:2]): row for row in rows.to_dict("records")}


def verdict(
    interval: Interval, direction: Direction, margin: float = 0.0, *, kind: Kind = "scaled test"
) -> Verdict:
    """Read a verdict off a confidence interval of arm − baseline.

    An interval that includes 0 is *inconclusive*, and no evidence that there is no effect: it holds
    differences of both signs. To show an absence takes an interval inside a stated margin, which is
    what "no_worse" asks on one side.

    Parameters
    ----------
    margin : float
        "no_worse" only: the loss to tolerate, in units of the difference.
    kind : str
        Only a paper's own test can replicate it; every other kind agrees or disagrees with it.

    Returns
    -------
    str
        "agrees" when the whole interval agrees with the claim, "disagrees" when the whole of it
        contradicts the claim ("replicated" and "not replicated" of the paper's test), else
        "inconclusive". The direction "described" claims nothing: "described".

    Raises
    ------
    ValueError
        An unknown direction, or a margin that is negative, not finite or has no meaning.
    """
    if direction not in get_args(Direction):
        raise ValueError(f"direction must be one of {get_args(Direction)}, got {direction!r}")
    if not 0 <= margin < math.inf:
        raise ValueError(f"margin must be a finite number, not negative, got {margin}")
    if margin and direction != "no_worse":
        raise ValueError(f'margin {margin} has no meaning for direction "{direction}"')
    if direction == "described":
        return "described"
    if direction == "less":
        agrees, contradicts = interval.high < 0, interval.low > 0
    else:  # "greater" is "no_worse" without tolerance
        agrees, contradicts = interval.low > -margin, interval.high < -margin
    found = "agrees" if agrees else "disagrees" if contradicts else "inconclusive"
    return OWN_TEST.get(found, found) if kind == "paper's test" else found


def evaluate(claims: Iterable[Claim]) -> pd.DataFrame:
    """Table of claims, one per row: each with its estimate, interval and verdict.

    Returns
    -------
    pandas.DataFrame
        The columns of `COLUMNS`. `published` is NaN where the paper gives no number, `floor` where
        none was measured, `p` where nothing is decided; `adjusted` is empty: see `adjust`.

    Raises
    ------
    ValueError
        Differences that `mean_of` refuses; the message names the claim.
    """
    return pd.DataFrame([_row(claim) for claim in claims], columns=COLUMNS)


def _row(claim: Claim) -> dict:
    values = np.asarray(claim.differences)
    values = np.stack(values) if values.dtype == object else values  # an array of rows per seed
    try:
        mean = mean_of(values)
    except ValueError as error:
        raise ValueError(f"claim {claim.id!r}: {error}") from error
    interval = mean.interval(1 - (1 - CONFIDENCE) / claim.tries)
    p = mean.p(-claim.margin) if claim.direction != "described" else math.nan
    return {
        **vars(claim),
        **interval._asdict(),
        "claim": claim.id,
        "published": round(float(claim.published), 6),  # papers print three: six are exact
        "p": min(1.0, claim.tries * p) if p == p else p,  # two-sided, after Bonferroni
        "verdict": verdict(interval, claim.direction, claim.margin, kind=claim.kind),
        "adjusted": "",
    }


def evaluated(claims: Callable[..., Iterator[Claim]]) -> Callable[..., pd.DataFrame]:
    """Make a function that yields claims one that returns their table."""
    return wraps(claims)(lambda *args, **kwargs: evaluate(claims(*args, **kwargs)))


def sentences() -> pd.DataFrame:
    """What each paper claims, and which rows answer it.

    Columns ``paper``, ``section``, ``sentence`` (in our words), ``quote`` (the paper's own words,
    empty where they were not at hand), ``rows`` (patterns of claims, between spaces) and ``why``:
    why no row answers, or none decides.
    """
    return pd.read_csv(data_dir() / "published" / "sentences.csv", keep_default_na=False)


def families(claims: pd.DataFrame) -> pd.Series:
    """The sentence that each claim answers, by its place in `sentences`; without one, its name."""
    patterns = [(i, row) for i, rows in enumerate(sentences()["rows"]) for row in rows.split()]

    def family(name: str) -> int | str:
        return next((i for i, row in patterns if fnmatchcase(name, row)), name)

    return claims.claim.map(family)


def adjust(claims: pd.DataFrame) -> pd.DataFrame:
    """Fill in `adjusted`: the verdicts that stay when a row's whole family is accounted for.

    Among rows with a p that answer one sentence (`families`) the share of false verdicts is held at
    5 % (Benjamini & Hochberg 1995); a verdict that does not stay, or has no p, is inconclusive.
    Over the whole table, rows that are nearly certain would leave hardly any correction.
    """
    tested = claims[claims.p.notna()]
    adjusted = tested.p.groupby(families(tested)).transform(false_discovery_control)
    stays = claims.index.isin(adjusted[adjusted <= FALSE_DISCOVERIES].index)
    kept = stays | (claims.verdict == "described")
    return claims.assign(adjusted=claims.verdict.where(kept, "inconclusive"))


def combined_table(chapters: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The claims of all chapters as one table, with adjusted verdicts."""
    # A chapter without rows would turn the numbers of the others into objects.
    return adjust(pd.concat([table for table in chapters if len(table)], ignore_index=True))


def per_seed(rows: pd.DataFrame, column: str, unit: str = "seed") -> pd.Series:
    """A column by seed, item or text; differences of two such are paired.

    Raises
    ------
    ValueError
        Two rows for one unit.
    """
    values = rows.set_index(unit)[column].sort_index()
    if not values.index.is_unique:
        raise ValueError(f"{column}: more than one row per {unit}")
    return values


def most_favourable(differences: Iterable[pd.Series], direction: Direction) -> dict:
    """Of several sets of differences, the one that speaks most clearly for a claim.

    For claims that hold if one of them does: the keywords ``differences`` and ``tries``.
    """
    found = list(differences)
    sign = -1 if direction == "less" else 1
    best = max(found, key=lambda x: sign * x.mean() / max(x.std(ddof=0), 1e-300))
    return {"differences": best, "tries": len(found)}


def least_favourable(differences: Iterable[pd.Series], direction: Direction) -> dict:
    """Of several sets of differences, the one that speaks least for a claim about all of them.

    If this one agrees with the claim, all do. That it contradicts the claim is one chance of
    several: the keywords ``differences`` and ``tries``, as of `most_favourable`.
    """
    found = [pd.Series(values) for values in differences]
    sign, margin = (-1 if direction == "less" else 1), (MARGIN if direction == "no_worse" else 0.0)
    worst = min(found, key=lambda x: (sign * x.mean() + margin) / max(x.std(ddof=0), 1e-300))
    return {"differences": worst, "tries": len(found)}


def jackknife_over_models(
    pairs: pd.DataFrame, unit: str, statistic: Callable[[pd.DataFrame], float]
) -> list[float]:
    """One value per model, for what is computed from pairs of models: see `pseudo_values`."""
    front, back = pairs[f"front_{unit}"], pairs[f"back_{unit}"]

    def of_some(some: Collection[int]) -> float:
        return statistic(pairs[front.isin(some) & back.isin(some)])

    return pseudo_values(of_some, sorted(back.unique()))


def with_model_name(claims: pd.DataFrame, model: str) -> pd.DataFrame:
    """With a model behind every claim and statement, where it is not the profile's first."""
    return claims.assign(
        claim=claims.claim + f":{model}", statement=claims.statement + f" ({model})"
    )
