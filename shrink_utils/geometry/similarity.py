"""Is one space like another? RSA, CCA, CKA, shared neighbours, grids of layers, alignments."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

from shrink_utils.geometry.rows import (
    RankedSVD,
    centred,
    in_range,
    largest_entry,
    mean_row,
    ranked_svd,
    same_rows,
    unit_scale,
    warn,
)
from shrink_utils.names import known_name
from shrink_utils.topology.arrays import Array, as_rows, as_tensor, unit_rows, whole_number

# What is equal but for rounding must tie: that of a share of the largest distance, and that of
# unit rows, which are off by this share of their length.
_TIED, _OFF_UNIT = 1e-12, 4e-15


class Ranks(NamedTuple):
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
    """
    return compare_rsa(prepare_rsa(x, "x"), prepare_rsa(y, "y"))


def prepare_rsa(x: Array, name: str = "x") -> Ranks:
    """Rank the pairs of one matrix."""
    steps = _cosine_steps(unit_rows(as_rows(x, min_rows=3, name=name), name=name)).cpu().numpy()
    n = len(steps)
    ranks = torch.from_numpy(rankdata(steps[np.triu_indices(n, 1)]))
    ranks -= ranks.mean()
    if not ranks.any():
        raise ValueError(
            f"{name} has all {len(ranks)} pairs of its {n} rows at the same cosine distance: "
            "there is no order to compare"
        )
    return Ranks(n, ranks / torch.linalg.vector_norm(ranks))


def _cosine_steps(x: Tensor) -> Tensor:
    """Distances 1 − cos of unit rows, (n, n), in whole steps of what rounding can tell apart.

    ‖x̂ − ŷ‖²/2 by products of centred rows: what cancels is relative to the largest distance.
    """
    x = centred(x)
    half = x.square().sum(dim=1) / 2
    distances = half[:, None] + half - x @ x.T
    largest = float(distances.max())
    step = max(_TIED * largest, _OFF_UNIT * math.sqrt(max(largest, 0.0)))
    return (distances / step).round() if step > 0 else torch.zeros_like(distances)


def compare_rsa(x: Ranks, y: Ranks) -> float:
    """Correlate the ranks of two matrices."""
    same_rows(x.n, y.n)
    return float(x.ranks @ y.ranks)


_NO_HSIC = 1e-12  # an HSIC₁ below this share of its first term is zero up to rounding
_ROUNDING = 1e-9  # how far above 1 `cka_distance` takes for rounding


class Centred(NamedTuple):
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
    """
    return compare_cka(
        prepare_cka(x, "x", debiased=debiased), prepare_cka(y, "y", debiased=debiased)
    )


def minibatch_cka(batches: Iterable[tuple[Array, Array]]) -> float:
    """Estimate debiased CKA from batches, without ever holding all rows.

    Parameters
    ----------
    batches : iterable of (x, y)
        The same samples in both, (b, d_x) and (b, d_y), at least 4 per batch. Every batch counts
        the same. Leave padding out: a padded position is a row like any other.

    Returns
    -------
    float
        In [−1, 1] up to rounding: mean HSIC₁(x, y) over √(mean HSIC₁(x, x) · mean HSIC₁(y, y)), not
        a mean of ratios. It is only near `cka(…, debiased=True)` on all rows.

    Raises
    ------
    ValueError
        No batch, a batch of fewer than 4 rows, or a batch whose two sides differ in rows.

    Warns
    -----
    UserWarning
        With the result NaN: a mean HSIC₁ of one side with itself is 0.

    References
    ----------
    Nguyen, Raghu & Kornblith 2021, section 3. Brown et al. 2023 print the formula without the
    root, with which two copies of one matrix would not have similarity 1.
    """
    terms, scales = [], []
    for x, y in batches:
        (x, scale_x), (y, scale_y) = _own_scale(x, "x"), _own_scale(y, "y")
        same_rows(len(x.rows), len(y.rows))
        n, between = len(x.rows), _hsic(x, y)[0]
        terms.append([hsic / (n * (n - 3)) for hsic in (between, x.own, y.own)])
        scales.append([scale_x, scale_y])
    if not terms:
        raise ValueError("batches is empty: CKA needs at least one batch of 4 rows")
    # HSIC grows with the square of each side's scale; each is taken relative to the largest.
    relative = torch.tensor(scales, dtype=torch.float64)
    relative = (relative / relative.amax(dim=0)).nan_to_num()  # (batches, 2)
    x2, y2 = relative.square().unbind(dim=1)
    weights = torch.stack([x2 * y2, x2 * x2, y2 * y2], dim=1)
    xy, xx, yy = (weights * torch.tensor(terms, dtype=torch.float64)).mean(dim=0).tolist()
    return _cka_of_hsic(xy, xx, yy)


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
    """
    values = as_rows(as_tensor(ckas, "ckas").reshape(1, -1), name="ckas")
    if values.abs().max() > 1 + _ROUNDING:
        raise ValueError(f"ckas must lie in [−1, 1], got {values.flatten().tolist()}")
    return float(torch.linalg.vector_norm(values.clamp(-1, 1).arccos()))


def prepare_cka(x: Array, name: str = "x", *, debiased: bool = False) -> Centred:
    """Centre and scale one matrix, and take its HSIC with itself."""
    rows = as_rows(x, min_rows=4 if debiased else 2, name=name)
    return _with_own(unit_scale(rows, center=True, name=name), debiased)


def compare_cka(x: Centred, y: Centred) -> float:
    """CKA of two prepared matrices."""
    same_rows(len(x.rows), len(y.rows))
    return _cka_of_hsic(_hsic(x, y)[0], x.own, y.own)


def _own_scale(x: Array, name: str) -> tuple[Centred, float]:
    """A batch centred and scaled, and by what; identical rows are allowed and contribute 0."""
    rows = as_rows(x, min_rows=4, name=name)
    size = largest_entry(rows) or 1.0
    return _with_own(centred(rows / size), debiased=True), size


def _with_own(rows: Tensor, debiased: bool) -> Centred:
    n, d = rows.shape
    gram = rows @ rows.T if n < d else None
    squares = rows.square().sum(dim=1) if gram is None else gram.diagonal()
    x = Centred(rows, squares, gram, debiased, math.nan)
    own, cross = _hsic(x, x)
    return x._replace(own=own if own > _NO_HSIC * cross else 0.0)


def _hsic(x: Centred, y: Centred) -> tuple[float, float]:
    """n(n − 3) HSIC₁, or (n − 1)² times the biased HSIC₀: the factor cancels in CKA; and ‖XᵀY‖²."""
    if x.gram is not None and y.gram is not None:  # ‖XᵀY‖² = ⟨X Xᵀ, Y Yᵀ⟩
        cross = float(torch.vdot(x.gram.flatten(), y.gram.flatten()))
    else:
        cross = float((x.rows.T @ y.rows).square().sum())
    if not x.debiased:
        return cross, cross
    n, both, apart = len(x.rows), x.squares @ y.squares, x.squares.sum() * y.squares.sum()
    return float(cross - n / (n - 2) * both + apart / ((n - 1) * (n - 2))), cross


def _cka_of_hsic(xy: float, xx: float, yy: float) -> float:
    """CKA from the HSIC of x with y, of x with itself and of y with itself; NaN with a warning."""
    if xx <= 0 or yy <= 0:
        warn(
            f"CKA is NaN: the unbiased HSIC of {'x' if xx <= 0 else 'y'} with itself is 0, as for "
            "mutually equidistant rows, so its alignment with anything is undefined; take more "
            "rows"
        )
        return math.nan
    return xy / (math.sqrt(xx) * math.sqrt(yy))


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
    """
    return torch.linalg.svdvals(_between(prepare_cca(x, "x"), prepare_cca(y, "y")))


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
    """
    if not isinstance(variance, Real | Tensor) or not 0 < variance <= 1:
        raise ValueError(f"variance must lie above 0 and not above 1, got {variance!r}")
    prepared = [leading(prepare_cca(m, name), variance) for m, name in ((x, "x"), (y, "y"))]
    return _mean_cca(*prepared)


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
    """
    first, second = prepare_cca(x, "x"), prepare_cca(y, "y")
    value = weighted_mean(first, second)
    return (value + weighted_mean(second, first)) / 2 if symmetric else value


def prepare_cca(x: Array, name: str = "x") -> RankedSVD:
    """Decompose one centred matrix."""
    rows = as_rows(x, min_rows=2, name=name)
    svd = ranked_svd(unit_scale(rows, center=True, name=name))
    if len(svd.sigma) < rows.shape[1]:
        warn(
            f"{name} of shape {tuple(rows.shape)} has {len(svd.sigma)} linearly independent "
            "direction(s) above 1e-10 of the longest, fewer than columns: canonical correlations "
            "are of these alone; scale the columns if they are in different units"
        )
    return svd


def leading(svd: RankedSVD, variance: float) -> RankedSVD:
    """Keep the fewest leading directions with this share of the variance."""
    held = svd.sigma.square().cumsum(0)
    k = int((held < variance * held[-1]).sum()) + 1
    return RankedSVD(svd.basis[:, :k], svd.sigma[:k], svd.axes[:k])


def weighted_mean(x: RankedSVD, y: RankedSVD) -> float:
    """PWCCA of two decomposed matrices, with the weights of the first."""
    variates, rho, _ = torch.linalg.svd(_between(x, y), full_matrices=False)
    # ⟨h_i, x_j⟩ with h = basis · variates and x = basis · diag(σ) · axes. (r, d_x)
    inner = (variates.T * x.sigma) @ x.axes
    weights = inner.abs().sum(dim=1)
    return float(weights @ rho / weights.sum())


def _between(x: RankedSVD, y: RankedSVD) -> Tensor:
    """Inner products of two bases of column spaces, (r_x, r_y)."""
    n, rank_x, rank_y = len(x.basis), len(x.sigma), len(y.sigma)
    same_rows(n, len(y.basis))
    forced = rank_x + rank_y - (n - 1)
    if forced > 0:
        warn(
            f"x and y have {rank_x} and {rank_y} directions over {n} rows: {forced} canonical "
            "correlation(s) are 1 by counting alone (rank x + rank y > n − 1); take more rows"
        )
    return x.basis.T @ y.basis


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
        In [0, 1]: the mean over rows, k/(n − 1) on average for independent matrices. Invariant to
        a rotation of either space and to the length of every single row; not to a shift.

    Raises
    ------
    ValueError
        Zero rows, different numbers of rows, all pairs at the same distance, or a `k` that leaves
        nothing to choose.

    Notes
    -----
    Of neighbours at the same distance any may be taken. O(n²d) time and O(n²) memory. Huh et al.
    2024, *The Platonic Representation Hypothesis*, section 2.
    """
    return compare_neighbours(prepare_neighbours(x, "x", k=k), prepare_neighbours(y, "y", k=k))


def prepare_neighbours(x: Array, name: str = "x", *, k: int = 10) -> Tensor:
    """Of one matrix (n, n), one where row j is among the k nearest of row i."""
    x = unit_rows(as_rows(x, min_rows=3, name=name), name=name)
    if not 1 <= whole_number(k, "k") <= len(x) - 2:
        raise ValueError(f"k must lie between 1 and n − 2 = {len(x) - 2}, got {k}")
    distances = _cosine_steps(x).fill_diagonal_(-math.inf)
    farthest = distances.amax(dim=1)
    if (farthest == distances.fill_diagonal_(math.inf).amin(dim=1)).all():
        raise ValueError(f"{name} has all {len(x)} rows at the same cosine distance: none is near")
    nearest = distances.topk(k, largest=False).indices
    return torch.zeros_like(distances).scatter_(1, nearest, 1.0)


def compare_neighbours(x: Tensor, y: Tensor) -> float:
    """Share of the neighbours that two matrices have in common."""
    same_rows(len(x), len(y))
    return float(x.flatten() @ y.flatten()) / float(x.sum())


def _mean_cca(x: RankedSVD, y: RankedSVD) -> float:
    return float(torch.linalg.svdvals(_between(x, y)).mean())


# What one matrix needs, and what two prepared ones give.
MEASURES: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], float]]] = {
    "rsa": (prepare_rsa, compare_rsa),
    "cca": (prepare_cca, _mean_cca),
    "svcca": (lambda x, name: leading(prepare_cca(x, name), 0.99), _mean_cca),
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


@dataclass(frozen=True)
class Alignment:
    """An affine map between two spaces, fitted on one set of rows and good for others."""

    matrix: Tensor  # (d_x, d_y), applied to the right of centred rows
    x_mean: Tensor  # (d_x,), of the rows that it was fitted on
    y_mean: Tensor  # (d_y,)

    def __call__(self, x: Array) -> Tensor:
        """Map rows (n, d_x) into the other space, (n, d_y)."""
        x = as_rows(x)
        if x.shape[1] != len(self.x_mean):
            raise ValueError(f"x needs {len(self.x_mean)} columns, got shape {tuple(x.shape)}")
        return in_range((x - self.x_mean) @ self.matrix + self.y_mean, "mapped rows")

    def explained(self, x: Array, y: Array) -> float:
        """Share of the variance of y that mapped x explains, 1 − Σ‖Â(x) − y‖² / Σ‖y − ȳ‖².

        ȳ is the mean of the rows of the fit. At most 1; negative where the map does worse than that
        constant. Take held-out rows (n, d_x) and (n, d_y): on those of the fit it flatters the map.
        """
        mapped, y = self(x), as_rows(y, name="y")
        if mapped.shape != y.shape:
            raise ValueError(
                f"y needs shape {tuple(mapped.shape)} to go with x, got {tuple(y.shape)}"
            )
        size = (y - self.y_mean).abs().max()
        if size == 0:
            raise ValueError(f"y of shape {tuple(y.shape)} does not differ from the fitted mean")
        missed, spread = (mapped - y) / size, (y - self.y_mean) / size
        return float(1 - missed.square().sum() / spread.square().sum())


def procrustes(x: Array, y: Array, *, scaling: bool = False) -> Alignment:
    """The rotation (or reflection) that carries x closest to y, means onto each other.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample.
    scaling : bool
        Also fit one factor for all lengths. By default none is fitted: distances stay as they are.

    Raises
    ------
    ValueError
        Different numbers of rows, fewer than 2, or a matrix whose rows are all identical.

    Notes
    -----
    With centred X, Y and XᵀY = U S Vᵀ, the matrix is R = U Vᵀ, times tr S / ‖X R‖² when scaling
    (Schönemann 1966; Schönemann & Carroll 1970). Spaces of different width: R has orthonormal rows
    or columns, whichever are fewer. For d_x > d_y it is the rotation that is best when y is padded
    with zero columns; what of x it moves into the padding is dropped.
    """
    (x, x_size, x_mean), (y, y_size, y_mean) = _side(x, "x"), _side(y, "y")
    same_rows(len(x), len(y))
    u, s, vt = torch.linalg.svd(x.T @ y, full_matrices=False)
    matrix = u @ vt  # (d_x, d_y)
    if scaling:
        matrix = matrix * (y_size / x_size * s.sum() / (x @ matrix).square().sum())
    return Alignment(in_range(matrix, "factors between x and y"), x_mean, y_mean)


def affine(x: Array, y: Array) -> Alignment:
    """The affine map of x that is closest to y in least squares.

    Parameters
    ----------
    x, y : array_like, shapes (n, d_x) and (n, d_y)
        Row i of both is the same sample.

    Returns
    -------
    Alignment
        Of all least-squares solutions that of least norm: directions in which the rows of the fit
        do not vary, or by a singular value below 1e-10 of the largest, are mapped to nothing.

    Raises
    ------
    ValueError
        Different numbers of rows, fewer than 2, or a matrix whose rows are all identical.

    Warns
    -----
    UserWarning
        n − 1 ≤ d_x: the map then goes through the rows of the fit, whatever they are, and only
        other rows can tell whether it means anything. Or some of what is below 1e-10 is more than
        rounding, as where columns are in very different units: scale the columns then.
    """
    (x, x_size, x_mean), (y, y_size, y_mean) = _side(x, "x"), _side(y, "y")
    same_rows(len(x), len(y))
    n, d = x.shape
    if n - 1 <= d:
        warn(
            f"x of shape ({n}, {d}) has too few rows for an affine map: with n − 1 ≤ d it goes "
            "through all of them; judge it on other rows"
        )
    svd = ranked_svd(x)
    if len(svd.sigma) < min(n - 1, d):
        left_out = torch.linalg.matrix_norm(x - svd.basis * svd.sigma @ svd.axes)
        offset = 1 + float(x_mean.abs().max() / x_size)  # entries were rounded before the centring
        if left_out > max(n, d) * torch.finfo(x.dtype).eps * offset * svd.sigma[0]:
            warn(
                f"x of shape ({n}, {d}) varies in {len(svd.sigma)} direction(s) above 1e-10 of the "
                "longest, and by more than rounding in others, which the map takes to nothing; "
                "scale the columns if they are in different units"
            )
    inverse = svd.axes.T / svd.sigma @ svd.basis.T  # (d_x, n)
    matrix = inverse @ y * (y_size / x_size)
    return Alignment(in_range(matrix, "factors between x and y"), x_mean, y_mean)


def _side(x: Array, name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, size and mean of mean + size · rows, with rows centred and their largest entry one."""
    x = as_rows(x, min_rows=2, name=name)
    mean = in_range(mean_row(x), f"sums of {name}")
    return unit_scale(x, center=True, name=name), (x - mean).abs().max(), mean
