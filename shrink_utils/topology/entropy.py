"""Persistent entropy: how evenly the lengths of a barcode are distributed."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from shrink_utils.topology.arrays import check_lengths, compiled, eager, result_dtype, to_host
from shrink_utils.topology.edges import KnownGradient

# A bar this much shorter than the longest has p ln p = 0 in float64, and ln p on the edge of −∞.
NEGLIGIBLE = float(np.finfo(np.float64).tiny)


@eager
def persistent_entropy(lengths: Tensor) -> Tensor:
    r"""Shannon entropy, in nats, of the lengths of a barcode's bars.

    .. math:: E(\ell) = -\sum_i p_i \ln p_i, \qquad p_i = \ell_i / \textstyle\sum_j \ell_j

    Parameters
    ----------
    lengths : Tensor, shape (m,)
        Bar lengths, finite and not negative, in any order and any unit: E is scale invariant.

    Returns
    -------
    Tensor, shape ()
        E, between 0 (one bar, or none of positive length) and ln m (m equal bars),
        differentiable. Float64 for float64 lengths, else float32; float64 inside.

    Raises
    ------
    ValueError
        If `lengths` is not a vector, or holds a negative, NaN or infinite value.

    Notes
    -----
    With 0 · ln 0 = 0 a bar of length zero adds nothing. The gradient is
    :math:`\partial E / \partial \ell_i = -(\ln p_i + E) / \sum_j \ell_j`: it lengthens the bars
    with :math:`p_i < e^{-E}` and shortens the others. At a zero-length bar, where this diverges,
    the gradient is defined as 0 (Atienza, Gonzalez-Diaz & Rucco 2019, arXiv 1701.07857).
    """
    lengths = check_lengths(lengths)
    entropy, slopes = entropy_and_slopes(*to_host(lengths.double()))
    return KnownGradient.apply(lengths, np.array(entropy), slopes).to(result_dtype(lengths))


@compiled
def entropy_and_slopes(lengths: np.ndarray) -> tuple[float, np.ndarray]:
    """Persistent entropy E of bars (m,), float64, and ∂E/∂ℓ (m,); see `persistent_entropy`."""
    slopes = np.zeros(len(lengths))
    longest = lengths.max() if len(lengths) else 0.0
    counted = np.flatnonzero(lengths > NEGLIGIBLE * longest)
    if len(counted) == 0:
        return 0.0, slopes
    p = lengths[counted] / longest  # first to at most 1, so that the sum below cannot overflow
    total = p.sum()
    p = p / total
    logs = np.log(p)
    entropy = -(p * logs).sum()
    slopes[counted] = -(logs + entropy) / total / longest
    return entropy, slopes
