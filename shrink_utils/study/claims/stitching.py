"""Brown's claims on stitching and on a family of sizes, with the noise floor in every row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

import pandas as pd

from shrink_utils.study.claims.claim import Claim, Direction, evaluate
from shrink_utils.study.jackknife import pseudo_values
from shrink_utils.study.stitching.family_structure import (
    affinity,
    block_numbers,
    deviance,
    seed_deviance,
)
from shrink_utils.study.stitching.stitched import penalty_floors

__all__ = ["floors_above_untrained", "stitching_claims"]

Tested = tuple[Claim, Sequence[float]]  # a claim and its differences, one a seed

SPOKEN = {"affine": "least squares", "trained": "trained stitches"}


def stitching_claims(stitched: pd.DataFrame, family: pd.DataFrame) -> pd.DataFrame:
    """Test every claim.

    Parameters
    ----------
    stitched, family : DataFrame
        Of `measure_stitched` and `measure_family`.

    Returns
    -------
    DataFrame
        Of `claim.evaluate`; ``floor`` is what the same quantity varies by between models that
        differ in their seed alone.

    Notes
    -----
    Penalties are of stitches between equal layers above the embeddings, averaged over the layers,
    but where layers of unequal height are compared: there the embeddings count as one.
    Pairs of n models are far more than n, and no more independent than the models: the unit is the
    number of a seed. The asymmetry compares, for each, one GeLU with one SoLU model that stand in
    no other pair. Means over pairs of seeds leave models out, not pairs (`pseudo_values`), which
    takes at least three.
    """
    tested = dict([*_stitching(stitched), *_family(family)])
    return evaluate(tested, tested.__getitem__)


def floors_above_untrained(stitched: pd.DataFrame, kind: str) -> float:
    """By how many noise floors stitches of this map beat those to an untrained bottom."""
    return float(_untrained_cost(stitched, kind) / _floor(stitched, kind))


def _stitching(stitched: pd.DataFrame) -> Iterator[Tested]:
    for kind, spoken in SPOKEN.items():
        yield from _asymmetries(stitched, kind)
        statement = f"an untrained bottom costs more than one of another seed ({spoken})"
        claim = _claim(f"stitch-untrained:{kind}", "control", statement, _floor(stitched, kind))
        yield claim, _by_model(stitched, partial(_untrained_cost, kind=kind))
    for kind, other in (("affine", "identity"), ("trained", "affine")):
        statement = f"between seeds, {SPOKEN[kind]} cost less than {SPOKEN.get(other, other)}"
        floor = _floor(stitched, kind)
        claim = _claim(f"stitch-{kind}-{other}", "after B §3", statement, floor, "less")
        yield claim, _cheaper(stitched, kind, other)
    statement = "between seeds, layers over half the depth apart cost more than equal ones"
    claim = _claim("stitch-distance", "after B §3", statement, _floor(stitched, "affine"))
    yield claim, _by_model(stitched, _far_minus_equal)


def _asymmetries(stitched: pd.DataFrame, kind: str) -> Iterator[Tested]:
    """By penalty, as B state it, and by what the stitched models themselves lose.

    A penalty is relative to the model on top: between a better and a worse model the two directions
    differ by the gap of their own losses even where both stitched models lose the same.
    """
    for value, name, statement in (
        ("penalty", "stitch-asymmetry", "SoLU below GeLU costs more than GeLU below SoLU"),
        ("loss", "stitch-asymmetry-loss", "SoLU below GeLU loses more than GeLU below SoLU"),
    ):
        claim = _claim(
            f"{name}:{kind}",
            "B §3",
            f"{statement} ({SPOKEN[kind]})",
            _asymmetry_floor(stitched, kind, value),
        )
        yield claim, _asymmetry(stitched, kind, value)


def _equal_layers(stitched: pd.DataFrame, relation: str, kind: str) -> pd.DataFrame:
    rows = stitched[(stitched.relation == relation) & (stitched.kind == kind)]
    return rows[(rows.front_layer == rows.back_layer) & (rows.front_layer > 0)]


def _asymmetry(stitched: pd.DataFrame, kind: str, value: str) -> pd.Series:
    rows = _equal_layers(stitched, "activation", kind)
    means = rows.groupby(["front_number", "front"])[value].mean().unstack()
    return means["solu"] - means["gelu"]


def _asymmetry_floor(stitched: pd.DataFrame, kind: str, value: str) -> float:
    """Root mean square of the same difference where neither direction is special."""
    rows = _equal_layers(stitched, "seed", kind)
    means = rows.groupby(["front", "front_number", "back_number"])[value].mean()
    return float(((means - means.swaplevel().reindex(means.index)) ** 2).mean() ** 0.5)


def _by_model(
    stitched: pd.DataFrame, statistic: Callable[[pd.DataFrame], float]
) -> Sequence[float]:
    """A value a model number, for what is computed from pairs: see `pseudo_values`."""

    def of_some(numbers: Collection[int]) -> float:
        chosen = stitched.front_number.isin(numbers) & stitched.back_number.isin(numbers)
        return statistic(stitched[chosen])

    return pseudo_values(of_some, sorted(stitched.back_number.unique()))


def _between_seeds(stitched: pd.DataFrame, kind: str, layers: Collection[int] = ()) -> float:
    rows = _equal_layers(stitched, "seed", kind)
    return rows[rows.front_layer.isin(layers or {*rows.front_layer})].penalty.mean()


def _cheaper(stitched: pd.DataFrame, kind: str, other: str) -> Sequence[float]:
    """One map less the other, at the layers of the first."""
    layers = {*_equal_layers(stitched, "seed", kind).front_layer}
    return _by_model(
        stitched,
        lambda rows: _between_seeds(rows, kind) - _between_seeds(rows, other, layers),
    )


def _untrained_cost(stitched: pd.DataFrame, kind: str) -> float:
    untrained = _equal_layers(stitched, "untrained", kind).penalty.mean()
    return untrained - _between_seeds(stitched, kind)


def _floor(stitched: pd.DataFrame, kind: str) -> float:
    floors = penalty_floors(stitched)
    equal = (floors.front_layer == floors.back_layer) & (floors.front_layer > 0)
    return float(floors[equal & (floors.kind == kind)].floor.mean())


def _far_minus_equal(stitched: pd.DataFrame) -> float:
    """Embeddings included: small models have few layers over half the depth apart."""
    rows = stitched[(stitched.relation == "seed") & (stitched.kind == "affine")]
    apart = (rows.front_layer - rows.back_layer).abs()
    return rows[apart > rows.front_layer.max() / 2].penalty.mean() - rows[apart == 0].penalty.mean()


def _family(family: pd.DataFrame) -> Iterator[Tested]:
    blocks = block_numbers(family)
    for number, spoken in (
        ("contrast", "layers fall into two blocks more than those of untrained models"),
        ("beyond_distance", "beyond fading with distance, layers fall into blocks more so"),
    ):
        wide = blocks.pivot_table(index=["member", "seed"], columns="weights", values=number)
        spread = wide.trained.groupby("member").std().mean()
        claim = _claim(f"family-blocks-{number.replace('_', '-')}", "B §5", spoken, spread)
        yield claim, _by_seed(wide.trained - wide.untrained)
    pairs = affinity(family)
    pairs = pairs[pairs.relation == "members"]
    wide = pairs.pivot_table(index=["member", "other", "seed"], columns="weights", values="cka")
    spread = wide.trained.groupby(["member", "other"]).std().mean()
    statement = "members are more alike at equal depth than untrained ones"
    yield (
        _claim("family-alike", "control, B §5", statement, spread),
        _by_seed(wide.trained - wide.untrained),
    )
    statement = "one member stands apart from the next smaller and the next larger one"
    floor = float((seed_deviance(family) ** 2).mean() ** 0.5)
    yield _claim("family-deviant", "B §5", statement, floor), _most_deviant(family)


def _by_seed(values: pd.Series) -> pd.Series:
    return values.groupby("seed").mean()


def _most_deviant(family: pd.DataFrame) -> pd.Series:
    """Of each seed, the deviance of the member that deviates most for the *other* seeds.

    Chosen and judged on the same seed, the largest of several numbers would be large by choice. A
    family of one seed leaves nothing else.
    """
    wide = deviance(family).pivot(index="seed", columns="member", values="deviance")
    if len(wide) == 1:
        return wide.max(axis=1)
    chosen = {seed: wide.drop(index=seed).mean().idxmax() for seed in wide.index}
    return pd.Series({seed: wide.loc[seed, member] for seed, member in chosen.items()})


def _claim(
    name: str, source: str, statement: str, floor: float, direction: Direction = "greater"
) -> Claim:
    return Claim(
        id=f"b:{name}",
        source=source,
        statement=statement,
        direction=direction,
        floor=floor,
    )
