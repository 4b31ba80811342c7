"""Maps that make a finished space easier to search, fitted on some rows, and search by few bits."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from shrink_utils.geometry.maps import Alignment, Treatment, _side, principal_axes
from shrink_utils.geometry.rows import _in_range, _mean_row, _ranked_svd, _warn
from shrink_utils.geometry.similarity import _cosine_steps, _nearest_shares
from shrink_utils.topology.arrays import (
    Array,
    _as_rows,
    _as_tensor,
    _power_of_two,
    _unit_rows,
    _whole_number,
)


def whitening(x: Array, *, cut: float = 1e-9) -> Alignment:
    """The map after which all directions of a cloud have variance one, and no correlation.

    Parameters
    ----------
    x : array_like, shape (n, d)
        The rows to fit on, some times as many as columns.
    cut : float
        Directions with less than this share of the largest variance are left out; from 0 to below
        1. Whitened, they would weigh as much as all others, and what they hold is rounding: three
        of the 384 columns of MiniLM's vectors are constant.

    Returns
    -------
    Alignment
        ``whitening(x)(y)`` maps rows (m, d), those of the fit or others, to (m, r), by falling
        variance of the r directions that are kept.

    Raises
    ------
    ValueError
        Fewer than two rows, all of them identical, or a `cut` out of range.

    Warns
    -----
    UserWarning
        n − 1 ≤ d: any two rows of the fit then have the same cosine, whatever they are.

    Notes
    -----
    y ↦ (y − μ) V diag(1/s), with μ the mean of the fit, V its principal directions (d, r) and s²
    their variances, by n − 1. Su et al. 2021, *Whitening Sentence Representations for Better
    Semantics and Faster Retrieval*, by way of the covariance.

    Examples
    --------
    >>> import torch
    >>> noise = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))
    >>> x = noise * torch.tensor([9, 1, 0])
    >>> whitened = whitening(x)(x)
    >>> whitened.shape, whitened.std(dim=0)
    (torch.Size([500, 2]), tensor([1.0000, 1.0000], dtype=torch.float64))
    """
    if not isinstance(cut, int | float) or not 0 <= cut < 1:
        raise ValueError(f"cut must be a share of the largest variance, in [0, 1), got {cut!r}")
    x = _as_rows(x, min_rows=2)
    n, d = x.shape
    if n - 1 <= d:
        _warn(
            f"x of shape ({n}, {d}) has too few rows to whiten by: with n − 1 ≤ d all of them are "
            "equally far from each other afterwards; fit on more rows"
        )
    x, size, mean = _side(x, "x")
    svd = _ranked_svd(x)
    kept = svd.sigma.square() >= cut * svd.sigma[0].square()
    matrix = svd.axes[kept].T / svd.sigma[kept] * (math.sqrt(n - 1) / size)  # (d, r)
    return Alignment(_in_range(matrix, "factors of x"), mean, matrix.new_zeros(matrix.shape[1]))


def all_but_the_top(x: Array, *, remove: int = 3) -> Treatment:
    """The map that subtracts the mean of a cloud and removes its first principal components.

    Parameters
    ----------
    x : array_like, shape (n, d)
        The rows to fit on.
    remove : int
        How many directions; Mu & Viswanath take about d/100.

    Returns
    -------
    Treatment
        ``all_but_the_top(x)(y)`` maps rows (m, d) to (m, d).

    Raises
    ------
    ValueError
        The rows vary in fewer directions than are to be removed.

    Notes
    -----
    Mu & Viswanath 2018, *All-but-the-Top*, algorithm 1. By cluster, or without the strongest:
    `principal_axes`.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[5.0, 1.0, 0.0], [-5.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, -1.0]])
    >>> all_but_the_top(x, remove=1)(x).abs().amax(dim=0)
    tensor([0., 1., 1.], dtype=torch.float64)
    """
    return principal_axes(x).treatment(remove=remove)


def random_rotation(x: Array, *, seed: int = 0) -> Alignment:
    """The map that subtracts the mean of a cloud and turns it at random.

    Cosines after it are those of the centred rows. The signs of single columns are not: after a
    rotation no column lies to one side or holds most of the variance, and bits tell more.

    Parameters
    ----------
    x : array_like, shape (n, d)
        The rows to fit on; only their mean counts.
    seed : int
        Of the rotation, which is uniform among all (Haar).

    Returns
    -------
    Alignment
        ``random_rotation(x)(y)`` maps rows (m, d) to (m, d). After a `whitening` w, fit it on w(x).

    Raises
    ------
    ValueError
        No row, or a seed that is no whole number.

    Notes
    -----
    Gong et al. 2013, *Iterative Quantization*, section 3, have it as the start of their codes.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([[3.0, 7.0], [3.0, 9.0]])
    >>> torch.allclose(random_rotation(x)(x).norm(dim=1), torch.ones(2).double())
    True
    """
    x = _as_rows(x)
    generator = torch.Generator().manual_seed(_whole_number(seed, "seed"))
    drawn = torch.randn(2 * x.shape[1:], generator=generator, dtype=x.dtype, device="cpu")
    q, r = torch.linalg.qr(drawn)
    turn = (q * r.diagonal().sign()).to(x.device)  # without the signs q is not uniform
    return Alignment(turn, _mean_row(x), x.new_zeros(len(turn)))


@dataclass(frozen=True)
class SearchResult:
    """The nearest rows of a corpus to each query.

    Examples
    --------
    >>> import torch
    >>> labels = torch.tensor([0, 0, 1])
    >>> found = search(torch.tensor([[1.0, 0.0], [0.9, 0.1], [-1.0, 0.0]]), k=1)
    >>> found.rows.flatten(), found.precision(labels[:, None] == labels)
    (tensor([1, 0, 1]), tensor([1., 1., 0.], dtype=torch.float64))
    """

    rows: Tensor  # (queries, k) long: rows of the corpus, nearest first; of equals the first
    similarity: Tensor  # (queries, k): their cosines, of the vectors that were compared last
    shares: Tensor  # (queries, corpus): 1 among the k nearest, else 0; where tied, their part

    def recall(self, relevant: Array) -> Tensor:
        """Share (queries,) of the relevant rows of each query that are among its k nearest.

        Parameters
        ----------
        relevant : array_like
            Rows of the corpus, (queries,) or (queries, m) whole numbers; or (queries, corpus)
            booleans. Rows that are tied at the last place count in part, so that the order of the
            corpus does not matter.

        Raises
        ------
        ValueError
            Another shape, a row that the corpus has not, or a query without a relevant row.
        """
        wanted = self._mask(relevant)
        if (none := ~wanted.any(dim=1)).any():
            raise ValueError(
                f"relevant has no row for {int(none.sum())} of {len(none)} queries, the first is "
                f"query {int(none.int().argmax())}; leave these out"
            )
        return (self.shares * wanted).sum(dim=1) / wanted.sum(dim=1)

    def precision(self, relevant: Array) -> Tensor:
        """Share (queries,) of the k nearest that are relevant, such as those of the same class.

        Parameters
        ----------
        relevant : array_like
            As in `recall`; ``labels[:, None] == corpus_labels`` for classes.

        Raises
        ------
        ValueError
            Another shape, or a row that the corpus has not.
        """
        return (self.shares * self._mask(relevant)).sum(dim=1) / self.rows.shape[1]

    def _mask(self, relevant: Array) -> Tensor:
        """Booleans (queries, corpus)."""
        given = _as_tensor(relevant, "relevant").to(self.shares.device)
        n_queries, n = self.shares.shape
        if given.dtype == torch.bool and given.shape == self.shares.shape:
            return given
        # Zeros and ones of that shape are booleans that lost their dtype, not rows 0 and 1.
        ones = given.shape == self.shares.shape and n > 2 and bool((given <= 1).all())
        real = given.dtype.is_floating_point or given.dtype == torch.bool
        if ones or real or len(given) != n_queries:
            raise ValueError(
                f"relevant needs rows of the corpus for each of {n_queries} queries, or booleans "
                f"of shape {(n_queries, n)}; got {given.dtype} of shape {tuple(given.shape)}"
            )
        given = given.reshape(n_queries, -1).long()
        if given.numel() and not 0 <= int(given.min()) <= int(given.max()) < n:
            raise ValueError(
                f"relevant has row {int(given[(given < 0) | (given >= n)][0])}; the corpus has "
                f"rows 0 to {n - 1}"
            )
        return torch.zeros_like(self.shares, dtype=torch.bool).scatter_(1, given, True)


def search(
    queries: Array,
    corpus: Array | None = None,
    *,
    k: int = 10,
    bits: int | None = None,
    rescore: int | None = None,
    calibration: Array | None = None,
) -> SearchResult:
    """The k rows of a corpus nearest to each query by cosine, of vectors kept in few bits or whole.

    Parameters
    ----------
    queries : array_like, shape (q, d)
        One row per query.
    corpus : array_like, shape (n, d), optional
        None: the queries look among each other, each without itself.
    k : int
        How many.
    bits : int or None
        Per dimension: None, all of them; 1, the sign, so that the order is that of the Hamming
        distance; 8, 255 steps between the least and the largest value of a dimension.
    rescore : int, optional
        Of so many nearest by bits (and those tied with the last), the k nearest by full vectors.
    calibration : array_like, shape (m, d), optional
        The rows that `bits` 8 takes least and largest values from; others are clipped. None: the
        corpus.

    Returns
    -------
    SearchResult
        ``.rows`` and ``.similarity`` (q, k), and ``.recall`` and ``.precision``.

    Raises
    ------
    ValueError
        Different columns, a zero row, which has no cosine, other `bits`, `k` above the rows that
        can be found, or `rescore` below `k` or without `bits`.

    Notes
    -----
    O(q n) memory: give many queries in parts. Rows that are equally far count in parts
    (`SearchResult.shares`). Bits, calibration and rescoring are those of sentence-transformers'
    ``quantize_embeddings`` and ``semantic_search_faiss``, but that 8 bits are rounded, clipped, and
    compared at their place and not from the middle of the range.

    Examples
    --------
    >>> import torch
    >>> corpus = torch.tensor([[1.0, 1.0], [1.0, 0.2], [-1.0, 1.0]])
    >>> found = search(torch.tensor([[1.0, 0.1]]), corpus, k=1)
    >>> found.rows, found.recall([1])
    (tensor([[1]]), tensor([1.], dtype=torch.float64))
    >>> search(torch.tensor([[1.0, 0.1]]), corpus, k=1, bits=1).recall([1])  # tied with row 0
    tensor([0.5000], dtype=torch.float64)
    """
    queries, alone = _as_rows(queries, name="queries"), corpus is None
    corpus = queries if corpus is None else _as_rows(corpus, name="corpus").to(queries.device)
    ranges = corpus if calibration is None else _as_rows(calibration, name="calibration")
    for name, x in (("corpus", corpus), ("calibration", ranges)):
        if x.shape[1] != queries.shape[1]:
            raise ValueError(
                f"{name} of shape {tuple(x.shape)} has other columns than queries, "
                f"{tuple(queries.shape)}"
            )
    most = len(corpus) - alone
    if not 1 <= _whole_number(k, "k") <= most:
        raise ValueError(f"k must lie between 1 and {most}, the rows that can be found; got {k}")
    if bits not in (None, 1, 8) or isinstance(bits, bool):
        raise ValueError(f"bits must be 1, 8, or None for full precision; got {bits!r}")
    if rescore is not None and not (bits and k <= _whole_number(rescore, "rescore") <= most):
        raise ValueError(f"rescore needs bits, and k = {k} to {most} candidates; got {rescore}")
    if calibration is not None and bits != 8:
        raise ValueError(f"calibration is for bits=8, which has ranges; got bits={bits}")
    distances, vectors = _compare(queries, corpus, bits, ranges, alone=alone)
    if rescore is not None:
        candidates = _nearest_shares(distances, rescore) > 0
        distances, vectors = _compare(queries, corpus, None, ranges, alone=alone)
        distances.masked_fill_(~candidates, torch.inf)
    shares = _nearest_shares(distances, k)
    most = int((shares > 0).sum(dim=1).max())  # with those tied at the end
    rows = distances.topk(most, largest=False).indices.sort(dim=1).values
    rows = rows.gather(1, distances.gather(1, rows).argsort(dim=1, stable=True))[:, :k]
    similarity = torch.einsum("qd,qkd->qk", vectors[0], vectors[1][rows])
    return SearchResult(rows, similarity, shares)


def _compare(
    queries: Tensor, corpus: Tensor, bits: int | None, ranges: Tensor, *, alone: bool
) -> tuple[Tensor, list[Tensor]]:
    """Distances (q, n) of the coded unit rows of both, and these rows."""
    sides = (("queries", queries), ("corpus", corpus))
    vectors = [_coded(x, name, bits, ranges) for name, x in sides]
    distances = _cosine_steps(*vectors)
    return distances.fill_diagonal_(torch.inf) if alone else distances, vectors


def _coded(x: Tensor, name: str, bits: int | None, ranges: Tensor) -> Tensor:
    """Unit rows of what is left of rows (n, d), kept in so many bits per dimension."""
    if bits is None:
        return _unit_rows(x, name=name)
    if bits == 1:
        return _unit_rows(torch.where(x > 0, 1.0, -1.0).to(x))
    unit = _power_of_two(ranges)
    low, high = (ranges / unit).aminmax(dim=0)
    step = (high - low) / 255
    step = torch.where(step > 0, step, 1.0)
    level = ((x / unit - low) / step).round().clamp(0, 255)
    return _unit_rows(low + step * level, name=name)
