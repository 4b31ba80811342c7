"""Brown's claims on models that generalize and models that follow a heuristic."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator

import pandas as pd

from shrink_utils.paths import data_dir
from shrink_utils.study.claims.claim import Claim, Direction, evaluate
from shrink_utils.study.generalization.parting import crossed, gap, numbers_of, pairs_of
from shrink_utils.study.jackknife import pseudo_values
from shrink_utils.text.heuristic_templates import HELD_OUT, HEURISTICS

__all__ = ["generalization_claims", "group_accuracies", "published_accuracies"]

MARGIN = 0.05  # of dev accuracy: a difference that still counts as none
EARLY = 1  # the first layer above the embeddings
SPOKEN = {"overlap": "pairs of overlapping words", "dev": "dev pairs"}

Tested = tuple[Claim, list[float]]


def generalization_claims(table: pd.DataFrame) -> pd.DataFrame:
    """Test every claim.

    Parameters
    ----------
    table : DataFrame
        Of `models.measure_generalization`.

    Returns
    -------
    DataFrame
        Of `claim.evaluate`. ``floor`` is the standard deviation of the same quantity between
        models (or pairs of models) of one group, which differ in their seed alone.

    Notes
    -----
    The unit is a number i that names one model of each group. Accuracies give one difference a
    number. Of CKA and stitching, which pairs of models have, the interval is a jackknife over
    numbers: model i of both groups, and with them every pair they are in, are left out in turn.
    """
    tested = dict([*_accuracies(table), *_layers(table), *_swaps(table)])
    return evaluate(tested, tested.__getitem__)


def group_accuracies(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of each model: dev, and pairs of overlapping words by heuristic and label.

    Returns
    -------
    DataFrame
        Columns ``data``, ``heuristic``, ``label``, ``group``, ``number``, ``value``: means over
        templates, which have as many pairs each.
    """
    rows = table[table.quantity == "accuracy"]
    cell = ["data", "heuristic", "label", "group", "number"]
    return rows.groupby(cell, sort=False).value.mean().reset_index()


def published_accuracies() -> pd.DataFrame:
    """Accuracies of the feather BERTs: columns data, heuristic, label, group, mean, sd, runs."""
    return pd.read_csv(data_dir() / "published" / "feather_berts.csv", keep_default_na=False)


def _accuracies(table: pd.DataFrame) -> Iterator[Tested]:
    rows = table[table.quantity == "accuracy"]
    refuted = rows[(rows.label == "not_entailment") & (rows.data == "overlap")]
    for heuristic in HEURISTICS:
        spoken = heuristic.replace("_", " ")
        statement = f"generalizing models see through more pairs of {spoken} not entailed"
        name = f"accuracy-{heuristic.replace('_', '-')}"
        published = _published_gap() if heuristic == "lexical_overlap" else None
        yield _compared(refuted[refuted.heuristic == heuristic], name, "B §4", statement, published)
    statement = "they see through more pairs of constructions that no counter-example had"
    yield from _if_any(refuted[refuted.template.isin(HELD_OUT)], "accuracy-unseen", statement)
    statement = "generalizing models are right more often about words in no training pair"
    both_labels = rows[rows.data == "new words"].groupby(["group", "number", "label"])
    balanced = both_labels.value.mean().reset_index()  # saying no to everything gets half of it
    yield from _if_any(balanced, "accuracy-new-words", statement)
    statement = f"the generalizing models' dev accuracy is no more than {MARGIN} lower"
    yield _compared(rows[rows.data == "dev"], "accuracy-dev", "B §4", statement, None, MARGIN)


def _if_any(rows: pd.DataFrame, name: str, statement: str) -> Iterator[Tested]:
    """HANS has neither held-out constructions nor words of our lexicons."""
    if len(rows):
        yield _compared(rows, name, "our control of B §4", statement, None)


def _compared(
    rows: pd.DataFrame,
    name: str,
    source: str,
    statement: str,
    published: float | None,
    margin: float = 0.0,
) -> Tested:
    """Generalizing less heuristic, one difference a number; the floor is the spread in a group."""
    by_group = rows.groupby(["number", "group"]).value.mean().unstack()
    floor = math.sqrt(by_group.var().mean())
    direction = "no_worse" if margin else "greater"
    claim = _claim(name, source, statement, floor, direction, margin, published)
    return claim, list(by_group["generalizing"] - by_group["heuristic"])


def _published_gap() -> float:
    table = published_accuracies()
    means = table[table.heuristic == "lexical_overlap"].set_index("group")["mean"].astype(float)
    return round(means["generalizing"] - means["heuristic"], 6)


def _layers(table: pd.DataFrame) -> Iterator[Tested]:
    """The groups part only in late layers: by CKA, and by identity stitching."""
    last = int(table.layer.max())
    for data, spoken in SPOKEN.items():
        rows = pairs_of(table, "cka", data)
        parts = f"CKA parts the groups in the last layer more than in the first ({spoken})"
        yield _late(rows, f"cka-late-{data}", parts, last, sign=1)
        yield _less_than_half(rows, f"cka-early-{data}", "first", spoken, EARLY, last)
        if last // 2 > EARLY:
            yield _less_than_half(rows, f"cka-middle-{data}", "middle", spoken, last // 2, last)
    rows = pairs_of(table, "penalty", "dev")
    parts = "crossing groups costs a stitch more in the last layer than in the first (dev pairs)"
    yield _late(rows, "stitch-late", parts, last, sign=-1)


def _late(rows: pd.DataFrame, name: str, statement: str, last: int, *, sign: int) -> Tested:
    """The gap, which is within less between, of the last layer less that of the first."""
    return _jackknifed(
        rows,
        name,
        statement,
        lambda numbers: sign * (gap(rows, numbers, last) - gap(rows, numbers, EARLY)),
        _spread(rows, {last: 1, EARLY: -1}),
        "greater",
    )


def _less_than_half(
    rows: pd.DataFrame, name: str, where: str, spoken: str, layer: int, last: int
) -> Tested:
    """A layer's gap less half of that of the last layer."""
    return _jackknifed(
        rows,
        name,
        f"by CKA the {where} layer has less than half of the last one's gap ({spoken})",
        lambda numbers: gap(rows, numbers, layer) - gap(rows, numbers, last) / 2,
        _spread(rows, {layer: 1, last: -0.5}),
        "less",
    )


def _swaps(table: pd.DataFrame) -> Iterator[Tested]:
    """Who decides on overlapping words: the group above a stitch, or the one below?"""
    rows, last = pairs_of(table, "stitched", "overlap"), int(table.layer.max())
    for layer, name, who, direction in (
        (EARLY, "stitch-above", "first layer, the models above", "less"),
        (last, "stitch-below", "last layer, the models below", "greater"),
    ):
        statement = f"stitched at the {who} decide whether overlap is seen through"
        yield _jackknifed(
            rows,
            name,
            statement,
            lambda numbers, layer=layer: crossed(rows, numbers, layer),
            _spread(rows, {layer: 1}),
            direction,
        )


def _spread(rows: pd.DataFrame, weights: dict[int, float]) -> float:
    """Standard deviation, over pairs of one group, of a weighted sum over layers."""
    within = rows[rows.relation != "between"]
    pair = ["relation", "number", "other_number"]
    wide = within.pivot(index=pair, columns="layer", values="value")
    sums = sum(weight * wide[layer] for layer, weight in weights.items())
    return math.sqrt(sums.groupby("relation").var().mean())


def _jackknifed(
    rows: pd.DataFrame,
    name: str,
    statement: str,
    statistic: Callable[[Collection[int]], float],
    floor: float,
    direction: Direction,
) -> Tested:
    claim = _claim(name, "B §4", statement, floor, direction)
    return claim, pseudo_values(statistic, numbers_of(rows))


def _claim(
    name: str,
    source: str,
    statement: str,
    floor: float,
    direction: Direction,
    margin: float = 0.0,
    published: float | None = None,
) -> Claim:
    return Claim(
        id=f"b:generalization-{name}",
        source=source,
        statement=statement,
        direction=direction,
        margin=margin,
        published=published,
        unit="models",
        floor=floor,
    )
