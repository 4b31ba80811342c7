"""Isotropy from cosines and distances, from singular values, and within and between classes."""

import math
from numbers import Real
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from shrink_utils.geometry.rows import _as_labels, _centred, _in_range, _jackknifed, _unit_scale
from shrink_utils.topology.arrays import (
    Array,
    _as_rows,
    _power_of_two,
    _safe_unit,
    _unit_rows,
    _whole_number,
)
from shrink_utils.topology.entropy import entropy_of

UNDEFINED = (
    "the bias-corrected form is undefined for these {n} rows: it divides by an estimate of "
    "‖C‖_F² that is 0: differences of pairs without a common row are all orthogonal (equidistant "
    "rows, or identical ones but for one); take more rows, or bias_corrected=False"
)


class Estimate(NamedTuple):
    """A value and its standard error (NaN where the sample allows none)."""

    value: float
    stderr: float


def avg_sim(x: Array, *, groups: Array | None = None) -> Estimate:
    """Average cosine similarity between different rows, over all pairs, with its standard error.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples, none of them zero.
    groups : array_like, shape (n,), optional
        A label per row, such as the sentence of a token. Only pairs of rows from different groups
        count, and the jackknife leaves out a group at a time, because rows of one group depend on
        each other. By default every row is its own group.

    Returns
    -------
    Estimate
        ``value`` in [−1, 1]; ``stderr``, the delete-one (group) jackknife standard error, NaN with
        two groups (leaving one out leaves no pair).

    Raises
    ------
    ValueError
        Zero rows, a length of `groups` other than n, or fewer than two groups.

    Notes
    -----
    With x̂ the unit rows, u_s their sum over group s of n_s rows and S = Σ_s u_s,
    value = (‖S‖² − Σ_s‖u_s‖²) / (n² − Σ_s n_s²). Leaving out group g turns the numerator T into
    T − 2⟨S, u_g⟩ + 2‖u_g‖² and the denominator P into P − 2n·n_g + 2n_g²: O(nd) in all.
    Ethayarajh 2019, *How Contextual are Contextualized Word Representations?*, section 3.4.

    Examples
    --------
    >>> avg_sim([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]).value
    -0.3333333333333333
    """
    value, left_out = _avg_sims(x, groups)
    g = len(left_out)
    if g < 3:
        return Estimate(float(value), math.nan)
    return Estimate(float(value), float(_jackknifed(value, left_out).std()) / math.sqrt(g))


def avg_sim_pseudo_values(x: Array, *, groups: Array | None = None) -> Tensor:
    """Jackknife pseudo-values of `avg_sim`, one per group: Gθ − (G − 1)θ₍₋g₎.

    Parameters
    ----------
    x, groups
        As in `avg_sim`, with at least three groups.

    Returns
    -------
    Tensor, shape (groups,), float64
        Sorted by label (rows in their order without groups). Their mean is θ up to the bias that a
        jackknife removes (Tukey 1958), its standard error the one of `avg_sim`. Differences of them
        between two clouds of the same samples are paired, group by group.

    Raises
    ------
    ValueError
        As `avg_sim`, or two groups only.

    Examples
    --------
    >>> avg_sim_pseudo_values([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    tensor([ 1.,  1., -1.], dtype=torch.float64)
    """
    value, left_out = _avg_sims(x, groups)
    g = len(left_out)
    if g < 3:
        raise ValueError(f"groups needs at least 3 different labels to leave one out, got {g}")
    return _jackknifed(value, left_out)


def _avg_sims(x: Array, groups: Array | None) -> tuple[Tensor, Tensor]:
    """The average, (), and the averages without one group after the other, (groups,)."""
    x = _unit_rows(_as_rows(x, min_rows=2))
    sums, sizes = _group_sums(x, groups)
    if len(sums) < 2:
        raise ValueError(f"groups needs at least 2 different labels, got 1 for {len(x)} rows")
    n, total = sizes.sum(), sums.sum(dim=0)
    squares = sums.square().sum(dim=1)  # (groups,)
    dots, pairs = _between_groups(total, squares.sum()), n**2 - sizes.square().sum()
    left_out = (dots - 2 * (sums @ total - squares)) / (pairs - 2 * (n * sizes - sizes.square()))
    return dots / pairs, left_out


def _between_groups(total: Tensor, squares: Tensor) -> Tensor:
    """Sum of ⟨x, y⟩ over ordered pairs of different groups: ‖Σ_s u_s‖² − Σ_s‖u_s‖².

    In the graph of both: the metric and the penalty of average cosines use it, too.
    """
    return total.square().sum() - squares


def _group_sums(x: Tensor, groups: Array | None) -> tuple[Tensor, Tensor]:
    """Sum of the rows of each group, (groups, d), and how many they are, (groups,)."""
    if groups is None:
        return x, x.new_ones(len(x))
    labels, index = _as_labels(groups, len(x), name="groups", device=x.device)
    sums = x.new_zeros(len(labels), x.shape[1]).index_add_(0, index, x)
    return sums, torch.bincount(index, minlength=len(labels)).to(x.dtype)


def rogue_dimensions(x: Array) -> Tensor:
    """Contribution of each dimension to the average cosine similarity of all pairs.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples, none of them zero; at least two.

    Returns
    -------
    Tensor, shape (d,), float64
        CC_i = ((Σx̂_i)² − Σx̂_i²) / (n² − n), whose sum is ``avg_sim(x).value``. A dimension can
        contribute negatively, though never below −1/(n − 1).

    Raises
    ------
    ValueError
        Zero rows, or fewer than two rows.

    References
    ----------
    Timkey & van Schijndel 2021, *All Bark and No Bite*, equation 3; here over all pairs, not
    sampled ones.

    Examples
    --------
    >>> rogue_dimensions([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    tensor([0.3333, 0.0000], dtype=torch.float64)
    """
    x = _unit_rows(_as_rows(x, min_rows=2))
    n = len(x)
    return (x.sum(dim=0).square() - x.square().sum(dim=0)) / (n * n - n)


def partition_isotropy(x: Array) -> float:
    """Log of the isotropy I(W) = min_c F(c) / max_c F(c), with F(c) = Σ_w exp(⟨w, c⟩).

    Parameters
    ----------
    x : array_like, shape (n, d)
        W: rows are vectors. Neither centred nor scaled here, and the result depends on both.

    Returns
    -------
    float
        log I(W) ≤ 0; 0 is perfect isotropy.

    Notes
    -----
    c runs over both signs of the unit eigenvectors of WᵀW, so that the result does not depend on
    the sign that an eigensolver happens to return. Where non-zero eigenvalues coincide, the
    value is not unique. Mu & Viswanath 2018, *All-but-the-Top*, equation 2; the logarithm because
    I(W) itself underflows on raw vectors of transformers.

    Examples
    --------
    >>> partition_isotropy([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    0.0
    """
    x = _as_rows(x)
    scaled = x / _power_of_two(x)  # its squares stay in float64, and the axes are those of x
    axes = torch.linalg.eigh(scaled.T @ scaled).eigenvectors
    projections = _in_range(x @ axes, "projections of x")  # (n, d)
    log_f = torch.logsumexp(torch.cat([projections, -projections], dim=1), dim=0)  # (2d,)
    return float(log_f.min() - log_f.max())


def mean_squared_distance(x: Array) -> float:
    """Mean squared Euclidean distance over all pairs of different rows, 2 tr C with ddof 1.

    Where it is too large for float64, as for entries of 1e160, it is a ``ValueError``.

    Examples
    --------
    >>> mean_squared_distance([[0.0], [3.0]])
    9.0
    """
    x = _as_rows(x, min_rows=2)
    unit = _power_of_two(x)
    squared = 2 * _centred(x / unit).square().sum() / (len(x) - 1) * unit * unit
    return float(_in_range(squared, "squared distances of x"))


def pair_distances(x: Array, *, n_pairs: int = 10_000, seed: int = 0) -> Tensor:
    """Cosine distances, 1 − cos, of pairs of different rows, drawn uniformly with replacement.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples, none of them zero; at least two.
    seed : int
        The draw depends on nothing else but n.

    Returns
    -------
    Tensor, shape (n_pairs,), float64
        In [0, 2].

    Raises
    ------
    ValueError
        Zero rows, or `n_pairs` below one.

    Examples
    --------
    >>> pair_distances([[1.0, 0.0], [-2.0, 0.0]], n_pairs=3)
    tensor([2., 2., 2.], dtype=torch.float64)
    """
    x = _unit_rows(_as_rows(x, min_rows=2))
    n_pairs = _whole_number(n_pairs, "n_pairs", 1)
    rng = np.random.default_rng(_whole_number(seed, "seed"))
    first = rng.integers(len(x), size=n_pairs)
    second = (first + rng.integers(1, len(x), size=n_pairs)) % len(x)  # any row but the first
    # ‖x̂ − ŷ‖² = 2 − 2 cos, without the cancellation of 1 − cos near zero.
    return torch.linalg.vector_norm(x[first] - x[second], dim=1).square() / 2


def _gram(x: Tensor) -> Tensor:
    """XXᵀ or XᵀX, whichever is smaller: both have the non-zero σ² as eigenvalues."""
    return x @ x.T if x.shape[0] <= x.shape[1] else x.T @ x


def anisotropy(x: Array, *, k: int = 3, center: bool = False) -> Tensor:
    """First `k` anisotropy scores, σ_k² / Σσ²: the share of each leading direction.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples.
    k : int
        How many scores, at most min(n, d).
    center : bool
        Subtract the mean row first.

    Returns
    -------
    Tensor, shape (k,), float64
        Descending; all min(n, d) of them sum to one.

    Raises
    ------
    ValueError
        `k` outside 1 … min(n, d), or nothing to share out: `x` all zero or, centred, all rows
        identical.

    Notes
    -----
    Kudriashov et al. 2025, *Shrink the longest*, Table 3, after Razzhigaev et al. 2024. From the
    smaller Gram matrix, which a step of training can afford: good to about 1e-16.

    Examples
    --------
    >>> anisotropy([[3.0, 0.0], [0.0, 1.0], [-3.0, 0.0], [0.0, -1.0]], k=2)
    tensor([0.9000, 0.1000], dtype=torch.float64)
    """
    x = _as_rows(x)
    _check_k(k, min(x.shape), f"for x of shape {tuple(x.shape)}")
    squared = torch.linalg.eigvalsh(_gram(_unit_scale(x, center=center))).clamp(min=0).flip(0)
    return _leading_shares(squared, k)


def _check_k(k: int, most: int, where: str) -> None:
    """Refuse another number of scores than there are."""
    if not 1 <= _whole_number(k, "k") <= most:
        raise ValueError(f"k must be between 1 and min(n, d) = {most}, got {k} {where}")


def _leading_shares(squared: Tensor, k: int) -> Tensor:
    """σ_k² / Σσ² from all σ², descending: (k,)."""
    return squared[:k] / squared.sum()


def participation_ratio(x: Array, *, bias_corrected: bool = False) -> float:
    """Participation ratio of the covariance, PR = (tr C)² / ‖C‖_F²: how many directions take part.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples; at least two, or four for the corrected form.
    bias_corrected : bool
        Replace both traces by their unbiased estimates.

    Returns
    -------
    float
        Plug-in: between 1 and min(n − 1, d), and far below the population's value unless n ≫ d.
        Corrected: close to the population's value on average, and may leave [1, d].

    Raises
    ------
    ValueError
        Too few rows, or all rows identical. In the corrected form also where the estimate of
        ‖C‖_F² vanishes: mutually equidistant rows, or identical ones but for one.

    Notes
    -----
    The corrected form assumes independent rows with fourth moments and no Gaussian shape. With S
    the sample covariance and Q = Σ‖x_i − x̄‖⁴ / (n − 1),

    - (tr C)² is estimated by f · [(n² − 3n + 1)(tr S)² + 2 tr S² − nQ],
    - ‖C‖_F² by f · [(n − 1)(n − 2) tr S² + (tr S)² − nQ], with f = (n − 1) / (n(n − 2)(n − 3)).

    Each is unbiased; their ratio is so to first order only (Himeno & Yamada 2014, J. Multivariate
    Analysis 130).

    Examples
    --------
    >>> round(participation_ratio([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]), 6)
    2.0
    """
    x = _unit_scale(_as_rows(x, min_rows=4 if bias_corrected else 2), center=True)
    n = x.shape[0]
    squares = x.square().sum(dim=1)  # (n,)
    trace = squares.sum() / (n - 1)
    frobenius = (_gram(x) / (n - 1)).square().sum()
    if not bias_corrected:
        return float(_participation(trace, frobenius))
    squared_trace = trace.square()
    fourth = n * squares.square().sum() / (n - 1)  # nQ; f drops out of the ratio
    above = (n * n - 3 * n + 1) * squared_trace + 2 * frobenius - fourth
    plug_in = (n - 1) * (n - 2) * frobenius + squared_trace
    below = plug_in - fourth
    if below <= 1e-12 * plug_in:  # zero, up to rounding
        raise ValueError(UNDEFINED.format(n=n))
    return float(above / below)


def iso_score(x: Array, *, bias_corrected: bool = False) -> float:
    """IsoScore: the share of the d dimensions that the cloud uses, (PR − 1) / (d − 1).

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples; d ≥ 2.
    bias_corrected : bool
        Use the bias-corrected participation ratio (needs n ≥ 4). The plug-in score of a perfectly
        isotropic cloud is near .5 when n = d; the corrected one is near 1, above it half the time.

    Returns
    -------
    float
        0 for a line, 1 for a covariance that is a multiple of the identity.

    Raises
    ------
    ValueError
        Too few rows or columns, all rows identical, or the corrected form is undefined.

    References
    ----------
    Rudman et al. 2022, *IsoScore*. Their seven steps (PCA, normalized eigenvalues, distance to
    the uniform spectrum) simplify to this.

    Examples
    --------
    >>> round(iso_score([[3.0, 0.0], [0.0, 1.0], [-3.0, 0.0], [0.0, -1.0]]), 4)
    0.2195
    """
    x = _as_rows(x, min_columns=2)
    return float(_used_share(participation_ratio(x, bias_corrected=bias_corrected), x.shape[1]))


# The two formulas stay in the graph: the penalty and the metric of these names use them, too.
def _participation(trace: Tensor, squared_norm: Tensor) -> Tensor:
    """(tr C)² / ‖C‖_F², in any unit."""
    return trace.square() / squared_norm


def _used_share(ratio: Tensor | float, d: int) -> Tensor | float:
    """IsoScore of d dimensions with this participation ratio."""
    return (ratio - 1) / (d - 1)


def effective_rank(x: Array, *, center: bool = True) -> float:
    """Effective rank: exp of the entropy of the singular values taken as a distribution, σ/Σσ.

    Parameters
    ----------
    x : array_like, shape (n, d)
    center : bool
        Subtract the mean row first.

    Returns
    -------
    float
        Between 1 and the rank of (centred) `x`.

    Raises
    ------
    ValueError
        `x` all zero or, centred, all rows identical.

    References
    ----------
    Roy & Vetterli 2007, *The effective rank*; Garrido et al. 2023, *RankMe*, equation 1 (without
    its ε: here 0 · ln 0 = 0).

    Examples
    --------
    >>> round(effective_rank([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]), 6)
    2.0
    """
    x = _as_rows(x)
    # Not from a Gram matrix: √ of its rounding would count null directions at 1e-8 each.
    sigma = torch.linalg.svdvals(_unit_scale(x, center=center))
    return float(entropy_of(sigma).exp())


def within_classes(x: Array, labels: Array) -> Tensor:
    """Rows less the mean row of their class: what the pooled within-class covariance is of.

    ``anisotropy(within_classes(x, labels), k=1)`` is the first score inside classes, which does
    not see how far the classes lie apart.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples.
    labels : array_like, shape (n,)
        Class of each row.

    Returns
    -------
    Tensor, shape (n, d), float64

    Raises
    ------
    ValueError
        `x` is no finite matrix, or `labels` are not one per row.

    Examples
    --------
    >>> within_classes([[1.0], [3.0], [10.0]], ["a", "a", "b"])
    tensor([[-1.],
            [ 1.],
            [ 0.]], dtype=torch.float64)
    """
    x = _as_rows(x)
    classes, index = _as_labels(labels, len(x), name="labels", device=x.device)
    within = torch.empty_like(x)
    for c in range(len(classes)):
        within[index == c] = _centred(x[index == c])
    return _in_range(within, "differences of rows")


def between_share(x: Array, labels: Array) -> float:
    """Share of the total variance that lies between the class means, tr S_B / tr S_T.

    Parameters are those of `within_classes`.

    Returns
    -------
    float
        0 where all classes have one mean, 1 where all rows of a class are equal.

    Raises
    ------
    ValueError
        As `within_classes`; or all rows are identical.

    References
    ----------
    Fisher's decomposition S_T = S_W + S_B; the share is η² of a one-way analysis of variance.

    Examples
    --------
    >>> round(between_share([[-3.0], [-1.0], [1.0], [3.0]], [0, 0, 1, 1]), 6)
    0.8
    """
    x = _as_rows(x)
    x = x / _safe_unit(x)
    within, total = within_classes(x, labels), _centred(x).square().sum()
    if total == 0:
        raise ValueError(f"x of shape {tuple(within.shape)} has no variance (its rows are equal)")
    return 1.0 - float(within.square().sum() / total)


def elongated_directions(x: Array, *, ratio: float = 5.0) -> int:
    """How many eigenvalues of the covariance exceed `ratio` times their mean.

    Parameters
    ----------
    x : array_like, shape (n, d)
        Rows are samples; at least two.
    ratio : float
        Above 0.

    Returns
    -------
    int
        At most d / `ratio`, because all eigenvalues together are d means.

    Raises
    ------
    ValueError
        Fewer than two rows, all rows identical, or an impossible `ratio`.

    Notes
    -----
    The mean is over all d eigenvalues, those that are zero too. The largest eigenvalue of n ≫ 1
    isotropic rows is near (1 + √(d/n))² means (Marchenko & Pastur), above 5 when n < .65 d: take
    n ≥ d, and show an isotropic cloud of the same shape beside it. After Rajaee & Pilehvar 2021.

    Examples
    --------
    >>> elongated_directions([[9.0, 0.0], [0.0, 1.0], [-9.0, 0.0], [0.0, -1.0]], ratio=1.5)
    1
    """
    if not isinstance(ratio, Real | Tensor) or not ratio > 0:
        raise ValueError(f"ratio must be a number above 0, got {ratio!r}")
    x = _as_rows(x, min_rows=2)
    shares = anisotropy(x, k=min(x.shape), center=True)  # of the sum, d means
    return int((shares * x.shape[1] > ratio * (1 + 1e-12)).sum())  # not by rounding alone
