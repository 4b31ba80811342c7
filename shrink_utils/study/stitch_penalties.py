"""What 09, 09b and the claims read off stitched models, and off models of two groups."""

from collections.abc import Collection
from typing import NamedTuple

import pandas as pd

GROUPS = ("heuristic", "generalizing")
CROSSINGS = ("heuristic below generalizing", "generalizing below heuristic")


def with_models_named(stitches: pd.DataFrame) -> pd.DataFrame:
    """With the models' activations in ``front`` and ``back``, their seeds in columns beside them.

    `stitches` are those of `read_objectives`, whose models are named as "gelu-500". Below an
    untrained model's front, "untrained gelu-500", stands the activation that it would have had.
    """
    named = stitches.copy()
    for end in ("front", "back"):
        parts = stitches[end].str.removeprefix("untrained ").str.split("-")
        named[end], named[f"{end}_number"] = parts.str[0], parts.str[1].astype(int)
    return named


def _penalty_floors(stitched: pd.DataFrame) -> pd.DataFrame:
    """By how much penalties differ between pairs of models that differ in their seed alone.

    Of `with_models_named`: ``kind``, ``depth``, ``layer`` and ``floor``, which is the standard
    deviation over pairs of relation "seed", within each activation, in nats per token.
    """
    cell = ["kind", "depth", "layer"]
    seeds = stitched[stitched.relation == "seed"]
    variance = seeds.groupby([*cell, "back"]).penalty.var()
    return (variance.groupby(cell).mean() ** 0.5).rename("floor").reset_index()


class _Turned(NamedTuple):
    """Change of a stitch when its two models change places."""

    mixed: pd.Series  # SoLU below GeLU minus GeLU below SoLU, by the pair's number
    alike: pd.Series  # the same of two seeds, by activation and both numbers
    floor: float  # the root mean square of `alike`, where no direction is special


def _turned(stitched: pd.DataFrame, value: str) -> _Turned:
    """Differences of a column (penalty or loss) between both directions of each pair of models."""
    mixed, alike = (stitched[stitched.relation == name] for name in ("activation", "seed"))
    mixed = mixed.groupby(["front_number", "front"])[value].mean().unstack()
    alike = alike.groupby(["front", "front_number", "back_number"])[value].mean()
    alike = alike - alike.swaplevel().reindex(alike.index)
    return _Turned(mixed["solu"] - mixed["gelu"], alike, float((alike**2).mean() ** 0.5))


def pairs_of(table: pd.DataFrame, quantity: str, data: str) -> pd.DataFrame:
    """Rows of chapter 09b's groups between two models, with their ``relation`` and ``crossing``.

    ``relation`` is the group that both models are of, or "between"; ``crossing`` says which group
    is below where there are two, and is empty where there is one.
    """
    rows = table[(table.quantity == quantity) & (table.data == data)].copy()
    two = rows.group != rows.other
    rows["relation"] = rows.group.where(~two, "between")
    rows["crossing"] = (rows.group + " below " + rows.other).where(two, "")
    return rows


def numbers_of(rows: pd.DataFrame) -> list[int]:
    """The numbers of the models; each names one model per group."""
    return sorted(set(rows.number) | set(rows.other_number) - {-1})


def _gap(rows: pd.DataFrame, numbers: Collection[int], layer: int) -> float:
    """Mean of pairs within the groups minus that of pairs between them, at one layer.

    `rows` are of `pairs_of`; only models of these `numbers` count.
    """
    cell = rows[rows.layer == layer]
    within, other = (_mean(cell[cell.relation == group], numbers) for group in GROUPS)
    return (within + other) / 2 - _mean(cell[cell.relation == "between"], numbers)


def crossed(rows: pd.DataFrame, numbers: Collection[int], layer: int) -> float:
    """Mean with a generalizing model below minus that with one above; arguments as of `_gap`."""
    cell = rows[rows.layer == layer]
    above, below = (_mean(cell[cell.crossing == crossing], numbers) for crossing in CROSSINGS)
    return below - above


def _mean(rows: pd.DataFrame, numbers: Collection[int]) -> float:
    return float(rows[rows.number.isin(numbers) & rows.other_number.isin(numbers)].value.mean())
