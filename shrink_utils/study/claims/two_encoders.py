"""V's claims on a masked language model and a translation encoder, on those trained here."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

import pandas as pd

from shrink_utils.study.claims.claim import Claim, Direction, evaluate
from shrink_utils.study.dynamics.two_encoders import SIMILARITIES
from shrink_utils.study.jackknife import pseudo_values

__all__ = ["encoder_pairs", "two_encoders_claims"]

SPOKEN = {"rsa": "RSA", "pwcca": "PWCCA", "cka_debiased": "CKA"}

Tested = tuple[Claim, Sequence[float]]


def two_encoders_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Test every claim.

    Parameters
    ----------
    table : DataFrame
        Of `two_encoders.measure_two_encoders`.

    Returns
    -------
    DataFrame
        Of `claim.evaluate`. ``floor`` is the standard deviation of the same quantity between
        encoders (or pairs of encoders) of one objective, which differ in their seed alone.

    Notes
    -----
    Of AvgSim there is one difference a seed. Similarities are means over layers and over pairs of
    encoders of different seeds; the interval leaves out one seed, of both objectives, at a time.
    """
    tested = dict([*_avg_sim(table), *_similarity(table)])
    return evaluate(tested, tested.__getitem__)


def encoder_pairs(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of two encoders, with their ``relation``.

    Returns
    -------
    DataFrame
        ``relation`` is "mlm" or "mt" for encoders of one objective and different seeds, "between"
        for a masked LM and a translation encoder of different seeds, "same start" for those of one
        seed, which begin with equal weights.
    """
    rows = table[table.back != ""].copy()
    rows["relation"] = rows.front.where(rows.front == rows.back, "between")
    rows.loc[rows.front_seed == rows.back_seed, "relation"] = "same start"
    return rows


def _avg_sim(table: pd.DataFrame) -> Iterator[Tested]:
    """V: the MLM rises gradually; the MT encoder starts high and makes its jump at the end."""
    rows = table[table.quantity == "avg_sim"]
    wide = rows.pivot(index=["front", "front_seed"], columns="layer", values="value")
    last = wide.columns.max()
    steps = wide.diff(axis=1).drop(columns=0)
    jump = steps[last] - steps.drop(columns=last).max(axis=1)
    rise = wide[last] - wide[0]
    largest = steps.max(axis=1) - rise / 2
    for name, statement, values, objectives, direction in (
        ("embedding", "AvgSim at the embeddings: MT above MLM", wide[0], ("mt", "mlm"), "greater"),
        ("mt-jump", "MT: the last step is the largest", jump, ("mt",), "greater"),
        ("jump", "by how much it exceeds the next: MT above MLM", jump, ("mt", "mlm"), "greater"),
        ("mlm-rises", "MLM: AvgSim rises from first to last", rise, ("mlm",), "greater"),
        ("mlm-gradual", "MLM: no step makes half of that rise", largest, ("mlm",), "less"),
    ):
        first, *second = (values[objective] for objective in objectives)
        floor = math.sqrt(values.groupby("front").var().mean())
        yield _claim(name, statement, floor, direction), list(first - sum(second))


def _similarity(table: pd.DataFrame) -> Iterator[Tested]:
    pairs = encoder_pairs(table)
    for measure in SIMILARITIES:
        rows = pairs[pairs.quantity == measure]
        spoken, short = SPOKEN[measure], measure.split("_")[0]
        plain = rows[rows["map"] == "none"]
        statement = f"MLM and MT are less alike than other seeds are ({spoken})"
        claim = _claim(f"differ-{short}", statement, _spread(plain), "less")
        yield claim, _jackknifed(plain, _between_less_seeds)
        # CKA does not see an orthogonal map, PWCCA hardly; RSA sees the shift that goes with it.
        for name in ("orthogonal", "affine") if measure == "rsa" else ("affine",):
            gained = _gained(rows, name)
            statement = f"the {name} map makes MLM more like MT ({spoken})"
            claim = _claim(f"{name}-{short}", statement, _spread(gained), "greater")
            yield claim, _jackknifed(gained, _between)


def _gained(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Similarity under a map less that without one."""
    keys = ["relation", "front_seed", "back_seed", "layer"]
    wide = rows.pivot(index=keys, columns="map", values="value")
    return (wide[name] - wide["none"]).rename("value").reset_index()


def _jackknifed(rows: pd.DataFrame, statistic: Callable[[pd.DataFrame], float]) -> Sequence[float]:
    def of_seeds(seeds: Collection[int]) -> float:
        return statistic(rows[rows.front_seed.isin(seeds) & rows.back_seed.isin(seeds)])

    return pseudo_values(of_seeds, sorted(rows.front_seed.unique()))


def _between(rows: pd.DataFrame) -> float:
    return float(rows[rows.relation == "between"].value.mean())


def _between_less_seeds(rows: pd.DataFrame) -> float:
    means = rows.groupby("relation").value.mean()
    return float(means["between"] - (means["mlm"] + means["mt"]) / 2)


def _spread(rows: pd.DataFrame) -> float:
    """Over pairs of encoders of one objective, of the mean over layers."""
    within = rows[rows.relation.isin(["mlm", "mt"])]
    means = within.groupby(["relation", "front_seed", "back_seed"]).value.mean()
    return math.sqrt(means.groupby("relation").var().mean())


def _claim(name: str, statement: str, floor: float, direction: Direction) -> Claim:
    return Claim(
        id=f"v:encoders-{name}",
        source="V, on encoders trained here",
        statement=statement,
        direction=direction,
        unit="seeds",
        floor=floor,
    )
