"""How alike two clouds of the same samples are: correlations, alignment, distances, neighbours.

Each measure is a function, and an object of `MEASURES` that says what it does not see; grids of
layers, and the most alike pair beside shuffled rows, take any of them.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from shrink_utils.geometry.rows import (
    _centred,
    _mean_row,
    _ranked_svd,
    _RankedSVD,
    _same_rows,
    _unit_scale,
    _warn,
)
from shrink_utils.names import known_name
from shrink_utils.topology.arrays import Array, _as_rows, _as_tensor, _unit_rows, _whole_number

_NO_HSIC = 1e-12  # an HSIC₁ below this share of its first term is zero up to rounding
_ROUNDING = 1e-9  # how far above 1 `cka_distance` takes for rounding
# What is equal but for rounding must tie: that of a share of the largest distance, and that of
# unit rows, which are off by this share of their length.
_TIED, _OFF_UNIT = 1e-12, 4e-15
PLACE = ("shift", "rotation", "scale")


# --- canonical correlations: CCA, SVCCA, PWCCA ----------------------------------------------------


def cca(x: Array, y: Array) -> Tensor:
    """Canonical correlations: how well linear functions of x and of y can agree.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample. Centred here.

    Returns
    -------
    Tensor, shape (min(rank x, rank y),), float64
        Descending, in [0, 1] up to rounding (1e-14). Invariant to shifts and to invertible linear
        maps of either side.

    Raises
    ------
    ValueError
        Different numbers of rows, fewer than 2, or a matrix whose rows are all identical.

    Warns
    -----
    UserWarning
        A matrix has fewer directions than columns (constant columns, n ≤ d, dependent columns), or
        rank x + rank y > n − 1: then some correlations are 1 by counting alone.

    Notes
    -----
    With Q an orthonormal basis of the centred columns, they are the singular values of Q_xᵀQ_y
    (Hotelling 1936; Björck & Golub 1973). Directions below 1e-10 of the largest singular value are
    rounding and are left out. Even independent matrices have a mean correlation near √(d/n):
    compare with shuffled rows and take n far above d_x + d_y.

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    >>> cca(x, 3 * x.flip(1) + 1).round()
    tensor([1., 1.], dtype=torch.float64)
    """
    return torch.linalg.svdvals(_between(_prepare_cca(x, "x"), _prepare_cca(y, "y")))


def svcca(x: Array, y: Array, *, variance: float = 0.99) -> float:
    """Mean canonical correlation of the principal directions that hold most of the variance.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        As in `cca`, with its errors and warnings.
    variance : float
        In (0, 1]. On each side the fewest leading directions with Σσ² of at least this share stay.

    Returns
    -------
    float
        In [0, 1] up to rounding. Invariant to shift, rotation and isotropic scaling of either side;
        not to other invertible maps, which change which directions lead.

    Notes
    -----
    Raghu et al. 2017, *SVCCA*, section 2. The share is of variance, Σσ²; the tutorial of the
    authors' code takes it of Σσ, which keeps other directions and gives up to .3 less or more.

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    >>> round(svcca(x, x[:, :1]), 6)
    1.0
    """
    if not isinstance(variance, Real | Tensor) or not 0 < variance <= 1:
        raise ValueError(f"variance must lie above 0 and not above 1, got {variance!r}")
    return _mean_cca(_prepare_svcca(x, "x", variance), _prepare_svcca(y, "y", variance))


def pwcca(x: Array, y: Array, *, symmetric: bool = False) -> float:
    """Projection-weighted mean of the canonical correlations, with the weights of x.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        As in `cca`, with its errors and warnings.
    symmetric : bool
        The mean of PWCCA(x, y) and PWCCA(y, x) instead.

    Returns
    -------
    float
        In [0, 1] up to rounding. Invariant to shifts, to isotropic scaling of either side and to
        invertible linear maps of *y only*: the weights read the columns of x one by one, so that
        even a rotation of x changes them.

    Notes
    -----
    ρ̄ = Σα_iρ_i / Σα_i with α_i = Σ_j |⟨h_i, x_j⟩|, where h_i, of unit length, is the i-th canonical
    variate of x and x_j the j-th column of centred x (Morcos, Raghu & Bengio 2018). Where
    correlations coincide, the weights are not unique. The authors' reference implementation gives
    other numbers, .003 to .03 apart: it takes the weights from the side with fewer columns, by
    directions that are not whitened and activations that are not centred.

    Examples
    --------
    >>> import torch
    >>> x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    >>> round(pwcca(x, x @ torch.tensor([[2.0, 1.0], [0.0, 1.0]])), 6)
    1.0
    """
    first, second = _prepare_cca(x, "x"), _prepare_cca(y, "y")
    value = _weighted_mean(first, second)
    return (value + _weighted_mean(second, first)) / 2 if symmetric else value


def _prepare_cca(x: Array, name: str = "x") -> _RankedSVD:
    """Decompose one centred matrix."""
    rows = _as_rows(x, min_rows=2, name=name)
    svd = _ranked_svd(_unit_scale(rows, center=True, name=name))
    if len(svd.sigma) < rows.shape[1]:
        _warn(
            f"{name} of shape {tuple(rows.shape)} has {len(svd.sigma)} linearly independent "
            "direction(s) above 1e-10 of the longest, fewer than columns: canonical correlations "
            "are of these alone; scale the columns if they are in different units"
        )
    return svd


def _prepare_svcca(x: Array, name: str = "x", variance: float = 0.99) -> _RankedSVD:
    """Decompose one matrix, and keep the fewest leading directions with this much variance."""
    svd = _prepare_cca(x, name)
    held = svd.sigma.square().cumsum(0)
    # What is left out may be more than the rest by rounding: shares that are just met stay so.
    k = int((held[-1] - held > (1 - variance) * held[-1] * (1 + 1e-12)).sum()) + 1
    return _RankedSVD(svd.basis[:, :k], svd.sigma[:k], svd.axes[:k])


def _weighted_mean(x: _RankedSVD, y: _RankedSVD) -> float:
    """PWCCA of two decomposed matrices, with the weights of the first."""
    variates, rho, _ = torch.linalg.svd(_between(x, y), full_matrices=False)
    # ⟨h_i, x_j⟩ with h = basis · variates and x = basis · diag(σ) · axes. (r, d_x)
    inner = (variates.T * x.sigma) @ x.axes
    weights = inner.abs().sum(dim=1)
    return float(weights @ rho / weights.sum())


def _between(x: _RankedSVD, y: _RankedSVD) -> Tensor:
    """Inner products of two bases of column spaces, (r_x, r_y)."""
    n, rank_x, rank_y = len(x.basis), len(x.sigma), len(y.sigma)
    _same_rows(n, len(y.basis))
    forced = rank_x + rank_y - (n - 1)
    if forced > 0:
        _warn(
            f"x and y have {rank_x} and {rank_y} directions over {n} rows: {forced} canonical "
            "correlation(s) are 1 by counting alone (rank x + rank y > n − 1); take more rows"
        )
    return x.basis.T @ y.basis


def _mean_cca(x: _RankedSVD, y: _RankedSVD) -> float:
    return float(torch.linalg.svdvals(_between(x, y)).mean())


# --- linear centred kernel alignment, and a distance made of it -----------------------------------


class _Centred(NamedTuple):
    """What one matrix brings to the comparison."""

    rows: Tensor  # (n, d), column means zero, largest entry one
    squares: Tensor  # (n,), squared lengths of the rows
    gram: Tensor | None  # X Xᵀ, (n, n), where it is smaller than XᵀX
    debiased: bool
    own: float  # HSIC of the matrix with itself


def cka(x: Array, y: Array, *, debiased: bool = False) -> float:
    """Linear centred kernel alignment of two representations of the same samples.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample. Centred here.
    debiased : bool
        From the unbiased estimates of the three HSIC (needs n ≥ 4).

    Returns
    -------
    float
        Biased: in [0, 1], and well above 0 for independent matrices unless n ≫ d. Debiased: in
        [−1, 1], near 0 for independent matrices, slightly negative half the time. Nothing is
        clamped. Invariant to shift, rotation and isotropic scaling of either side; not to other
        linear maps.

    Raises
    ------
    ValueError
        Different numbers of rows, too few, or a matrix whose rows are all identical.

    Warns
    -----
    UserWarning
        Debiased only, with the result NaN: the unbiased HSIC of a matrix with itself is 0 (mutually
        equidistant rows, such as an identity matrix), so there is nothing to divide by.

    Notes
    -----
    Biased: ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖) for centred columns (Kornblith et al. 2019, section 3). Debiased:
    HSIC₁(X, Y) over the root of HSIC₁(X, X) · HSIC₁(Y, Y) (Song et al. 2012). For centred rows with
    squared lengths k_i = ‖x_i‖², l_i = ‖y_i‖² it simplifies to

    n(n − 3) HSIC₁ = ‖XᵀY‖² − n/(n − 2) Σk_i l_i + Σk_i Σl_i / ((n − 1)(n − 2)).

    O(n d_x d_y) time and, for n < d, ‖XᵀY‖² = ⟨X Xᵀ, Y Yᵀ⟩ in O(n² d): the smaller matrix is held.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    >>> round(cka(x, 5 * x + 1), 6), round(cka(x, x[:, :1]), 4)
    (1.0, 0.7071)
    """
    return _compare_cka(
        _prepare_cka(x, "x", debiased=debiased), _prepare_cka(y, "y", debiased=debiased)
    )


def cka_distance(ckas: Array) -> float:
    """Distance between two models of equal depth from the CKA of their layers, √Σ arccos(CKA_l)².

    Parameters
    ----------
    ckas : array_like, shape (layers,)
        CKA of layer l of one model with layer l of the other.

    Returns
    -------
    float
        In radians: 0 for models alike up to rotation and scale, at most π/2 √layers for biased CKA.

    Raises
    ------
    ValueError
        No layers, NaN, or values outside [−1, 1] by more than 1e-9, which rounding does not reach.

    References
    ----------
    Brown et al. 2023; that arccos of CKA is a metric: Williams et al. 2021.

    Examples
    --------
    >>> round(cka_distance([1.0, 0.5, 0.0]), 4)
    1.8879
    """
    values = _as_rows(_as_tensor(ckas, "ckas").reshape(1, -1), name="ckas")
    if values.abs().max() > 1 + _ROUNDING:
        raise ValueError(f"ckas must lie in [−1, 1], got {values.flatten().tolist()}")
    return float(torch.linalg.vector_norm(values.clamp(-1, 1).arccos()))


def _prepare_cka(x: Array, name: str = "x", *, debiased: bool = False) -> _Centred:
    """Centre and scale one matrix, and take its HSIC with itself."""
    rows = _as_rows(x, min_rows=4 if debiased else 2, name=name)
    rows = _unit_scale(rows, center=True, name=name)
    n, d = rows.shape
    gram = rows @ rows.T if n < d else None
    squares = rows.square().sum(dim=1) if gram is None else gram.diagonal()
    prepared = _Centred(rows, squares, gram, debiased, math.nan)
    own, cross = _hsic(prepared, prepared)
    return prepared._replace(own=own if own > _NO_HSIC * cross else 0.0)


def _compare_cka(x: _Centred, y: _Centred) -> float:
    """CKA of two prepared matrices."""
    _same_rows(len(x.rows), len(y.rows))
    if x.own <= 0 or y.own <= 0:
        _warn(
            f"CKA is NaN: the unbiased HSIC of {'x' if x.own <= 0 else 'y'} with itself is 0, as "
            "for mutually equidistant rows, so its alignment with anything is undefined; take more "
            "rows"
        )
        return math.nan
    return _hsic(x, y)[0] / (math.sqrt(x.own) * math.sqrt(y.own))


def _hsic(x: _Centred, y: _Centred) -> tuple[float, float]:
    """n(n − 3) HSIC₁, or (n − 1)² times the biased HSIC₀: the factor cancels in CKA; and ‖XᵀY‖²."""
    if x.gram is not None and y.gram is not None:  # ‖XᵀY‖² = ⟨X Xᵀ, Y Yᵀ⟩
        cross = float(torch.vdot(x.gram.flatten(), y.gram.flatten()))
    else:
        cross = float((x.rows.T @ y.rows).square().sum())
    if not x.debiased:
        return cross, cross
    n, both, apart = len(x.rows), x.squares @ y.squares, x.squares.sum() * y.squares.sum()
    return float(cross - n / (n - 2) * both + apart / ((n - 1) * (n - 2))), cross


# --- are the same pairs of rows far apart (RSA), and the same rows near (shared neighbours)? ------


class _Ranks(NamedTuple):
    """What one matrix brings to the comparison."""

    n: int
    ranks: Tensor  # (n(n − 1)/2,), centred and of length one


def rsa(x: Array, y: Array) -> float:
    """Spearman correlation between the cosine distances of all pairs of rows, in x and in y.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample; at least 3 rows, none of them zero.

    Returns
    -------
    float
        In [−1, 1], up to rounding (1e-15). Invariant to a rotation of either space and to the
        length of every single row; not to a shift and not to other linear maps.

    Raises
    ------
    ValueError
        Zero rows, different numbers of rows, fewer than 3, or all pairs at the same distance, which
        leaves nothing to order.

    Notes
    -----
    Distances 1 − cos of the pairs i < j are rounded to 12 decimals of the largest before they are
    ranked, tied ones sharing their mean rank: otherwise rounding decides the order of pairs that
    are equal. They are taken as ‖x̂ − ŷ‖²/2, which keeps their digits where all cosines are near 1.
    O(n²d) time and O(n²) memory. Repeated rows raise the correlation. Kriegeskorte, Mur &
    Bandettini 2008, *Representational similarity analysis*.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> round(rsa(x, 3 * x), 6)
    1.0
    """
    return _compare_rsa(_prepare_rsa(x, "x"), _prepare_rsa(y, "y"))


def _prepare_rsa(x: Array, name: str = "x") -> _Ranks:
    """Rank the pairs of one matrix."""
    steps = _cosine_steps(_unit_rows(_as_rows(x, min_rows=3, name=name), name=name)).cpu().numpy()
    n = len(steps)
    ranks = torch.from_numpy(rankdata(steps[np.triu_indices(n, 1)]))
    ranks -= ranks.mean()
    if not ranks.any():
        raise ValueError(
            f"{name} has all {len(ranks)} pairs of its {n} rows at the same cosine distance: "
            "there is no order to compare"
        )
    return _Ranks(n, ranks / torch.linalg.vector_norm(ranks))


def _cosine_steps(x: Tensor, y: Tensor | None = None) -> Tensor:
    """Distances 1 − cos of unit rows, of x and y or of x alone, (n, m), in whole steps.

    A step is what rounding can tell apart. ‖x̂ − ŷ‖²/2 by products of centred rows: what cancels is
    relative to the largest distance.
    """
    if y is None:
        x = y = _centred(x)
    else:
        mean = _mean_row(y)
        x, y = x - mean, y - mean
    distances = x.square().sum(dim=1)[:, None] / 2 + y.square().sum(dim=1) / 2 - x @ y.T
    largest = float(distances.max())
    step = max(_TIED * largest, _OFF_UNIT * math.sqrt(max(largest, 0.0)))
    return (distances / step).round() if step > 0 else torch.zeros_like(distances)


def _compare_rsa(x: _Ranks, y: _Ranks) -> float:
    """Correlate the ranks of two matrices."""
    _same_rows(x.n, y.n)
    return float(x.ranks @ y.ranks)


def mutual_knn(x: Array, y: Array, *, k: int = 10) -> float:
    """Share of the k nearest neighbours of a row in x that are also its nearest in y.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample; none of them zero.
    k : int
        Neighbours per row by cosine, the row itself left out; from 1 to n − 2.

    Returns
    -------
    float
        In [0, 1]: the mean over rows, k/(n − 1) on average over all orders of the rows of y.
        Invariant to a rotation of either space, to the length of every single row and to an order
        of the rows that both have; not to a shift.

    Raises
    ------
    ValueError
        Zero rows, different numbers of rows, all pairs at the same distance, or a `k` that leaves
        nothing to choose.

    Notes
    -----
    Rows that are equally far share the places that are left among the k: each counts as a part of
    a neighbour, so that no order of rows matters (and a matrix with such ties shares less than 1
    with itself). O(n²d) time and O(n²) memory. Huh et al. 2024, *The Platonic Representation
    Hypothesis*, section 2.

    Examples
    --------
    >>> import torch
    >>> angle = torch.arange(6) ** 1.5 / 10
    >>> x = torch.stack([angle.cos(), angle.sin()], dim=1)
    >>> mutual_knn(x, x.flip(1), k=2)
    1.0
    """
    return _compare_neighbours(_prepare_neighbours(x, "x", k=k), _prepare_neighbours(y, "y", k=k))


def _prepare_neighbours(x: Array, name: str = "x", *, k: int = 10) -> Tensor:
    """Of one matrix (n, n), what row j is of the k nearest of row i: 1, 0, or by ties a part."""
    x = _unit_rows(_as_rows(x, min_rows=3, name=name), name=name)
    if not 1 <= _whole_number(k, "k") <= len(x) - 2:
        raise ValueError(f"k must lie between 1 and n − 2 = {len(x) - 2}, got {k}")
    distances = _cosine_steps(x).fill_diagonal_(-math.inf)
    farthest = distances.amax(dim=1)
    if (farthest == distances.fill_diagonal_(math.inf).amin(dim=1)).all():
        raise ValueError(f"{name} has all {len(x)} rows at the same cosine distance: none is near")
    return _nearest_shares(distances, k)


def _nearest_shares(distances: Tensor, k: int) -> Tensor:
    """What each column is of the k nearest of a row: 1, 0 or, of those tied at the end, a part."""
    last = distances.kthvalue(k, dim=1, keepdim=True).values  # (n, 1)
    nearer, tied = distances < last, distances == last
    places = k - nearer.sum(dim=1, keepdim=True)
    return nearer + tied * (places.double() / tied.sum(dim=1, keepdim=True))


def _compare_neighbours(x: Tensor, y: Tensor) -> float:
    """Share of the neighbours that two matrices have in common."""
    _same_rows(len(x), len(y))
    return float(x.flatten() @ y.flatten()) / float(x.sum())


# --- the measures as objects, and grids of layers -------------------------------------------------


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
