"""By layer, pairs of models of one group against pairs of models of two."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from shrink_utils.study.generalization.pair_groups import GROUPS
from shrink_utils.study.intervals import paired_interval
from shrink_utils.study.jackknife import pseudo_values

__all__ = [
    "CROSSINGS",
    "RELATIONS",
    "crossed",
    "gap",
    "numbers_of",
    "pairs_of",
    "relation_intervals",
]

RELATIONS = (*GROUPS, "between")
CROSSINGS = ("heuristic below generalizing", "generalizing below heuristic")


def pairs_of(table: pd.DataFrame, quantity: str, data: str) -> pd.DataFrame:
    """Rows of one quantity between models, with their ``relation`` and their ``crossing``.

    Parameters
    ----------
    table : DataFrame
        Of `measure_generalization`.
    quantity, data : str
        As there.

    Returns
    -------
    DataFrame
        ``relation`` is the group that both models are of, or "between"; ``crossing`` says which
        group is below where there are two, and is empty where there is one.
    """
    rows = table[(table.quantity == quantity) & (table.data == data)].copy()
    two = rows.group != rows.other
    rows["relation"] = rows.group.where(~two, "between")
    rows["crossing"] = (rows.group + " below " + rows.other).where(two, "")
    return rows


def numbers_of(rows: pd.DataFrame) -> list[int]:
    """The numbers of the models: model i of either group is one and another model."""
    return sorted(set(rows.number) | set(rows.other_number) - {-1})


def relation_intervals(rows: pd.DataFrame, *, by: str = "relation") -> pd.DataFrame:
    """Mean over pairs for each layer and relation, with an interval over models.

    Parameters
    ----------
    rows : DataFrame
        Of `pairs_of`.
    by : str
        ``"relation"`` or ``"crossing"``.

    Returns
    -------
    DataFrame
        Columns `by`, ``layer``, ``estimate``, ``low``, ``high``, ``n`` (models of a group).
    """
    found = []
    for (name, layer), cell in rows[rows[by] != ""].groupby([by, "layer"], sort=False):
        values = pseudo_values(lambda numbers, cell=cell: _mean(cell, numbers), numbers_of(rows))
        found.append({by: name, "layer": layer, **paired_interval(values)._asdict()})
    return pd.DataFrame(found)


def gap(rows: pd.DataFrame, numbers: Collection[int], layer: int) -> float:
    """Mean of pairs within the groups less that of pairs between them, at one layer.

    Parameters
    ----------
    rows : DataFrame
        Of `pairs_of`.
    numbers : collection of int
        Only models of these numbers count.
    layer : int
    """
    cell = rows[rows.layer == layer]
    within, other = (_mean(cell[cell.relation == group], numbers) for group in GROUPS)
    return (within + other) / 2 - _mean(cell[cell.relation == "between"], numbers)


def crossed(rows: pd.DataFrame, numbers: Collection[int], layer: int) -> float:
    """Mean with a generalizing model below less that with one above, stitched at one layer.

    Parameters
    ----------
    rows, numbers, layer
        As of `gap`.
    """
    cell = rows[rows.layer == layer]
    above, below = (_mean(cell[cell.crossing == crossing], numbers) for crossing in CROSSINGS)
    return below - above


def _mean(rows: pd.DataFrame, numbers: Collection[int]) -> float:
    return float(rows[rows.number.isin(numbers) & rows.other_number.isin(numbers)].value.mean())
