"""A claim and the verdict on it, which are a row, and the table of claims."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import cache, wraps
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control

from shrink_utils.sources import data_dir
from shrink_utils.study.statistics import Interval, _mean_of, pseudo_values

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


def claim(
    name: str,
    differences: ArrayLike,
    *,
    task: str = "",
    arm: str = "",
    published: float = math.nan,
    floor: float = math.nan,
    tries: int = 1,
    **words: object,
) -> dict[str, object]:
    """A row of the table of claims: one of the list ``data/published/claims.csv``, and its verdict.

    Parameters
    ----------
    name : str
        The first two parts of its name there, such as ``"stl:metric-kept"``.
    differences, tries
        As of `_judged`.
    task, arm : str
        What the differences were measured on, where it is one task or arm.
    published : float
        The paper's own difference; NaN where it gives none.
    floor : float
        How much models differ that differ in their seed alone; NaN where nobody has measured it.
    **words
        For the places in braces of its texts; ``margin``, task and arm are known.

    Raises
    ------
    KeyError
        The list has no such claim, or a place of it was given no word.
    ValueError
        Differences that `_mean_of` refuses; the message names the claim.
    """
    listed = _claims_by_name(data_dir() / "published" / "claims.csv")[name]
    known = {"margin": MARGIN, "task": task, "arm": arm}
    row = {column: text.format(**known, **words) for column, text in listed.items()}
    try:
        found = _judged(differences, row["direction"], kind=row["kind"], tries=tries)
    except ValueError as error:
        raise ValueError(f"claim {row['claim']!r}: {error}") from error
    row |= {"task": task, "arm": arm, "floor": floor}
    row["published"] = round(float(published), 6)  # papers print three: six are exact
    return row | found


@cache
def _claims_by_name(path: Path) -> dict[str, dict[str, str]]:
    """Rows of the list of claims by the first two parts of their names."""
    rows = pd.read_csv(path, keep_default_na=False).to_dict("records")
    return {":".join(row["claim"].split(":")[:2]): row for row in rows}


def _judged(
    differences: ArrayLike, direction: Direction, *, kind: Kind = "scaled test", tries: int = 1
) -> dict[str, object]:
    """What differences say of a claim about their mean.

    Parameters
    ----------
    differences : array_like, shape (units,), or (units, rows) of correctness
        As of `_mean_of`.
    direction : str
        The claimed sign; "no_worse": more than −MARGIN; "described": nothing is claimed.
    kind : str
        How near the test is to the paper's own.
    tries : int
        The differences are the most favourable of so many: interval and p allow for it.

    Returns
    -------
    dict
        Columns estimate, low, high, n, p (two-sided, of the bound that decides; NaN where nothing
        is decided), verdict, and adjusted, which `adjust` fills in.
    """
    values = np.asarray(differences)
    values = np.stack(values) if values.dtype == object else values  # an array of rows per seed
    mean = _mean_of(values)
    interval = mean.interval(1 - (1 - CONFIDENCE) / tries)
    margin = MARGIN if direction == "no_worse" else 0.0
    p = math.nan if direction == "described" else mean.p(-margin)
    found = interval._asdict()
    found["p"] = p if math.isnan(p) else min(1.0, tries * p)  # after Bonferroni
    found["verdict"] = verdict(interval, direction, margin, kind=kind)
    return found | {"adjusted": ""}


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
        "no_worse" only: the loss to tolerate, 0 or more, in units of the difference.
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
        An unknown direction.
    """
    if direction not in get_args(Direction):
        raise ValueError(f"direction must be one of {get_args(Direction)}, got {direction!r}")
    if direction == "described":
        return "described"
    if direction == "less":
        agrees, contradicts = interval.high < 0, interval.low > 0
    else:  # "greater" is "no_worse" without tolerance
        agrees, contradicts = interval.low > -margin, interval.high < -margin
    found = "agrees" if agrees else "disagrees" if contradicts else "inconclusive"
    return OWN_TEST.get(found, found) if kind == "paper's test" else found


def _as_table(rows: Callable[..., Iterator[dict]]) -> Callable[..., pd.DataFrame]:
    """Make a function that yields rows of `claim` one that returns their table, of `COLUMNS`."""

    @wraps(rows)
    def table(*args, **kwargs) -> pd.DataFrame:
        return pd.DataFrame(rows(*args, **kwargs), columns=COLUMNS)

    return table


def _sentences() -> pd.DataFrame:
    """What each paper claims, and which rows answer it.

    Columns ``paper``, ``section``, ``sentence`` (in our words), ``quote`` (the paper's own words,
    empty where they were not at hand), ``rows`` (patterns of claims, between spaces) and ``why``:
    why no row answers, or none decides.
    """
    return pd.read_csv(data_dir() / "published" / "sentences.csv", keep_default_na=False)


def _families(claims: pd.DataFrame) -> pd.Series:
    """The sentence that each claim answers, by its place in `_sentences`; without one, its name."""
    patterns = [(i, row) for i, rows in enumerate(_sentences()["rows"]) for row in rows.split()]

    def family(name: str) -> int | str:
        return next((i for i, row in patterns if fnmatchcase(name, row)), name)

    return claims.claim.map(family)


def adjust(claims: pd.DataFrame) -> pd.DataFrame:
    """Fill in `adjusted`: the verdicts that stay when a row's whole family is accounted for.

    Among rows with a p that answer one sentence (`_families`) the share of false verdicts is held
    at 5 % (Benjamini & Hochberg 1995); a verdict that does not stay, or has no p, is inconclusive.
    Over the whole table, rows that are nearly certain would leave hardly any correction.
    """
    tested = claims[claims.p.notna()]
    adjusted = tested.p.groupby(_families(tested)).transform(false_discovery_control)
    stays = claims.index.isin(adjusted[adjusted <= FALSE_DISCOVERIES].index)
    kept = stays | (claims.verdict == "described")
    return claims.assign(adjusted=claims.verdict.where(kept, "inconclusive"))


def _combined_table(chapters: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The claims of all chapters as one table, with adjusted verdicts."""
    # A chapter without rows would turn the numbers of the others into objects.
    return adjust(pd.concat([table for table in chapters if len(table)], ignore_index=True))


def _per_seed(rows: pd.DataFrame, column: str, unit: str = "seed") -> pd.Series:
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


def _less(rows: pd.DataFrame, others: pd.DataFrame, column: str, unit: str = "seed") -> pd.Series:
    """A column of some rows less that of others, paired by unit."""
    return _per_seed(rows, column, unit) - _per_seed(others, column, unit)


def _most_favourable(
    differences: Iterable[ArrayLike], direction: Direction, *, pick: Callable = max
) -> dict:
    """Of several sets of differences, the one that speaks most clearly for a claim.

    For claims that hold if one of them does: the keywords ``differences`` and ``tries``.
    """
    found = [pd.Series(values) for values in differences]
    sign, margin = -1 if direction == "less" else 1, MARGIN * (direction == "no_worse")
    picked = pick(found, key=lambda x: (sign * x.mean() + margin) / max(x.std(ddof=0), 1e-300))
    return {"differences": picked, "tries": len(found)}


def _least_favourable(differences: Iterable[ArrayLike], direction: Direction) -> dict:
    """Of several sets of differences, the one that speaks least for a claim about all of them.

    If this one agrees with the claim, all do. That it contradicts the claim is one chance of
    several: the keywords of `_most_favourable`.
    """
    return _most_favourable(differences, direction, pick=min)


def _jackknife_over_models(
    pairs: pd.DataFrame, unit: str, statistic: Callable[[pd.DataFrame], float]
) -> list[float]:
    """One value per model, for what is computed from pairs of models: see `pseudo_values`."""
    front, back = pairs[f"front_{unit}"], pairs[f"back_{unit}"]

    def of_some(some: Collection[int]) -> float:
        return statistic(pairs[front.isin(some) & back.isin(some)])

    return pseudo_values(of_some, sorted(back.unique()))


def _with_model_name(claims: pd.DataFrame, model: str) -> pd.DataFrame:
    """With a model behind every claim and statement, where it is not the profile's first."""
    named = {"claim": claims.claim + f":{model}", "statement": claims.statement + f" ({model})"}
    return claims.assign(**named)
