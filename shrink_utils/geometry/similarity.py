"""Measures of similarity as objects; grids of layers; the most alike pair beside shuffled rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from shrink_utils.geometry.cca import _mean_cca, _prepare_cca, _prepare_svcca, _weighted_mean
from shrink_utils.geometry.cka import _compare_cka, _prepare_cka
from shrink_utils.geometry.rsa import (
    _compare_neighbours,
    _compare_rsa,
    _prepare_neighbours,
    _prepare_rsa,
)
from shrink_utils.names import known_name
from shrink_utils.topology.arrays import Array, _as_rows, _whole_number

PLACE = ("shift", "rotation", "scale")


@dataclass(frozen=True)
class SimilarityMeasure:
    """A measure of similarity of two spaces: what it does, and what it does not see.

    Called with x (n, d_x) and y (n, d_y), rows of the same samples, it is the measure itself.

    To add one, write its two functions, name it in `MEASURES`, and list it in the room: grids,
    calibration and the tests of all similarities then take it too.

    Examples
    --------
    >>> measure = MEASURES["cka"]
    >>> measure.symmetric, measure.ignores
    (True, ('shift', 'rotation', 'scale'))
    >>> measure([[1.0], [2.0], [4.0]], [[2.0], [4.0], [8.0]])
    1.0
    """

    prepare: Callable[[Array, str], Any]  # what one matrix, of this name, brings
    compare: Callable[[Any, Any], float]  # the measure of two prepared ones
    # What may be done to x without a change: "shift", one vector added to all rows; "rotation";
    # "scale"; "row lengths", a factor above 0 for each row; "linear", an invertible map.
    ignores: tuple[str, ...]
    symmetric: bool = True  # whether x and y may change places

    def __call__(self, x: Array, y: Array) -> float:
        return self.compare(self.prepare(x, "x"), self.prepare(y, "y"))


MEASURES = {
    "rsa": SimilarityMeasure(_prepare_rsa, _compare_rsa, ("rotation", "scale", "row lengths")),
    "cca": SimilarityMeasure(_prepare_cca, _mean_cca, (*PLACE, "linear")),
    "svcca": SimilarityMeasure(_prepare_svcca, _mean_cca, PLACE),
    "pwcca": SimilarityMeasure(_prepare_cca, _weighted_mean, ("shift", "scale"), symmetric=False),
    "cka": SimilarityMeasure(_prepare_cka, _compare_cka, PLACE),
    "cka_debiased": SimilarityMeasure(partial(_prepare_cka, debiased=True), _compare_cka, PLACE),
    "mutual_knn": SimilarityMeasure(
        _prepare_neighbours, _compare_neighbours, ("rotation", "scale", "row lengths")
    ),
}


def similarity_grid(
    measure: str, xs: Sequence[Array] | Tensor, ys: Sequence[Array] | Tensor | None = None
) -> Tensor:
    """Similarity of every matrix of `xs` with every matrix of `ys`, each prepared once.

    Parameters
    ----------
    measure : str
        A key of `MEASURES`. "cca" is the mean canonical correlation, "svcca" keeps .99 of the
        variance, "pwcca" has its weights from `xs`, "mutual_knn" has 10 neighbours.
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

    Examples
    --------
    >>> import torch
    >>> first = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> similarity_grid("cka", [first, 2 * first + 1]).round()
    tensor([[1., 1.],
            [1., 1.]], dtype=torch.float64)
    """
    prepare = MEASURES[known_name("measure", "measure", measure, MEASURES)].prepare
    if len(xs) == 0 or (ys is not None and len(ys) == 0):
        raise ValueError("xs and ys need at least one layer each, got none")
    first = [prepare(x, f"xs[{i}]") for i, x in enumerate(xs)]
    second = first if ys is None else [prepare(y, f"ys[{i}]") for i, y in enumerate(ys)]
    return _prepared_grid(measure, first, second)


def _prepared_grid(measure: str, xs: list, ys: list) -> Tensor:
    """`similarity_grid` of layers that the measure has prepared."""
    compare = MEASURES[measure].compare
    mirrored = ys is xs and MEASURES[measure].symmetric
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

    Examples
    --------
    >>> import torch
    >>> x, y = torch.randn(2, 50, 8, generator=torch.Generator().manual_seed(0))
    >>> found = calibrated_maximum("cka", [x], [y, x], permutations=19)
    >>> found.layers, round(found.calibrated, 6), found.p
    ((0, 1), 1.0, 0.05)
    """
    permutations = _whole_number(permutations, "permutations", 1)
    xs = [_as_rows(x, name=f"xs[{i}]") for i, x in enumerate(xs)]
    grid = similarity_grid(measure, xs, ys)
    if grid.isnan().any():
        i, j = grid.isnan().nonzero()[0].tolist()
        raise ValueError(f"xs[{i}] beside ys[{j}]: {measure} is undefined; leave the layer out")
    value, best = float(grid.max()), divmod(int(grid.argmax()), grid.shape[1])
    rng = np.random.default_rng(_whole_number(seed, "seed"))
    orders = [torch.from_numpy(rng.permutation(len(xs[0]))) for _ in range(permutations)]
    prepare = MEASURES[measure].prepare
    second = [prepare(y, f"ys[{i}]") for i, y in enumerate(ys)]  # once for all orders
    shuffled = ([prepare(x[order], "shuffled xs") for x in xs] for order in orders)
    nulls = [float(_prepared_grid(measure, first, second).max()) for first in shuffled]
    null, above = float(np.mean(nulls)), sum(found >= value for found in nulls)
    if null > 1 - 1e-9:
        raise ValueError(f"shuffled rows have {measure} 1: of {len(xs[0])} rows, take more")
    scaled = (value - null) / (1 - null)
    return Calibrated(value, best, null, scaled, (1 + above) / (1 + permutations))
