"""Variance within and between classes: how far a cloud's shape is that of its classes' means."""

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from shrink_utils.geometry.rows import as_labels, centred
from shrink_utils.topology.arrays import as_rows


def within_classes(x: ArrayLike | Tensor, labels: ArrayLike | Tensor) -> Tensor:
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
    """
    x = as_rows(x)
    classes, index = as_labels(labels, len(x), name="labels", device=x.device)
    within = torch.empty_like(x)
    for c in range(len(classes)):
        within[index == c] = centred(x[index == c])
    return within


def between_share(x: ArrayLike | Tensor, labels: ArrayLike | Tensor) -> float:
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
    """
    within = within_classes(x, labels)
    total = centred(as_rows(x)).square().sum()
    if total == 0:
        raise ValueError(f"x of shape {tuple(within.shape)} has no variance (its rows are equal)")
    return 1.0 - float(within.square().sum() / total)
