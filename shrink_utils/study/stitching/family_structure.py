"""What the CKA of a family says: blocks of layers, how alike members are, who stands apart."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

FEWEST_LAYERS = 3  # two blocks, one of them with a pair of layers in it


class Blocks(NamedTuple):
    """The best cut of a model's layers into a lower and an upper block."""

    first_above: int  # lowest layer of the upper block, counted along the matrix
    contrast: float  # mean similarity within blocks less that between them
    beyond_distance: float  # `contrast` less that of the mean similarity at every distance


def two_blocks(similarity: ArrayLike) -> Blocks:
    """Cut the layers of one model in two where that separates most.

    Parameters
    ----------
    similarity : array_like, shape (layers, layers)
        Symmetric, such as CKA; the diagonal is not looked at. At least 3 layers.

    Raises
    ------
    ValueError
        Another shape, or NaN.

    Notes
    -----
    A number for the blocks that Nguyen, Raghu & Kornblith 2021 (*Do wide and deep networks learn
    the same things?*) and Brown et al. 2023 see in heatmaps. Any similarity that fades with
    distance has a contrast above 0; `beyond_distance` is then 0.
    """
    matrix = np.asarray(similarity, dtype=float)
    if matrix.ndim != 2 or len(set(matrix.shape)) > 1 or len(matrix) < FEWEST_LAYERS:
        raise ValueError(f"similarity: shape {matrix.shape}, expected a square of at least 3 rows")
    if np.isnan(matrix).any():
        raise ValueError(f"similarity of shape {matrix.shape} has NaN")
    contrasts = _contrasts(matrix)
    best = int(np.argmax(contrasts))
    faded = _contrasts(_by_distance(matrix))
    return Blocks(best + 1, float(contrasts[best]), float(contrasts[best] - faded.max()))


def _contrasts(matrix: np.ndarray) -> np.ndarray:
    """Of every cut, with 1 … n − 1 layers below it."""
    n = len(matrix)
    i, j = np.triu_indices(n, k=1)
    values = matrix[i, j]
    apart = [(i < cut) & (j >= cut) for cut in range(1, n)]
    return np.array([values[~across].mean() - values[across].mean() for across in apart])


def _by_distance(matrix: np.ndarray) -> np.ndarray:
    n = len(matrix)
    means = np.array([np.diagonal(matrix, offset=k).mean() for k in range(n)])
    return means[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))]


def block_numbers(family: pd.DataFrame) -> pd.DataFrame:
    """Block structure of every model with at least three layers, embeddings left out.

    Embeddings are unlike all layers above them, which would make them a block in any model. Of a
    `measure_family` table: ``member``, ``seed``, ``weights``, and as `Blocks`: ``first_above``
    (here the number of the layer), ``contrast``, ``beyond_distance``.
    """
    within = family[(family.relation == "within") & (family.layer > 0) & (family.other_layer > 0)]
    rows = []
    for keys, model in within.groupby(["member", "seed", "weights"], sort=False):
        grid = model.pivot(index="layer", columns="other_layer", values="cka")
        if len(grid) >= FEWEST_LAYERS:
            cut, *numbers = two_blocks(grid)
            rows.append((*keys, grid.index[cut], *numbers))
    return pd.DataFrame(rows, columns=["member", "seed", "weights", *Blocks._fields])


def affinity(family: pd.DataFrame) -> pd.DataFrame:
    """How alike two models are: mean CKA of layers at equal relative depth, without embeddings.

    Of a `measure_family` table: ``relation`` ("members" or "seeds"), ``weights``, ``member``,
    ``other``, ``seed``, ``other_seed``, ``cka``.
    """
    pairs = family[(family.relation != "within") & (family.layer > 0)]
    models = ["relation", "weights", "member", "other", "seed", "other_seed"]
    top = pairs.groupby(models)[["layer", "other_layer"]].transform("max")
    level = (pairs.layer * top.other_layer / top.layer).round()
    return pairs[pairs.other_layer == level].groupby(models, sort=False).cka.mean().reset_index()


def deviance(family: pd.DataFrame) -> pd.DataFrame:
    """How far a member stands apart from the next smaller and the next larger one.

    Of a `measure_family` table, members in order of size: ``member`` (all but the smallest and the
    largest), ``seed``, ``deviance``, which is the affinity of the two neighbours to each other less
    their mean affinity to the member. Where similarity follows size it is negative; above 0, the
    member is skipped over.
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

    One value per member, choice of three of its seeds, and one of these in the middle; empty for
    fewer than three seeds.
    """
    seeds = affinity(family).query("relation == 'seeds'")
    found = []
    for _, pairs in seeds.groupby("member"):
        cka = pairs.pivot(index="seed", columns="other_seed", values="cka")
        numbers = sorted({*pairs.seed, *pairs.other_seed})
        for a, b in combinations(numbers, 2):
            for middle in (m for m in numbers if m not in (a, b)):
                near = [cka.loc[min(x, middle), max(x, middle)] for x in (a, b)]
                found.append(cka.loc[a, b] - sum(near) / 2)
    return pd.Series(found, dtype=float)


def deviance_floor(family: pd.DataFrame) -> float:
    """Root mean square of `seed_deviance`; NaN for fewer than three seeds."""
    return float((seed_deviance(family) ** 2).mean() ** 0.5)
