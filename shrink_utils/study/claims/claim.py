"""A claim, the verdict on it, and how the rows of claims.toml become claims."""

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from shrink_utils.study.intervals import Interval, paired_interval

Direction = Literal["less", "greater", "no_worse"]
Verdict = Literal["replicated", "not replicated", "inconclusive"]
Unit = Literal["seeds", "models", "words", "sentences"]

COLUMNS = "claim source statement task arm published estimate low high n unit floor verdict"
ROWS = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published claim about the mean difference of a quantity between two arms."""

    id: str  # unique in the table
    source: str  # where it is made, such as "STL §4, Table 3"
    statement: str
    direction: Direction  # the claimed sign; "no_worse" where higher is better
    task: str = ""
    arm: str = ""
    margin: float = 0.0  # "no_worse" only: the loss that still counts as none
    published: float | None = None  # the paper's own difference
    unit: Unit = "seeds"  # the interval speaks of more of these, and of nothing else
    floor: float | None = None  # how much models differ that differ in their seed alone

    def __post_init__(self) -> None:
        _check_direction(self.direction, self.margin)
        if self.unit not in get_args(Unit):
            raise ValueError(f"unit must be one of {get_args(Unit)}, got {self.unit!r}")


class Evidence(NamedTuple):
    """What a claim is tested on: one difference per unit, and the numbers to hold it against."""

    differences: ArrayLike
    floor: float | None = None
    published: float | None = None


Quantity = Callable[[pd.DataFrame, dict], Evidence]


def verdict(interval: Interval, direction: Direction, margin: float = 0.0) -> Verdict:
    """Read a verdict off a confidence interval of arm − baseline.

    An interval that includes 0 is *inconclusive*, and no evidence that there is no effect: it holds
    differences of both signs. To show an absence takes an interval inside a stated margin, which is
    what "no_worse" asks on one side.

    Parameters
    ----------
    margin : float
        "no_worse" only: the loss to tolerate, in units of the difference.

    Returns
    -------
    {"replicated", "not replicated", "inconclusive"}
        Replicated when the whole interval agrees with the claim, not replicated when the whole of
        it contradicts the claim.

    Raises
    ------
    ValueError
        An unknown direction, or a margin that is negative, not finite or has no meaning.
    """
    _check_direction(direction, margin)
    if direction == "less":
        agrees, contradicts = interval.high < 0, interval.low > 0
    else:  # "greater" is "no_worse" without tolerance
        agrees, contradicts = interval.low > -margin, interval.high < -margin
    return "replicated" if agrees else "not replicated" if contradicts else "inconclusive"


def _check_direction(direction: str, margin: float) -> None:
    if direction not in get_args(Direction):
        raise ValueError(f"direction must be one of {get_args(Direction)}, got {direction!r}")
    if not 0 <= margin < math.inf:
        raise ValueError(f"margin must be a finite number, not negative, got {margin}")
    if margin and direction != "no_worse":
        raise ValueError(f'margin {margin} has no meaning for direction "{direction}"')


def evaluate(
    claims: Iterable[Claim], differences: Callable[[Claim], ArrayLike], *, confidence: float = 0.95
) -> pd.DataFrame:
    """Table of claims, one per row: each with its estimate, interval and verdict.

    Returns
    -------
    pandas.DataFrame
        The columns of `COLUMNS`. `published` is NaN where the paper gives no number, `floor` where
        none was measured.

    Raises
    ------
    ValueError
        Differences that `paired_interval` refuses; the message names the claim.
    """
    rows = []
    for claim in claims:
        try:
            interval = paired_interval(differences(claim), confidence=confidence)
        except ValueError as error:
            raise ValueError(f"claim {claim.id!r}: {error}") from error
        found = verdict(interval, claim.direction, claim.margin)
        row = {**vars(claim), **interval._asdict(), "claim": claim.id, "verdict": found}
        rows.append({name: math.nan if value is None else value for name, value in row.items()})
    return pd.DataFrame(rows, columns=COLUMNS.split())


def judge(
    chapter: str,
    tables: Mapping[str, pd.DataFrame],
    quantities: Iterable[Quantity] = (),
    **known: object,
) -> pd.DataFrame:
    """Test the claims of a chapter of claims.toml on measured tables.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        By the names that the chapter's rows have for them.
    quantities : iterable of callable
        The functions that the rows name.
    **known
        What else stands in the rows' braces.

    Returns
    -------
    DataFrame
        Of `evaluate`.
    """
    named = {quantity.__name__: quantity for quantity in (paired, *quantities)}
    tested = {}
    for row in rows_of(chapter, tables, known):
        evidence = _evidence(tables, row["difference"], named)
        tested[_claim(row, evidence, tables, named)] = evidence.differences
    return evaluate(tested, tested.__getitem__)


def _claim(row: dict, evidence: Evidence, tables: Mapping, named: Mapping) -> Claim:
    published = evidence.published
    if "published" in row:
        changed = row["difference"] | row["published"]
        published = np.asarray(_evidence(tables, changed, named).differences).item()
    fields = {name: row[name] for name in Claim.__annotations__ if name in row}
    # Papers print three decimals: six are exact.
    rounded = None if published is None else round(float(published), 6)
    return Claim(**fields | {"published": rounded, "floor": evidence.floor})


def _evidence(tables: Mapping, difference: dict, named: Mapping[str, Quantity]) -> Evidence:
    rows = _selected(tables, difference, "rows", "where")
    return named[difference.get("quantity", "paired")](rows, difference)


def _selected(tables: Mapping, difference: dict, *queries: str) -> pd.DataFrame:
    rows = tables[difference["table"]]
    for name in queries:
        rows = rows.query(difference[name], engine="python") if name in difference else rows
    return rows


def paired(rows: pd.DataFrame, difference: dict) -> Evidence:
    """The quantity of a row that names none: a column where `of` holds less where `minus` holds."""
    column, unit = difference["column"], difference["index"]

    def side(query: str) -> pd.Series:
        chosen = rows.query(query, engine="python").set_index(unit)
        if not chosen.index.is_unique:
            raise ValueError(f"{difference['table']}: {query} holds more than one row per {unit}")
        return chosen.eval(column, engine="python").sort_index()

    found, floor = side(difference["of"]), None
    if "minus" in difference:
        found = found - side(difference["minus"])
    if "floor" in difference:
        values = rows.eval(column, engine="python")
        floor = math.sqrt(values.groupby(rows[difference["floor"]]).var().mean())
    return Evidence(found - difference.get("beyond", 0.0), floor)


def rows_of(chapter: str, tables: Mapping[str, pd.DataFrame], known: dict) -> Iterator[dict]:
    """The rows of a chapter, one per claim, every brace filled; `difference` has what filled it."""
    return _expanded(ROWS[chapter], {}, tables, known)


def _expanded(node: dict, inherited: dict, tables: Mapping, known: dict) -> Iterator[dict]:
    keys = {name: value for name, value in node.items() if name not in ("claim", "over", "for")}
    keys = inherited | keys
    keys["difference"] = inherited.get("difference", {}) | node.get("difference", {})
    for entry in product(*(ROWS["over"][name] for name in node.get("over", []))):
        filled = known | {name: value for part in entry for name, value in part.items()}
        for case in _distinct(node.get("for"), keys["difference"], tables, filled):
            for child in node.get("claim", []):
                yield from _expanded(child, keys, tables, case)
            if "claim" not in node:
                yield from _claimed(keys, tables, case)


def _claimed(keys: dict, tables: Mapping, known: dict) -> Iterator[dict]:
    for case in _distinct(keys.get("each"), keys["difference"], tables, known):
        if "only" in keys and pd.DataFrame([case]).query(keys["only"], engine="python").empty:
            continue
        case["margin"] = ROWS["margins"][keys["margin"]] if "margin" in keys else 0.0
        case["name"] = keys["name"].format(**case)
        row = _filled(keys, case) | {"margin": case["margin"]}
        yield case | row | {"difference": case | row["difference"]}


def _distinct(columns: list | None, difference: dict, tables: Mapping, known: dict) -> list[dict]:
    """What is known, with each distinct value of the columns of the rows that are meant."""
    if columns is None:
        return [dict(known)]
    named = {name: difference[name] for name in ("table", "rows") if name in difference}
    rows = _selected(tables, _filled(named, known), "rows")
    return [known | values for values in rows[columns].drop_duplicates().to_dict("records")]


def _filled(value: object, case: dict) -> object:
    if isinstance(value, dict):
        return {name: _filled(part, case) for name, part in value.items()}
    return value.format(**case) if isinstance(value, str) else value
