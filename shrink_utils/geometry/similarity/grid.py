"""Every layer of one model against every layer of another, each layer prepared once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.similarity.cca import (
    correlations,
    leading,
    prepare_cca,
    weighted_mean,
)
from shrink_utils.geometry.similarity.cka import compare_cka, prepare_cka
from shrink_utils.geometry.similarity.rsa import compare_rsa, prepare_rsa
from shrink_utils.names import unknown_name

__all__ = ["MEASURES", "similarity_grid"]


class Measure(NamedTuple):
    """A measure in two steps: what one matrix needs, and what two prepared ones give."""

    prepare: Callable[[ArrayLike | Tensor, str], Any]
    compare: Callable[[Any, Any], float]


def _mean_cca(x: Any, y: Any) -> float:
    return float(correlations(x, y).mean())


def _svcca_side(x: ArrayLike | Tensor, name: str) -> Any:
    return leading(prepare_cca(x, name), 0.99)


MEASURES = {
    "rsa": Measure(prepare_rsa, compare_rsa),
    "cca": Measure(prepare_cca, _mean_cca),
    "svcca": Measure(_svcca_side, _mean_cca),
    "pwcca": Measure(prepare_cca, weighted_mean),
    "cka": Measure(prepare_cka, compare_cka),
    "cka_debiased": Measure(partial(prepare_cka, debiased=True), compare_cka),
}


def similarity_grid(
    measure: str,
    xs: Sequence[ArrayLike | Tensor] | Tensor,
    ys: Sequence[ArrayLike | Tensor] | Tensor | None = None,
) -> Tensor:
    """Similarity of every matrix of `xs` with every matrix of `ys`.

    Parameters
    ----------
    measure : {"rsa", "cca", "svcca", "pwcca", "cka", "cka_debiased"}
        "cca" is the mean canonical correlation, "svcca" keeps .99 of the variance, "pwcca" has its
        weights from `xs`.
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
        As the measure itself.
    """
    if measure not in MEASURES:
        raise unknown_name("measure", "measure", measure, MEASURES)
    if len(xs) == 0 or (ys is not None and len(ys) == 0):
        raise ValueError("xs and ys need at least one layer each, got none")
    prepare, compare = MEASURES[measure]
    first = [prepare(x, f"xs[{i}]") for i, x in enumerate(xs)]
    second = first if ys is None else [prepare(y, f"ys[{i}]") for i, y in enumerate(ys)]
    mirrored = ys is None and measure != "pwcca"  # the others do not depend on the side
    grid = torch.empty(len(first), len(second), dtype=torch.float64)
    for i, x in enumerate(first):
        for j, y in enumerate(second):
            grid[i, j] = grid[j, i] if mirrored and j < i else compare(x, y)
    return grid
