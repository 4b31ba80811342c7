"""Similarity of every layer with every other, and of the most alike pair beside shuffled rows."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from shrink_utils.geometry.similarity.cca import leading, mean_cca, prepare_cca, weighted_mean
from shrink_utils.geometry.similarity.cka import compare_cka, prepare_cka
from shrink_utils.geometry.similarity.neighbours import compare_neighbours, prepare_neighbours
from shrink_utils.geometry.similarity.rsa import compare_rsa, prepare_rsa
from shrink_utils.names import known_name
from shrink_utils.topology.arrays import Array, as_rows, whole_number

# What one matrix needs, and what two prepared ones give.
MEASURES: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], float]]] = {
    "rsa": (prepare_rsa, compare_rsa),
    "cca": (prepare_cca, mean_cca),
    "svcca": (lambda x, name: leading(prepare_cca(x, name), 0.99), mean_cca),
    "pwcca": (prepare_cca, weighted_mean),
    "cka": (prepare_cka, compare_cka),
    "cka_debiased": (partial(prepare_cka, debiased=True), compare_cka),
    "mutual_knn": (prepare_neighbours, compare_neighbours),
}


def similarity_grid(
    measure: str, xs: Sequence[Array] | Tensor, ys: Sequence[Array] | Tensor | None = None
) -> Tensor:
    """Similarity of every matrix of `xs` with every matrix of `ys`, each prepared once.

    Parameters
    ----------
    measure : {"rsa", "cca", "svcca", "pwcca", "cka", "cka_debiased", "mutual_knn"}
        "cca" is the mean canonical correlation, "svcca" keeps .99 of the variance, "pwcca" has its
        weights from `xs`, "mutual_knn" has 10 neighbours.
    xs, ys : sequence of array_like, each (n, d), or Tensor (layers, n, d)
        Layers of two models over the same n samples; `ys` of None compares `xs` with itself.

    Returns
    -------
    Tensor, shape (len(xs), len(ys)), float64

    Raises
    ------
    ValueError
        An unknown measure, no layers, or what the measure itself refuses; the message names the
        layer.

    Warns
    -----
    UserWarning
        Where the measure does.
    """
    prepare = MEASURES[known_name("measure", "measure", measure, MEASURES)][0]
    if len(xs) == 0 or (ys is not None and len(ys) == 0):
        raise ValueError("xs and ys need at least one layer each, got none")
    first = [prepare(x, f"xs[{i}]") for i, x in enumerate(xs)]
    second = first if ys is None else [prepare(y, f"ys[{i}]") for i, y in enumerate(ys)]
    return _prepared_grid(measure, first, second)


def _prepared_grid(measure: str, xs: list, ys: list) -> Tensor:
    """`similarity_grid` of layers that the measure has prepared."""
    compare = MEASURES[measure][1]
    mirrored = ys is xs and measure != "pwcca"  # the others do not depend on the side
    other = "xs" if ys is xs else "ys"
    grid = torch.empty(len(xs), len(ys), dtype=torch.float64)
    for i, x in enumerate(xs):
        for j, y in enumerate(ys):
            try:
                grid[i, j] = grid[j, i] if mirrored and j < i else compare(x, y)
            except ValueError as error:
                raise ValueError(f"xs[{i}] beside {other}[{j}]: {error}") from error
    return grid


class Calibrated(NamedTuple):
    """The greatest similarity over pairs of layers, and what the search alone finds."""

    value: float  # the greatest of all pairs
    layers: tuple[int, int]  # where it is found
    null: float  # mean of the greatest over shuffled rows
    calibrated: float  # (value − null) / (1 − null)
    p: float  # of as great a value among shuffled rows, one-sided


def calibrated_maximum(
    measure: str,
    xs: Sequence[Array] | Tensor,
    ys: Sequence[Array] | Tensor,
    *,
    permutations: int = 99,
    seed: int = 0,
) -> Calibrated:
    """The most alike pair of layers of two models, beside the most alike pair of shuffled rows.

    Parameters
    ----------
    measure, xs, ys
        As for `similarity_grid`; one layer on both sides calibrates a single similarity.
    permutations : int
        How often the rows of all `xs` are shuffled, in one order for all layers.
    seed : int
        Of the orders.

    Returns
    -------
    Calibrated
        1 for equal layers and 0 on average for independent models, however many layers are searched
        and however wide they are. Not cut at 0.

    Raises
    ------
    ValueError
        As `similarity_grid`, fewer than one permutation, or so few rows that shuffled ones are
        equal to the measure.

    Notes
    -----
    A maximum over layers grows with their number, and a biased similarity with their width. The
    same search of shuffled rows has both. After Gröger, Wen & Brbić 2026, arXiv 2602.14486.
    """
    permutations = whole_number(permutations, "permutations", 1)
    xs = [as_rows(x, name=f"xs[{i}]") for i, x in enumerate(xs)]
    grid = similarity_grid(measure, xs, ys)
    value, best = float(grid.max()), divmod(int(grid.argmax()), grid.shape[1])
    rng = np.random.default_rng(seed)
    orders = [torch.from_numpy(rng.permutation(len(xs[0]))) for _ in range(permutations)]
    prepare = MEASURES[measure][0]
    second = [prepare(y, f"ys[{i}]") for i, y in enumerate(ys)]  # once for all orders
    shuffled = ([prepare(x[order], "shuffled xs") for x in xs] for order in orders)
    nulls = [float(_prepared_grid(measure, first, second).max()) for first in shuffled]
    null, above = float(np.mean(nulls)), sum(found >= value for found in nulls)
    if null > 1 - 1e-9:
        raise ValueError(f"shuffled rows have {measure} 1: of {len(xs[0])} rows, take more")
    scaled = (value - null) / (1 - null)
    return Calibrated(value, best, null, scaled, (1 + above) / (1 + permutations))
