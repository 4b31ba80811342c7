"""Numbers read off the CKA of a family: blocks, how alike members are, who stands apart."""

from __future__ import annotations

import pandas as pd

from shrink_utils.study.stitching.blocks import two_blocks

__all__ = ["affinity", "block_numbers", "deviance", "seed_deviance"]

FEWEST_LAYERS = 3  # two blocks, one of them with a pair of layers in it


def block_numbers(family: pd.DataFrame) -> pd.DataFrame:
    """Block structure of every model with at least three layers.

    The embeddings are left out: they are unlike all that is above them, which would make them a
    block of their own in any model.

    Parameters
    ----------
    family : DataFrame
        Of `measure_family`.

    Returns
    -------
    DataFrame
        ``member``, ``seed``, ``weights``, and as `Blocks`: ``first_above`` (here the number of the
        layer), ``contrast``, ``beyond_distance``.
    """
    within = family[(family.relation == "within") & (family.layer > 0) & (family.other_layer > 0)]
    rows = []
    for keys, model in within.groupby(["member", "seed", "weights"], sort=False):
        grid = model.pivot(index="layer", columns="other_layer", values="cka")
        if len(grid) >= FEWEST_LAYERS:
            cut, *numbers = two_blocks(grid)
            rows.append((*keys, grid.index[cut], *numbers))
    columns = ["member", "seed", "weights", "first_above", "contrast", "beyond_distance"]
    return pd.DataFrame(rows, columns=columns)


def affinity(family: pd.DataFrame) -> pd.DataFrame:
    """How alike two models are: mean CKA of layers at equal relative depth, without embeddings.

    Parameters
    ----------
    family : DataFrame
        Of `measure_family`.

    Returns
    -------
    DataFrame
        ``relation`` ("members" or "seeds"), ``weights``, ``member``, ``other``, ``seed``,
        ``other_seed``, ``cka``.
    """
    pairs = family[(family.relation != "within") & (family.layer > 0)]
    models = ["relation", "weights", "member", "other", "seed", "other_seed"]
    top = pairs.groupby(models)[["layer", "other_layer"]].transform("max")
    level = (pairs.layer * top.other_layer / top.layer).round()
    return pairs[pairs.other_layer == level].groupby(models, sort=False).cka.mean().reset_index()


def deviance(family: pd.DataFrame) -> pd.DataFrame:
    """How far a member stands apart from the next smaller and the next larger one.

    Parameters
    ----------
    family : DataFrame
        Of `measure_family`, members in order of size.

    Returns
    -------
    DataFrame
        ``member`` (all but the smallest and the largest), ``seed``, ``deviance``: the affinity of
        the two neighbours to each other less their mean affinity to the member. Where similarity
        follows size it is negative; above 0, the member is skipped over.
    """
    order = list(family.member.unique())
    trained = affinity(family).query("relation == 'members' and weights == 'trained'")
    rows = []
    for seed, pairs in trained.groupby("seed"):
        cka = pairs.set_index(["member", "other"]).cka
        for below, member, above in zip(order, order[1:], order[2:], strict=False):
            near = (cka[below, member] + cka[member, above]) / 2
            rows.append((member, seed, cka[below, above] - near))
    return pd.DataFrame(rows, columns=["member", "seed", "deviance"])


def seed_deviance(family: pd.DataFrame) -> pd.Series:
    """The same number for three models that differ in their seed alone: what chance makes of it.

    Returns
    -------
    Series
        One value for each member and each choice of three of its seeds and of one in the middle;
        empty for fewer than three seeds.
    """
    seeds = affinity(family).query("relation == 'seeds'")
    found = []
    for _, pairs in seeds.groupby("member"):
        cka = pairs.pivot(index="seed", columns="other_seed", values="cka")
        numbers = sorted({*pairs.seed, *pairs.other_seed})
        for a in numbers:
            for b in (b for b in numbers if b > a):
                for middle in (m for m in numbers if m not in (a, b)):
                    near = [cka.loc[min(x, middle), max(x, middle)] for x in (a, b)]
                    found.append(cka.loc[a, b] - sum(near) / 2)
    return pd.Series(found, dtype=float)
