r"""Persistent entropy, how evenly the lengths of a barcode are distributed; and what it selects.

Which bars are features of the space, and which are noise: neutralizing a set of bars replaces each
by one common length that leaves the set's entropy E as it is.
Write the bars as :math:`\ell_1 \ge \dots \ge \ell_{m-1}, \ell_m` with the longest moved to the
end, :math:`R_i` for those after position i, :math:`P_i = \sum_{R_i} \ell` and
:math:`W_i = \sum_{R_i} \ell \ln \ell`. The first i bars are replaced by

.. math:: \ell'_i = P_i / e^{E(R_i)} = e^{W_i / P_i}

each, and the total length becomes :math:`S_i = P_i + i\,\ell'_i`, with :math:`S_0 = \sum \ell`.
:math:`C(i) = S_{i-1} / S_i` is the factor by which the longest bar's probability grows. It is below
1 exactly when :math:`\ln \ell_i < W_i / P_i`, and once below it stays so: one sort and one pass of
sums over the tails decide every i, without an exponential that could overflow.

References
----------
Atienza, Gonzalez-Diaz & Rucco 2016, arXiv 1605.02885; Kudriashov et al. 2025, *Shrink the longest*,
arXiv 2501.05502.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from shrink_utils.names import known_name
from shrink_utils.topology.arrays import _as_tensor, _eager, _on_float64_device, _result_dtype

# A bar this much shorter than the longest has p ln p = 0 in float64, and ln p on the edge of −∞.
NEGLIGIBLE = float(np.finfo(np.float64).tiny)
EQUAL = 1e-12  # bars that differ by less of the longest are equal but for rounding


@_eager
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
    lengths = _check_lengths(lengths)
    bars = _on_float64_device(lengths).double()
    longest = bars.detach().max() if len(bars) else bars.new_zeros(())
    bars = bars[bars.detach() > NEGLIGIBLE * longest] / longest  # so that no sum can overflow
    return entropy_of(bars).to(_result_dtype(lengths)).to(lengths.device)


def entropy_of(bars: Tensor) -> Tensor:
    """E of numbers ≥ 0 (m,), one of them positive, in their graph."""
    return torch.special.entr(bars / bars.sum()).sum()


def _check_lengths(lengths: Tensor) -> Tensor:
    """Return bar lengths as a tensor, or raise a ``ValueError``: a real, finite, ≥ 0 vector."""
    lengths = _as_tensor(lengths, "lengths")
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


@_eager
def prominent_features(lengths: Tensor, *, rule: str = "ratio") -> Tensor:
    r"""Indices of the bars that stand out from topological noise.

    Parameters
    ----------
    lengths : Tensor, shape (m,)
        Bar lengths, finite and not negative, in any order and any unit.
    rule : {"ratio", "published"}
        - ``"ratio"``, the prose of *Shrink the longest*: with i* the first i for which C(i) < 1,
          the longest bar and :math:`\ell_1 \dots \ell_{i^*-1}`. While i* > Q and the list still
          shrinks, again on these features and the shortest bar.
        - ``"published"``, what its code does: i stops at m − 3, :math:`\ell_{i^*}` is kept too,
          and while i* > Q it repeats on :math:`\ell_1 \dots \ell_{i^*}`, the shortest bar and the
          longest. Below four bars, where that code fails, every bar is kept.

        Q = ⌈α m (α − 1 − ln α) / (α − 1)²⌉ with α = shortest/longest and m the number of bars in
        the list at hand.

    Returns
    -------
    Tensor of int64, shape (k,)
        Indices into `lengths`, longest bar first, ties in their given order; on its device.

    Raises
    ------
    ValueError
        If `lengths` is not a vector, holds a negative, NaN or infinite value, or `rule` is unknown.

    Notes
    -----
    Zero-length bars are dropped first. Bars that are all equal are all kept, and so is a single
    bar. Decisions are taken in float64: near α = 1 most of them would be rounding in float32.
    They are no function to differentiate: gradients pass through ``lengths[indices]``.

    Examples
    --------
    >>> import torch
    >>> prominent_features(torch.tensor([1.0, 8.0, 1.0, 4.0, 1.0]))
    tensor([1])
    >>> prominent_features(torch.tensor([1.0, 8.0, 1.0, 4.0, 1.0]), rule="published")
    tensor([1, 3])
    """
    lengths = _check_lengths(lengths)
    known_name("rule", "rule", rule, RULES)
    values = lengths.detach().cpu().double().numpy()
    order = np.argsort(-values, kind="stable")
    return torch.from_numpy(order[_prominent_positions(values[order], rule)]).to(lengths.device)


def _prominent_positions(descending: np.ndarray, rule: str) -> np.ndarray:
    """Positions of the bars that stand out among lengths (m,), float64, longest first."""
    bars = _positive(descending)
    alike = len(bars) < 2 or bars[-1] > 1 - EQUAL
    return np.arange(len(bars)) if alike else RULES[rule](bars)


def _random_positions(n_bars: int, n_drawn: int) -> np.ndarray:
    """Positions of `n_drawn` of the bars, ascending, drawn by torch's global generator."""
    return np.sort(torch.randperm(n_bars, device="cpu")[:n_drawn].numpy())


def _positive(descending: np.ndarray) -> np.ndarray:
    """Those of the bars that have a length, over the longest."""
    if len(descending) == 0 or descending[0] == 0.0:
        return np.empty(0)
    bars = descending / descending[0]
    return bars[bars > NEGLIGIBLE]


# The rules take bars in descending order, scaled to a longest bar of 1 and not all equal, and
# return positions in that order. Position 0 is the longest bar, so position i ≥ 1 is ℓ_i above.


def _ratio(bars: np.ndarray) -> np.ndarray:
    alpha = bars[-1]
    while True:
        m, i = len(bars), _first_below_one(bars)
        if i <= _most_features(alpha, m) or i + 1 == m:
            return np.arange(i)
        bars = np.append(bars[:i], alpha)


def _published(bars: np.ndarray) -> np.ndarray:
    alpha = bars[-1]
    if len(bars) < 4:
        return np.arange(len(bars))
    while True:
        m = len(bars)
        i = min(_first_below_one(bars), m - 3)
        if i <= _most_features(alpha, m):  # always so at m = 4, where i = 1
            return np.arange(i + 1)
        bars = np.append(bars[: i + 1], alpha)


def _first_below_one(bars: np.ndarray) -> int:
    """The first i with C(i) < 1; there is one, as the shortest bar always qualifies."""
    others = bars[:0:-1]  # from the shortest bar up, without the longest, whose ln ℓ is 0
    logs = np.log(others)
    totals = np.append(0.0, others.cumsum()[:-1])  # P_i of those before each, and their W_i
    weighted = np.append(0.0, (others * logs).cumsum()[:-1])
    not_below = logs >= weighted / (totals + bars[0])
    return len(bars) - int(not_below.argmax()) if not_below.any() else 1


def _most_features(alpha: float, m: int) -> int:
    """Q = ⌈α m (α − 1 − ln α) / (α − 1)²⌉, the most features that m bars of this α should have."""
    x = 1.0 - alpha
    if x < 1e-3:  # −x − ln(1 − x) = x²/2 + x³/3 + …: the quotient is all cancellation here
        quotient = 1 / 2 + x / 3 + x**2 / 4 + x**3 / 5
    else:
        quotient = (-x - math.log(alpha)) / x**2
    return math.ceil(alpha * m * quotient)


RULES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ratio": _ratio,
    "published": _published,
}
