"""A claim, the verdict on it, and how the rows of claims.toml become claims."""

import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.stats import false_discovery_control

from shrink_utils.study.statistics import (
    Interval,
    crossed_interval,
    fisher_z,
    of_correlations,
    p_value,
    paired_interval,
    pseudo_values,
)

Direction = Literal["less", "greater", "no_worse", "described"]
Kind = Literal["paper's test", "scaled test", "analogue", "our control"]
Verdict = Literal[
    "replicated", "agrees", "inconclusive", "disagrees", "not replicated", "described"
]
Unit = Literal["seeds", "models", "words", "sentences"]

OWN_TEST: dict[str, Verdict] = {"agrees": "replicated", "disagrees": "not replicated"}
CONFIDENCE = 0.95  # of an interval; with several tries, of all of them together
FALSE_DISCOVERIES = 0.05  # share of the adjusted verdicts that may be accidents
COLUMNS = (
    "claim source kind statement task arm published estimate low high n unit floor p verdict "
    "adjusted departures"
)
ROWS = tomllib.loads(Path(__file__).with_name("claims.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A published claim about the mean difference of a quantity between two arms."""

    id: str  # unique in the table
    source: str  # where it is made, such as "STL §4, Table 3"
    statement: str
    direction: Direction  # the claimed sign; "no_worse" where higher is better
    kind: Kind = "scaled test"  # how near the test is to the paper's own
    task: str = ""
    arm: str = ""
    margin: float = 0.0  # "no_worse" only: the loss that still counts as none
    published: float | None = None  # the paper's own difference
    unit: Unit = "seeds"  # the interval speaks of more of these, and of nothing else
    floor: float | None = None  # how much models differ that differ in their seed alone
    tries: int = 1  # the differences are the most favourable of so many: the interval allows for it
    correlation: bool = False  # each unit has a correlation: their mean is that of Fisher's z
    departures: str = ""  # from the paper's protocol, which no profile removes

    def __post_init__(self) -> None:
        _check_direction(self.direction, self.margin)
        _check_name("unit", self.unit, Unit)
        _check_name("kind", self.kind, Kind)


class Evidence(NamedTuple):
    """What a claim is tested on: one difference per unit, and the numbers to hold it against."""

    differences: ArrayLike
    floor: float | None = None
    published: float | None = None
    tries: int = 1


Quantity = Callable[[pd.DataFrame, dict], Evidence]
Tables = Mapping[str, pd.DataFrame]

Statistic = Callable[[pd.DataFrame], float]

QUANTITIES: dict[str, Quantity] = {}  # that rows can name


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
    _check_direction(direction, margin)
    if direction == "described":
        return "described"
    if direction == "less":
        agrees, contradicts = interval.high < 0, interval.low > 0
    else:  # "greater" is "no_worse" without tolerance
        agrees, contradicts = interval.low > -margin, interval.high < -margin
    found = "agrees" if agrees else "disagrees" if contradicts else "inconclusive"
    return OWN_TEST.get(found, found) if kind == "paper's test" else found


def _check_direction(direction: str, margin: float) -> None:
    if direction not in get_args(Direction):
        raise ValueError(f"direction must be one of {get_args(Direction)}, got {direction!r}")
    if not 0 <= margin < math.inf:
        raise ValueError(f"margin must be a finite number, not negative, got {margin}")
    if margin and direction != "no_worse":
        raise ValueError(f'margin {margin} has no meaning for direction "{direction}"')


def _check_name(argument: str, name: str, known: object) -> None:
    if name not in get_args(known):
        raise ValueError(f"{argument} must be one of {get_args(known)}, got {name!r}")


def evaluate(claims: Iterable[Claim], differences: Callable[[Claim], ArrayLike]) -> pd.DataFrame:
    """Table of claims, one per row: each with its estimate, interval and verdict.

    Returns
    -------
    pandas.DataFrame
        The columns of `COLUMNS`. `published` is NaN where the paper gives no number, `floor` where
        none was measured, `p` where nothing is decided; `adjusted` is empty: see `adjust`.

    Raises
    ------
    ValueError
        Differences that `paired_interval` refuses; the message names the claim.
    """
    rows = []
    for claim in claims:
        sure = 1 - (1 - CONFIDENCE) / claim.tries
        try:
            values = np.asarray(differences(claim))
            interval = _interval(fisher_z(values) if claim.correlation else values, sure)
        except ValueError as error:
            raise ValueError(f"claim {claim.id!r}: {error}") from error
        shown = of_correlations(interval) if claim.correlation else interval
        row = {**vars(claim), **shown._asdict(), "claim": claim.id, "adjusted": ""}
        row["verdict"] = verdict(interval, claim.direction, claim.margin, kind=claim.kind)
        row["p"] = _p(claim, interval, sure)
        rows.append({name: math.nan if value is None else value for name, value in row.items()})
    return pd.DataFrame(rows, columns=COLUMNS.split())


def _interval(differences: np.ndarray, confidence: float) -> Interval:
    """Of one difference per unit, or of one per unit and row."""
    if differences.ndim == 2:
        none = np.zeros_like(differences)
        return crossed_interval(differences, none, confidence=confidence)
    return paired_interval(differences, confidence=confidence)


def _p(claim: Claim, interval: Interval, confidence: float) -> float:
    """Two-sided, of the bound that decides; after Bonferroni where there were several tries."""
    if claim.direction == "described":
        return math.nan
    p = p_value(interval, -claim.margin, confidence=confidence)
    return p if math.isnan(p) else min(1.0, claim.tries * p)


def adjust(claims: pd.DataFrame) -> pd.DataFrame:
    """Fill in `adjusted`: the verdicts that stay when the table as a whole is accounted for.

    Over all rows with a p the share of false verdicts is held at 5 % (Benjamini & Hochberg 1995);
    a verdict that does not stay, or has no p, is inconclusive. The whole table has to be given.
    """
    tested = claims.p.dropna()
    adjusted = pd.Series(false_discovery_control(tested) if len(tested) else [], tested.index)
    stays = claims.index.isin(adjusted[adjusted <= FALSE_DISCOVERIES].index)
    kept = stays | (claims.verdict == "described")
    return claims.assign(adjusted=claims.verdict.where(kept, "inconclusive"))


def whole_table(chapters: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """The claims of all chapters as one table, with adjusted verdicts."""
    # A chapter without rows would turn the numbers of the others into objects.
    return adjust(pd.concat([table for table in chapters if len(table)], ignore_index=True))


def select(rows: pd.DataFrame, query: str, names: dict) -> pd.DataFrame:
    """The rows of which a query holds, which refers to names by @.

    A query is code and a table may come from others: its values are names, never pasted in.
    """
    return rows.query(query, engine="python", local_dict=names)


def quantity(function: Quantity) -> Quantity:
    """Make a function one that rows of claims.toml can name: of rows of a table, and of the row."""
    QUANTITIES[function.__name__] = function
    return function


@quantity
def paired(rows: pd.DataFrame, difference: dict) -> Evidence:
    """The quantity of a row that names none: a column where `of` holds less where `minus` holds."""
    column, unit = difference["column"], difference["index"]

    def side(query: str) -> pd.Series:
        chosen = select(rows, query, difference).set_index(unit)
        if not chosen.index.is_unique:
            raise ValueError(f"{difference['table']}: {query} holds more than one row per {unit}")
        return chosen.eval(column, engine="python").sort_index()

    found, floor = side(difference["of"]), None
    if "minus" in difference:
        found = found - side(difference["minus"])
    if "floor" in difference:
        values = rows.eval(column, engine="python")
        floor = math.sqrt(values.groupby(rows[difference["floor"]]).var().mean())
    found = found - difference.get("beyond", 0.0)
    return Evidence(np.stack(found) if found.dtype == object else found, floor)  # graded by rows


@quantity
def best_of(rows: pd.DataFrame, difference: dict) -> Evidence:
    """The clearest of several paired differences, one per value of the column `among`.

    For claims that hold if one of them does. Queries refer to the value by @cell.
    """
    sign = -1 if difference["direction"] == "less" else 1
    cells = select(rows, difference["cells"], difference)[difference["among"]].unique()
    found = [paired(rows, difference | {"cell": cell}).differences for cell in cells]
    best = max(found, key=lambda values: sign * _signal_to_noise(values))
    return Evidence(best, tries=len(found))


def _signal_to_noise(values: pd.Series) -> float:
    return values.mean() / max(values.std(ddof=0), 1e-300)


@quantity
def mean_of_pairs(pairs: pd.DataFrame, difference: dict) -> Evidence:
    """Of a column, where `of` holds less where `minus` holds, by model; either may be left out.

    The floor is the spread of the pairs of `minus`, or of all there are.
    """

    def column(some: pd.DataFrame, name: str) -> pd.Series:
        chosen = select(some, difference[name], difference) if name in difference else some
        return chosen.eval(difference["column"], engine="python")

    def statistic(some: pd.DataFrame) -> float:
        less = column(some, "minus").mean() if "minus" in difference else 0.0
        return column(some, "of").mean() - less

    unit = difference.get("pairs_of", "seed")
    return Evidence(leaving_out(pairs, unit, statistic), float(column(pairs, "minus").std()))


def leaving_out(pairs: pd.DataFrame, unit: str, statistic: Statistic) -> list[float]:
    """One value per model, for what is computed from pairs of models: see `pseudo_values`."""
    front, back = pairs[f"front_{unit}"], pairs[f"back_{unit}"]

    def of_some(some: Collection[int]) -> float:
        return statistic(pairs[front.isin(some) & back.isin(some)])

    return pseudo_values(of_some, sorted(back.unique()))


def judge(chapter: str, tables: Tables, **known: object) -> pd.DataFrame:
    """Test the claims of a chapter of claims.toml on measured tables; a table of `evaluate`.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        By the names that the rows have for them.
    **known
        What else stands in the rows' braces.
    """
    tested = {}
    for row in _claimed(ROWS[chapter], {}, tables, known):
        evidence = _evidence(tables, row["difference"])
        tested[_claim(row, evidence, tables)] = evidence.differences
    return evaluate(tested, tested.__getitem__)


def _claimed(node: dict, inherited: dict, tables: Tables, known: dict) -> Iterator[dict]:
    """The rows of a part of the table, one per claim, with what they inherit and braces filled."""
    keys = inherited | {name: node[name] for name in node if name not in ("claim", "over", "for")}
    keys["difference"] = inherited.get("difference", {}) | node.get("difference", {})
    for case in _cases(node, keys["difference"], tables, known):
        for child in node.get("claim", []):
            yield from _claimed(child, keys, tables, case)
        if "claim" not in node and _holds(keys.get("only"), case):
            direction = _that_holds(keys["direction"], case)
            case["margin"] = ROWS["margin"] if direction == "no_worse" else 0.0
            case["name"] = keys["name"].format(**case)
            texts = {name: keys[name].format(**case) for name in ("id", "source", "statement")}
            difference = case | keys["difference"] | {"direction": direction}
            difference |= {"column": difference.get("column", "").format(**case)}
            texts |= {"direction": direction, "kind": _that_holds(keys["kind"], case)}
            yield keys | case | texts | {"difference": difference}


def _cases(node: dict, difference: dict, tables: Tables, known: dict) -> Iterator[dict]:
    """What fills the braces: once per entry of every list, and per value of the columns."""
    for entries in product(*(ROWS["over"][name] for name in node.get("over", []))):
        case = known | {name: value for entry in entries for name, value in entry.items()}
        if "for" not in node:
            yield case
            continue
        rows = _rows(tables, case | {k: v for k, v in difference.items() if k != "where"})
        for values in rows[node["for"]].drop_duplicates().to_dict("records"):
            yield case | values


def _holds(query: str | None, case: dict) -> bool:
    return query is None or len(select(pd.DataFrame([case]), query, {})) > 0


def _that_holds(named: str | dict[str, str], case: dict) -> str:
    """A kind or direction that depends on what fills the braces is a table of queries."""
    if isinstance(named, str):
        return named
    return next(name for query, name in named.items() if _holds(query, case))


def _rows(tables: Tables, difference: dict) -> pd.DataFrame:
    rows = tables[difference["table"]]
    for name in ("rows", "where"):
        rows = select(rows, difference[name], difference) if name in difference else rows
    return rows


def _evidence(tables: Tables, difference: dict) -> Evidence:
    return QUANTITIES[difference.get("quantity", "paired")](_rows(tables, difference), difference)


def _claim(row: dict, evidence: Evidence, tables: Tables) -> Claim:
    published = evidence.published
    if "published" in row:
        theirs = np.asarray(_evidence(tables, row["difference"] | row["published"]).differences)
        published = theirs.item() if theirs.size else None  # an arm that the paper does not have
    # Papers print three decimals: six are exact.
    rounded = None if published is None else round(float(published), 6)
    fields = {name: row[name] for name in Claim.__annotations__ if name in row}
    measured = {"published": rounded, "floor": evidence.floor, "tries": evidence.tries}
    return Claim(**fields | measured)
