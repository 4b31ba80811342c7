"""Persistent entropy: how evenly the lengths of a barcode are distributed."""

import numpy as np
import torch
from torch import Tensor

from shrink_utils.topology.arrays import as_tensor, eager, on_float64_device, result_dtype

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

    Examples
    --------
    >>> import torch
    >>> persistent_entropy(torch.tensor([1.0, 1.0])) / torch.tensor(2.0).log()
    tensor(1.)
    """
    lengths = check_lengths(lengths)
    bars = on_float64_device(lengths).double()
    longest = bars.detach().max() if len(bars) else bars.new_zeros(())
    bars = bars[bars.detach() > NEGLIGIBLE * longest] / longest  # so that no sum can overflow
    return entropy_of(bars).to(result_dtype(lengths)).to(lengths.device)


def entropy_of(bars: Tensor) -> Tensor:
    """E of numbers ≥ 0 (m,), one of them positive, in their graph."""
    return torch.special.entr(bars / bars.sum()).sum()


def check_lengths(lengths: Tensor) -> Tensor:
    """Return bar lengths as a tensor, or raise a ``ValueError``: a real, finite, ≥ 0 vector."""
    lengths = as_tensor(lengths, "lengths")
    if lengths.ndim != 1:
        raise ValueError(f"lengths must be a vector (m,); got shape {tuple(lengths.shape)}")
    bad = ~(torch.isfinite(lengths) & (lengths >= 0))
    if bad.any():
        raise ValueError(
            f"lengths of shape {tuple(lengths.shape)} must be finite and not negative; "
            f"found {lengths[bad][0].item()} at index {int(bad.int().argmax())}: "
            "leave infinite bars out, and pass death − birth, not birth − death"
        )
    return lengths
